"""Reading a dataset on a dealfs mount with PyTorch."""
from dealfs.torch.dealt import Dealt
from dealfs.torch.echo import Echo
from dealfs.torch.pace import Pace
from dealfs.torch.records import Records
from dealfs.torch.sampler import PlansDiffer, Sampler, ShardedAgain

__all__ = ['Dealt', 'Echo', 'Pace', 'PlansDiffer', 'Records', 'Sampler', 'ShardedAgain']
