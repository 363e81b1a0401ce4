"""Echo after augmentation: uses the samples of a DataLoader several times while its workers prepare the next ones."""
import collections
import collections.abc
import itertools

import numpy
import torch
from torch.utils.data.dataloader import default_collate

from dealfs.echo import echoed, millionths, uses_before


class Echo:
    """The batches of a loader, each sample used `factor` times.

        for images, labels in sampler.over(Echo(loader, 2)):

    at='example'    batches are split into samples, these are shuffled in a buffer of `buffer` samples, and `collate`
                    makes new batches of the loader's size
    at='batch'      batches stay whole, and the buffer has room for batches with `buffer` samples in total

    The buffer is in memory. A batch that is used again is the same object: do not change it in place."""

    def __init__(self, loader, factor, buffer=256, at='example', seed=0, collate=default_collate):
        if at not in ('example', 'batch'):
            raise ValueError(f"at={at!r}: it must be 'example' or 'batch'")
        self.loader, self.factor, self.buffer, self.at = loader, millionths(factor) / 1e6, buffer, at
        self.seed, self.collate, self.epoch = seed, collate, 0
        self.batches_used = 0

    def set_epoch(self, epoch):
        """Set the epoch, which seeds the shuffling of the buffer. It is the same on all ranks."""
        self.epoch = epoch

    def __len__(self):
        if self.at == 'batch':
            return uses_before(len(self.loader), self.factor)
        samples = len(self.loader.sampler)
        if self.loader.drop_last:
            samples -= samples % self.loader.batch_size
        return -(-uses_before(samples, self.factor) // self.loader.batch_size)

    def __iter__(self):
        """Sets self.batches_used: every sample of the loader's first batches_used batches was used at least once. So a
        training that resumes after these batches may repeat samples that were in the buffer, but loses none."""
        self.batches_used = 0
        unused = collections.deque()  # for each later batch, the number of its samples that have not been used yet
        source = self._batches(unused) if self.at == 'batch' else self._samples(unused)
        first = next(source, None)
        if first is None:
            return
        size, items = first.of, itertools.chain([first], source)
        del first  # or it would stay in memory for the whole epoch
        seed = (self.seed & 0xffffffff, self.seed >> 32 & 0xffffffff, self.epoch & 0xffffffff)
        room = max(self.buffer // size if self.at == 'batch' else self.buffer, 1)
        group = []
        for item in echoed(items, self.factor, room, seed):
            group.append(item)
            if self.at == 'batch' or len(group) == size:
                yield self._handed_out(group, unused)
                group = []
        if group:
            yield self._handed_out(group, unused)

    def _handed_out(self, group, unused):
        for item in group:
            if not item.used:
                item.used = True
                unused[item.batch - self.batches_used] -= 1
        while unused and unused[0] == 0:
            unused.popleft()
            self.batches_used += 1
        return group[0].value if self.at == 'batch' else self.collate([item.value for item in group])

    def _batches(self, unused):
        for number, batch in enumerate(self.loader):
            unused.append(1)
            yield Item(batch, number, length_of(batch))

    def _samples(self, unused):
        for number, batch in enumerate(self.loader):
            samples = samples_of(batch)
            unused.append(len(samples))
            for sample in samples:
                yield Item(sample, number, len(samples))


class Item:
    __slots__ = 'value', 'batch', 'of', 'used'

    def __init__(self, value, batch, of):
        self.value, self.batch, self.of, self.used = value, batch, of, False


def length_of(batch):
    """Number of samples in a batch, from its first tensor."""
    if isinstance(batch, collections.abc.Mapping):
        return length_of(next(iter(batch.values())))
    if is_row(batch):
        return len(batch)
    return length_of(batch[0])


def is_row(batch):
    """Does `batch` contain one entry per sample?"""
    return isinstance(batch, (torch.Tensor, numpy.ndarray)) or all(isinstance(x, (str, bytes)) for x in batch)


def samples_of(batch):
    """Split a batch that default_collate made. Each sample is a copy: a view would keep the whole batch in memory."""
    if isinstance(batch, torch.Tensor):
        return [sample.clone() for sample in batch]
    if isinstance(batch, numpy.ndarray):
        return [sample.copy() for sample in batch]
    if isinstance(batch, collections.abc.Mapping):
        columns = [samples_of(column) for column in batch.values()]
        return [dict(zip(batch, row)) for row in zip(*columns)]
    if is_row(batch):
        return list(batch)
    rows = zip(*(samples_of(column) for column in batch))
    if hasattr(batch, '_fields'):
        return [type(batch)(*row) for row in rows]
    return [type(batch)(row) for row in rows]
