"""Records in PyTorch: workers and the threads of each (Yang and Cong, figures 3 and 7), and what a shuffle of shards
and a buffer costs a training, beside a stream."""
import contextlib
import gc
import io
import os
import random
import tarfile
import time

import accelerators
import training

BATCH, SIZE, DELAY_MS = 64, 112 << 10, 20
WORKERS, THREADS = (1, 2, 4), (0, 2, 4, 8)


# --- workers and threads ---

def tensor(data):
    import numpy
    import torch
    return torch.from_numpy(numpy.frombuffer(bytearray(data), numpy.uint8))


def rate(mount, how, workers, threads, epoch):
    """Samples per second of one pass; none of them is in the page cache."""
    import torch
    from torch.utils.data import BatchSampler, DataLoader
    from dealfs.torch import Records, Sampler
    data = Records(mount, 'all', tensor, threads=threads)
    accelerators.drop(data.path(i) for i in range(len(data)))
    sampler = Sampler(data, batch_size=BATCH, feed=False)
    sampler.set_epoch(epoch)
    order = sampler if how == 'stream' else [int(i) for i in sampler]
    loader = DataLoader(data, sampler=BatchSampler(order, BATCH, True), batch_size=None, num_workers=workers,
                        collate_fn=torch.utils.data.default_collate)
    began = time.monotonic()
    return sum(map(len, loader)) / (time.monotonic() - began)


@contextlib.contextmanager
def delayed(source_ms):
    os.environ['DEALFS_SOURCE_FAULTS'] = f'delay={source_ms}'
    try:
        yield
    finally:
        del os.environ['DEALFS_SOURCE_FAULTS']


def measure_threads(bench):
    """By where the samples are and how they are read, by workers: (threads, samples per second of each run)."""
    files, found = (128, 512) if bench.quick else (128, 1024), {}
    for where, count in zip((f'a source of {DELAY_MS} ms', 'RAM tier'), files):
        source = f'{bench.HERE}/{count}'
        os.makedirs(source)
        bench.sh(f'{bench.PROGRAMS}/maker', source, str(count), str(SIZE), '1000')
        slow = where != 'RAM tier'
        options = 'ram=0' if slow else 'ram=1G'  # without room in a tier each read is one of the source
        with delayed(DELAY_MS) if slow else contextlib.nullcontext(), \
                accelerators.mounted(bench, source, options, staged=not slow) as path:
            for epoch in range(bench.runs):
                for how in 'in place', 'stream':
                    for workers in WORKERS:
                        line = found.setdefault((where, how), {}).setdefault(workers, {})
                        for threads in THREADS:
                            line.setdefault(threads, []).append(bench.measured(
                                f'{where} {how} {workers} workers {threads} threads {epoch}',
                                lambda: rate(path, how, workers, threads, epoch)))
                        gc.collect()  # what is mapped of the mount, which else is busy
    return found


def panels_of_threads(plot, found):
    most = {where: 1.05 * max(r for (place, _), lines in found.items() if place == where
                              for line in lines.values() for rates in line.values() for r in rates)
            for where, _ in found}
    panels = []
    for (where, how), lines in found.items():
        panel = plot.Panel(f'{where}: {how}', 'threads of a worker', 'samples per second', (-0.4, 8.4),
                           (0, most[where]), [(t, t) for t in THREADS])
        for colour, (workers, line) in enumerate(lines.items()):
            panel.medians([(t + 0.08 * (colour - 1), rates) for t, rates in line.items()], colour,
                          f'{workers} worker{"s" * (workers > 1)}')
        panels.append(panel)
    return [panels[:2], panels[2:]]


def figure_threads(bench):
    """workers and threads of a loader, with a source of 20 ms per request and with the RAM tier"""
    bench.write('worker-threads', panels_of_threads(bench.plot, measure_threads(bench)),
                f'Files of {SIZE >> 10} KiB by dealfs.torch.Records, batches of {BATCH}; page cache dropped. The time '
                'to start the workers is included.',
                f'Above: each request to the source takes {DELAY_MS} ms (simulated), and nothing is cached.',
                'In place: each sample from its own file, as the paper reads. Stream: a batch is one read.')


# --- shards sorted by class ---

RANKS, RANK_BATCH = 4, 16


