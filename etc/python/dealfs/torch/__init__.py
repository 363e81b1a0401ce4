"""Reading a dataset on a dealfs mount with PyTorch."""
from dealfs.torch.echo import Echo
from dealfs.torch.pace import Pace
from dealfs.torch.sampler import PlansDiffer, Sampler, ShardedAgain

__all__ = ['Echo', 'Pace', 'PlansDiffer', 'Sampler', 'ShardedAgain']
