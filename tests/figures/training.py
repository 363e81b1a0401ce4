"""A small network, trained by ranks that read their own nodes, as partial-local shuffle has it.

    training.py make FOLDER PER-CLASS BYTES         the dataset: a folder for each of 8 classes, a file per sample
    training.py train EPOCHS BATCH HOW MOUNT…       HOW: global, or the part Q that is exchanged before each epoch

The ranks, one for each mount, are simulated in one process, step by step: each rank's gradient is of its own batch, and
so are the statistics of batch normalization, which are what suffers where a rank sees few classes. Their mean is kept
for the test. It prints one line per epoch: number, accuracy on samples that nobody trained with, and the seconds
of planning, reading and computing. Everything but these is the same each time."""
import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn

CLASSES, FEATURES = 8, 24
SEED = 1


def draw(per_class, seed):
    """Samples of classes that overlap."""
    fixed = np.random.default_rng(7)
    middle = fixed.normal(size=(CLASSES, FEATURES)) * 0.35
    mix = fixed.normal(size=(CLASSES, FEATURES, FEATURES)) * 0.25 + np.eye(FEATURES)
    rng = np.random.default_rng(seed)
    return [(middle[c] + rng.normal(size=(per_class, FEATURES)) @ mix[c]).astype('<f4') for c in range(CLASSES)]


def make(folder, per_class, size):
    rng = np.random.default_rng(3)
    for c, samples in enumerate(draw(per_class, SEED)):
        os.makedirs(f'{folder}/class{c}')
        for i, sample in enumerate(samples):
            with open(f'{folder}/class{c}/{i:05d}.f32', 'wb') as f:
                f.write(sample.tobytes() + rng.bytes(max(size - sample.nbytes, 0)))


def ask(mount, request):
    fd = os.open(f'{mount}/.dealfs/control', os.O_RDWR)
    try:
        os.write(fd, request.encode() + b'\n')
        parts = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return b''.join(parts)
    finally:
        os.close(fd)


def numbers(mount, request):
    """What a request with reply=u32 answers."""
    return np.frombuffer(ask(mount, request), '<u4')


def read(mount, name):
    """A sample and its class, past the page cache."""
    fd = os.open(f'{mount}/{name}', os.O_RDONLY)
    try:
        content = os.read(fd, os.fstat(fd).st_size)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    return np.frombuffer(content[:4 * FEATURES], '<f4'), int(name[len('class')])


class Ranks:
    """One network; each rank has its own statistics in a step."""

    def __init__(self, ranks, epochs, seed=SEED):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.ranks = ranks
        self.network = nn.Sequential(nn.Linear(FEATURES, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64),
                                     nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, CLASSES))
        self.norms = [m for m in self.network if isinstance(m, nn.BatchNorm1d)]
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.05, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)

    def statistics(self):
        return [t for m in self.norms for t in (m.running_mean, m.running_var)]

    def step(self, batches):
        """`batches`: (samples, classes) of each rank."""
        before = [t.clone() for t in self.statistics()]
        mean = [torch.zeros_like(t) for t in before]
        self.optimizer.zero_grad()
        for samples, classes in batches:
            for t, b in zip(self.statistics(), before):
                t.copy_(b)
            loss = nn.functional.cross_entropy(self.network(samples), classes)
            (loss / self.ranks).backward()
            for m, t in zip(mean, self.statistics()):
                m += t / self.ranks
        for t, m in zip(self.statistics(), mean):
            t.copy_(m)
        self.optimizer.step()

    def accuracy(self, samples, classes):
        self.network.eval()
        with torch.no_grad():
            right = (self.network(samples).argmax(1) == classes).double().mean().item()
        self.network.train()
        return right


def lists_of(mounts, epoch, batch, mode, seed=0):
    request = f'plan epoch={epoch} seed={seed} ranks={len(mounts)} batch={batch} {mode} reply=u32'
    return [numbers(mount, f'{request} rank={rank}') for rank, mount in enumerate(mounts)]


def local_mode(mounts, epoch, how):
    """After the exchange for this epoch, where there is one."""
    if float(how) == 0 or epoch == 0:
        return 'mode=local'
    reply = ask(mounts[0], f'exchange epoch={epoch} fraction={how}')
    return 'mode=local layout=' + json.loads(reply)['layout']


def train(mounts, epochs, batch, how, first=0, seed=SEED):
    """Yields (epoch, accuracy, seconds of planning, of reading, of computing)."""
    ranks = Ranks(len(mounts), epochs, seed)
    others = draw(250, SEED + 1)
    test = torch.from_numpy(np.concatenate(others)), torch.arange(CLASSES).repeat_interleave(250)
    with open(f'{mounts[0]}/.dealfs/samples') as f:
        names = f.read().split('\n')[:-1]
    for epoch in range(first, first + epochs):
        at = time.monotonic()
        mode = 'mode=regular' if how == 'global' else local_mode(mounts, epoch, how)
        lists = lists_of(mounts, epoch, batch, mode, seed - SEED)
        planning, reading, computing = time.monotonic() - at, 0.0, 0.0
        for i in range(0, len(lists[0]), batch):
            at = time.monotonic()
            batches = []
            for mount, mine in zip(mounts, lists):
                samples, classes = zip(*(read(mount, names[k]) for k in mine[i:i + batch]))
                batches.append((torch.from_numpy(np.stack(samples)), torch.tensor(classes)))
            reading += time.monotonic() - at
            at = time.monotonic()
            ranks.step(batches)
            computing += time.monotonic() - at
        ranks.schedule.step()
        yield epoch, ranks.accuracy(*test), planning, reading, computing


def main():
    if sys.argv[1:2] == ['make'] and len(sys.argv) == 5:
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ['train'] and len(sys.argv) > 5:
        for line in train(sys.argv[5:], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]):
            print('%d %.4f %.3f %.3f %.3f' % line, flush=True)
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
