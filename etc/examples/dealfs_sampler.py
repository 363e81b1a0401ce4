"""The order of an epoch for torch's DataLoader, dealt by a dealfs mount: in the place of DistributedSampler.

    dataset = ImageFolder(mount)
    sampler = DealfsSampler(mount, len(dataset), batch)     # on every rank, after init_process_group
    loader = DataLoader(dataset, batch, sampler=sampler)    # the same batch
    for epoch in range(epochs):
        sampler.set_epoch(epoch)

Each step has the samples that DistributedSampler would give to it; who of the ranks reads which is dealt so that nearly
all of them lie on the rank's own node. See dealfs-control(5)."""
import json
import time
from urllib.parse import quote

import numpy
import torch.distributed as dist
from torch.utils.data import Sampler


class Pace:
    """How long steps wait for their data, and how long they take themselves: for batch in pace.over(loader)."""

    def __init__(self):
        self.wait = self.step = 0

    def over(self, loader):
        before = time.monotonic()
        for batch in loader:
            came = time.monotonic()
            yield batch
            done = time.monotonic()
            self.wait, self.step, before = self.wait + came - before, self.step + done - came, done

    def ratio(self, echo=1):
        """The time to bring a sample over the time to train with it, 1 to 16, since it was asked last. Where each
        sample was used `echo` times, bringing it took so many steps."""
        ratio = echo * (self.wait + self.step) / self.step if self.step else 1
        self.wait = self.step = 0
        return round(min(max(ratio, 1), 16), 2)


class DealfsSampler(Sampler):
    def __init__(self, mount, count, batch, epoch=0, consumed=0, group=None, **keys):
        """keys: others of the request `plan`: seed=, mode=, exchange=, tail=, under=; samples= if not ImageFolder's."""
        self.mount, self.group = mount, group
        self.keys = {'samples': 'imagefolder', 'count': count, 'batch': batch, **keys}
        self.set_epoch(epoch, consumed)

    def set_epoch(self, epoch, consumed=0, layout=None):
        """All ranks call it together, also to go on in mid-epoch: consumed is what their trainers (and not the
        samplers, which run ahead) had taken of this epoch, in sum over the ranks. There may be more or fewer ranks
        now. With mode=local the rest is what it would have been only with the layout of then, which self.layout
        is after this."""
        with open(f'{self.mount}/.dealfs/status') as f:
            nodes = self._gather(json.load(f)['node'])
        entries = int(self.keys['count'] * float(self.keys.get('echo', 1)))
        plan = {**self.keys, 'epoch': epoch, 'skip': min(consumed, entries),
                'ranks': len(nodes), 'nodes': ','.join(map(str, nodes))}
        # All plan from the owners that rank 0 sees: these may change at any time.
        rank = dist.get_rank(self.group) if dist.is_initialized() else 0
        self.layout = layout or self._gather(rank == 0 and self._summary(plan)['layout'])[0]
        if self.layout:
            plan['layout'] = self.layout
        digests = self._gather(self._summary(plan)['digest'])
        if len(set(digests)) > 1:
            raise RuntimeError(f'the ranks have different plans: {digests}')
        self.indices = numpy.frombuffer(self._ask(plan, reply='u32', rank=rank), '<u4').tolist()

    def fix_echo(self, pace):
        """All ranks call it together, between epochs: from the next one on each sample is used as often as rank 0's
        trainer can while the next is read and decoded. Every rank's plan has that number."""
        self.keys['echo'] = self._gather(pace.ratio(float(self.keys.get('echo', 1))))[0]

    def _summary(self, plan):
        try:
            return json.loads(self._ask(plan, reply='summary'))
        except (OSError, RuntimeError) as error:
            return {'digest': f'{self.mount}: {error}', 'layout': None}

    def _gather(self, value):
        values = [value] * (dist.get_world_size(self.group) if dist.is_initialized() else 1)
        if dist.is_initialized():
            dist.all_gather_object(values, value, self.group)
        return values

    def _ask(self, plan, **keys):
        words = ' '.join(f'{key}={quote(str(value))}' for key, value in {**plan, **keys}.items())
        with open(f'{self.mount}/.dealfs/control', 'r+b', buffering=0) as f:
            f.write(f'plan {words}\n'.encode())
            try:
                return f.read()
            except OSError as error:
                raise RuntimeError(f.read().decode().strip()) from error

    def __iter__(self):
        return iter(self.indices)

    def __len__(self):
        return len(self.indices)
