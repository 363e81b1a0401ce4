"""The line of `make bench` about a PyTorch training: how long its loop waits for batches, unfed against fed.

Run as a program it is that training, and prints the seconds that it has waited:
    waits.py MOUNT unfed|fed|warm RANKS EPOCH BATCHES STEP

Two workers turn JPEG files into tensors, and each step computes for STEP seconds, which is a sleep. Nothing is in the
page cache at the beginning, unless it is to be warm. The first batch is left out: nobody can be ahead of it."""
import os
import statistics
import subprocess
import sys
import time

import worlds

BATCH, WORKERS, SIDE = 32, 2, 224
SOURCE_MS, SOURCE_THREADS, LINK_MS = 20, 16, 2
NEED = 3


# --- the training ---

def tensor(path):
    import numpy
    import torch
    from PIL import Image
    with Image.open(path) as image:
        return torch.from_numpy(numpy.array(image.convert('RGB').resize((SIDE, SIDE))))


class Pictures:
    def __init__(self, mount):
        self.paths = [os.path.join(mount.path, name) for name in mount.samples()]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return tensor(self.paths[i])


def drop(paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def train(path, how, ranks, epoch, batches, step):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../../etc/python'))
    import dealfs
    import torch
    from dealfs.torch import Sampler
    torch.set_num_threads(1)
    mount = dealfs.Mount(path)
    pictures = Pictures(mount)
    sampler = Sampler(pictures, ranks, 0, batch_size=BATCH, mount=mount, samples='all', feed=how == 'fed',
                      mode='regular')
    loader = torch.utils.data.DataLoader(pictures, BATCH, sampler=sampler, num_workers=WORKERS)
    if how != 'warm':
        drop(pictures.paths)
    sampler.set_epoch(epoch)
    waits, iterator = [], iter(loader)
    for _ in range(min(batches, len(loader))):
        began = time.monotonic()
        next(iterator)
        waits.append(time.monotonic() - began)
        time.sleep(step)
    return sum(waits[1:])


# --- the line ---

class Trainings:
    def __init__(self, bench, files):
        self.bench, self.epoch = bench, 0
        for path in files:  # the first one also loads what decodes
            tensor(path)
        each = bench.seconds(lambda: [tensor(path) for path in files]) / len(files)
        self.step = BATCH * each  # decoding takes one core
        bench.note(f'PyTorch: {1e3 * each:.1f} ms to decode a picture, {1e3 * self.step:.0f} ms of computing a batch')

    def waits(self, path, how, ranks=1):
        """Of the next epoch but some: no mount foresees it."""
        self.epoch += 10
        batches = 12 if self.bench.QUICK else 1 << 30
        return float(self.bench.sh('/usr/bin/python3', __file__, path, how, str(ranks), str(self.epoch),
                                   str(batches), str(self.step)))

    def row(self, what, unfed, fed):
        self.bench.row(f'PyTorch, {what}: waiting unfed / fed', statistics.median(fed), statistics.median(unfed),
                       statistics.median(a / b for a, b in zip(unfed, fed)), NEED, 's')

    def staged(self, source, what, *options):
        unfed, fed, warm = [], [], []
        with self.bench.Mount(source, *options, 'feed=0') as other, self.bench.Mount(source, *options) as mount:
            for _ in range(self.bench.TURNS):
                unfed.append(self.waits(other.path, 'unfed'))
                warm.append(self.waits(other.path, 'warm'))
                fed.append(self.waits(mount.path, 'fed'))
        self.row(what, unfed, fed)
        self.bench.note(f'PyTorch, {what}: {statistics.median(warm):.3f} s of waiting where all is in the page cache')

    def of_peers(self, source):
        """Rank 0 of two nodes trains; a regular list: half of it is the other node's."""
        waits = {}
        with worlds.machines(2, '1gbit', wire=self.bench.program('wire'), delay=1000 * LINK_MS) as (switch, mpirun):
            for how, options in ('unfed', 'ram=1G,feed=0'), ('fed', 'ram=1G'):
                with worlds.World(self.bench, 2, source, options, mpirun, switch) as world:
                    self.bench.sh(self.bench.DEALFS, 'stage', world.path(0))
                    waits[how] = [self.waits(world.path(0), how, 2) for _ in range(self.bench.TURNS)]
        self.row(f'half of another node, 1 Gbit/s, {LINK_MS} ms later', waits['unfed'], waits['fed'])

    def first(self, source):
        """Each is a mount's first epoch."""
        waits = {'unfed': [], 'fed': []}
        for how in [*waits] * self.bench.TURNS:
            os.environ['DEALFS_SOURCE_FAULTS'] = f'delay={SOURCE_MS}'
            options = ['ram=1G', f'source_threads={SOURCE_THREADS}', *['feed=0'] * (how == 'unfed')]
            with self.bench.Mount(source, *options, stage=False) as mount:
                del os.environ['DEALFS_SOURCE_FAULTS']
                waits[how].append(self.waits(mount.path, how))
        self.row(f'first epoch, source of {SOURCE_MS} ms', waits['unfed'], waits['fed'])


def line_torch(bench):
    """PyTorch's DataLoader, two workers, JPEG to tensor: how long the loop waits for data, unfed against fed"""
    try:
        import torch  # noqa: F401
    except ImportError:
        bench.note('torch: python3-torch is not installed')
        return
    if not bench.have_photographs('torch'):
        return
    files = bench.photographs()
    trainings, source = Trainings(bench, files), bench.copies(files)
    trainings.staged(source, 'RAM tier', 'ram=1G')
    trainings.of_peers(source)
    trainings.first(source)


LINES = {'torch': line_torch}

if __name__ == '__main__':
    print(train(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6])))
