"""What a program asks of a dealfs mount. It needs NumPy; `dealfs.torch`, which has the sampler, needs PyTorch, too."""
from dealfs.mount import Mount, NotMounted, Refused, Where
from dealfs.version import __version__

__all__ = ['Mount', 'NotMounted', 'Refused', 'Where', '__version__']
