"""Requests to a dealfs mount. This package needs NumPy; `dealfs.torch`, which has the sampler, also needs PyTorch."""
from dealfs.mount import Mount, NotMounted, Refused, Where
from dealfs.version import __version__

__all__ = ['Mount', 'NotMounted', 'Refused', 'Where', '__version__']