def make_shards(source, per_class, per_shard):
    """Tar shards, one class after the other."""
    os.makedirs(source)
    for c, samples in enumerate(training.draw(per_class, training.SEED)):
        for begin in range(0, per_class, per_shard):
            with tarfile.open(f'{source}/{c}-{begin:05}.tar', 'w', format=tarfile.USTAR_FORMAT) as tar:
                for i in range(begin, begin + per_shard):
                    info = tarfile.TarInfo(f'{c}/{i:05}.{c}')
                    info.size = samples[i].nbytes
                    tar.addfile(info, io.BytesIO(samples[i].tobytes()))


def members(paths):
    for path in paths:
        with tarfile.open(path, 'r|') as tar:
            for member in tar:
                yield tar.extractfile(member).read(), int(member.name[-1])


def buffered(samples, size, seed):
    """WebDataset's shuffle: one at random out of a buffer, which is filled by two for each one that leaves it."""
    chance, held = random.Random(seed), []
    for sample in samples:
        held.append(sample)
        if len(held) < size:
            sample = next(samples, None)
            if sample is not None:
                held.append(sample)
        if len(held) >= min(100, size):
            yield held.pop(chance.randrange(len(held)))
    while held:
        yield held.pop(chance.randrange(len(held)))


def samples_of(mount, data, how, rank, epoch):
    """What a rank reads in an epoch: (bytes, class)."""
    from torch.utils.data import DistributedSampler
    from dealfs.torch import Sampler
    if how == 'stream':
        sampler = Sampler(data, RANKS, rank, batch_size=RANK_BATCH)
        sampler.set_epoch(epoch)
        return members([sampler.stream()])
    if how == 'DistributedSampler':
        sampler = DistributedSampler(data, RANKS, rank)
        sampler.set_epoch(epoch)
        return (next((found[name], int(name)) for name in found if name != '__key__')
                for found in map(data.__getitem__, sampler))
    shards = sorted(name for name in os.listdir(mount) if name.endswith('.tar'))
    random.Random(epoch).shuffle(shards)
    return buffered(members(f'{mount}/{name}' for name in shards[rank::RANKS]), how, (epoch, rank).__hash__())


def accuracies(mount, how, epochs, seed):
    import numpy
    import torch
    from dealfs.torch import Records
    others = training.draw(250, training.SEED + 1)
    test = (torch.from_numpy(numpy.concatenate(others)), torch.arange(training.CLASSES).repeat_interleave(250))
    ranks, data, found = training.Ranks(RANKS, epochs, seed), Records(mount, 'train'), []
    for epoch in range(100 * seed, 100 * seed + epochs):
        lists = [samples_of(mount, data, how, rank, epoch) for rank in range(RANKS)]
        for _ in range(len(data) // RANKS // RANK_BATCH):
            batches = []
            for one in lists:
                pairs = [next(one) for _ in range(RANK_BATCH)]
                batches.append((torch.from_numpy(numpy.stack([numpy.frombuffer(d, '<f4') for d, _ in pairs])),
                                torch.tensor([c for _, c in pairs])))
            ranks.step(batches)
        ranks.schedule.step()
        found.append(ranks.accuracy(*test))
    return found


def figure_shards(bench):
    """tar shards sorted by class: accuracy by epoch of shuffle buffers, a stream, and DistributedSampler"""
    per_class, per_shard, epochs = (200, 50, 3) if bench.quick else (2000, 500, 6)
    source, found = f'{bench.HERE}/shards', {}
    make_shards(source, per_class, per_shard)
    panel = bench.plot.Panel('tar shards sorted by class', 'epoch', 'accuracy', (0, epochs + 0.5), (0, 1))
    with accelerators.mounted(bench, source, 'ram=256M') as mount:
        bench.sh(bench.DEALFS, 'index', mount, 'train', stderr=subprocess.DEVNULL)
        for seed in range(bench.runs):
            for how in 100, 1000, 'stream', 'DistributedSampler':
                found.setdefault(how, []).append(
                    bench.measured(f'{how} seed {seed}', lambda: accuracies(mount, how, epochs, seed)))
                gc.collect()
    for colour, (how, seeds) in enumerate(found.items()):
        panel.medians([(i + 1 + 0.05 * (colour - 1.5), [accuracy[i] for accuracy in seeds]) for i in range(epochs)],
                      colour, f'a buffer of {how:,}' if isinstance(how, int) else how)
    bench.write('shuffled-shards', [[panel]],
                f'{8 * per_class:,} samples of 8 classes in tar shards of {per_shard}, {RANKS} ranks, batches of '
                f'{RANK_BATCH} per rank, {bench.runs} seeds. A buffer: shards in random order, as WebDataset reads '
                'them. Accuracies do not depend on the load of the machine.')
