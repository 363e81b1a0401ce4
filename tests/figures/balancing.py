"""Ranks of equal cost: the slowest rank with and without cost=, simulated; and seconds per epoch of four PyTorch ranks
whose steps sleep in proportion to the cost of their batch."""
import contextlib
import json
import os
import random
import statistics
import subprocess
import time

import worlds

# --- simulated ---

DISTRIBUTIONS, RANKS = ('lognormal', 'exponential', 'uniform'), (4, 16, 64, 256, 1024)
BATCHES, WINDOWS = (4, 8, 32, 128), (1, 8)


def simulate(bench, distribution):
    """By batch and window: what `dealfs simulate cost` prints for each number of ranks."""
    out = bench.sh(bench.DEALFS, 'simulate', 'cost', '--json', '--distribution', distribution, '--samples',
                   str((4 << 20) // (4 if bench.quick else 1)), '--ranks', ','.join(map(str, RANKS)),
                   '--batch', ','.join(map(str, BATCHES)), '--window', ','.join(map(str, WINDOWS)))
    found = {}
    for row in (row for row in json.loads(out) if row['regular'] is not None):
        found.setdefault((row['batch'], row['window']), []).append(row)
    return found


def figure_simulated(bench):
    """the slowest rank by the mean, with and without cost=: by ranks, batch, window and distribution; simulated"""
    plot = bench.plot
    found = {name: simulate(bench, name) for name in DISTRIBUTIONS}
    panels = []
    for window in WINDOWS:
        most = max(row['regular'] for loads in found.values() for b in BATCHES for row in loads[b, window])
        panels.append([])
        for name, loads in found.items():
            panel = plot.Panel(f'{name} costs, window {window}', 'ranks', 'slowest rank / mean of the ranks',
                               (-0.2, len(RANKS) - 0.8), (1, 1.05 * most), [(i, r) for i, r in enumerate(RANKS)])
            for colour, batch in enumerate(BATCHES):
                for key in 'regular', 'cost':
                    line = [row[key] for row in loads[batch, window]]
                    panel.line(list(enumerate(line)), colour, f'batch {batch}' if key == 'cost' else None,
                               dashed=key == 'regular')
                    bench.say(name, f'batch {batch}, window {window}, {key}:', *(f'{value:.3f}' for value in line))
            panels[-1].append(panel)
    bench.write('cost', panels,
                'Simulated by dealfs simulate cost: mean of up to 40 windows. Dashed: DistributedSampler. Solid: '
                'mode=locality with cost= and balance=1.02.',
                'Log-normal: median 665, sigma 0.9, at most 8,192. Exponential: mean 1,000. Uniform: 1 to 2,000. '
                'In batches of 4 a single sample may cost more than the mean of a rank.')


# --- measured ---

NODES = 4
LOADS = ((32, 1), (8, 1), (4, 1), (4, 8))  # batch, window
PLANS = ('DistributedSampler', 'mode=locality', 'cost=bytes')
SECONDS = 1e-5  # that a step lasts per byte of its batch


def make_texts(source, samples):
    """As many bytes as a text has tokens: log-normal, median 665, sigma 0.9, at most 8,192."""
    os.makedirs(source)
    rng = random.Random(1)
    for i in range(samples):
        with open(f'{source}/{i:05}', 'wb') as f:
            f.write(bytes(min(8192, 1 + int(665 * rng.lognormvariate(0, 0.9)))))


def loader_of(data, how, batch, window):
    from torch.utils.data import DataLoader, DistributedSampler
    from dealfs.torch import Sampler
    if how == 'DistributedSampler':
        sampler = DistributedSampler(data)
    else:
        sampler = Sampler(data, batch_size=batch, **({'cost': 'bytes', 'window': window} if 'cost' in how else {}))
    return DataLoader(data, batch, sampler=sampler)


def train(loader, epoch, window):
    """Seconds of an epoch, and the cost of each of this rank's steps. A step sleeps until it has lasted in proportion
    to its cost, so that loading is hidden as behind a real step. Each window ends with an all-reduce."""
    import torch
    import torch.distributed as dist
    gradient, costs = torch.zeros(1000), []
    dist.barrier()
    began = time.monotonic()
    loader.sampler.set_epoch(epoch)
    ends = time.monotonic()
    for batch in getattr(loader.sampler, 'over', iter)(loader):
        costs.append(int(batch.sum()))
        ends += SECONDS * costs[-1]
        time.sleep(max(0, ends - time.monotonic()))
        if len(costs) % window == 0:
            dist.all_reduce(gradient)
            ends = time.monotonic()
    dist.barrier()
    return time.monotonic() - began, costs


def run_rank(rank, paths, base, epochs):
    """A rank over the mount of its node. The plans take turns. Rank 0 writes seconds and all ranks' costs."""
    import torch
    import torch.distributed as dist
    from dealfs.torch import Records
    torch.set_num_threads(1)
    with contextlib.suppress(OSError):
        os.nice(-15)  # other work on this machine does not count
    dist.init_process_group('gloo', init_method=f'file://{base}/meet', rank=rank, world_size=NODES)
    data, found = Records(paths[rank], 'all', len), []
    for i in range(len(data)):  # into the page cache: the figure is about steps
        data[i]
    for batch, window in LOADS:
        loaders = {how: loader_of(data, how, batch, window) for how in PLANS}
        for epoch in range(epochs):
            for how, loader in loaders.items():
                seconds, costs = train(loader, epoch, window)
                everyone = [None] * NODES
                dist.all_gather_object(everyone, costs)
                found.append((batch, window, how, epoch, seconds, everyone))
    if rank == 0:
        with open(f'{base}/found.json', 'w') as f:
            json.dump(found, f)
    dist.destroy_process_group()


def ratio(costs, window):
    """The slowest rank by the mean, on average of the windows."""
    found = []
    for at in range(0, len(costs[0]), window):
        sums = [sum(one[at:at + window]) for one in costs]
        found.append(max(sums) * len(sums) / sum(sums))
    return statistics.mean(found)


def measure(bench, samples, epochs):
    """By name of the load and by plan: the seconds of each epoch except the first, which warms up, and the ratio of
    the costs. And the seconds of an epoch in which all ranks cost the same and nothing but steps takes time."""
    import torch.multiprocessing
    source, times, ratios, batches = f'{bench.HERE}/texts', {}, {}, {}
    make_texts(source, samples)
    os.environ.update(GLOO_SOCKET_IFNAME='lo', OMP_NUM_THREADS='1')
    with worlds.World(bench, NODES, source, 'ram=64M') as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0), stderr=subprocess.DEVNULL)
        torch.multiprocessing.spawn(run_rank, ([world.path(i) for i in range(NODES)], bench.HERE, epochs), NODES)
    with open(f'{bench.HERE}/found.json') as f:
        found = json.load(f)
    for batch, window, how, epoch, seconds, costs in found:
        steps = [sum(step) for step in zip(*costs)]
        assert batches.setdefault((batch, epoch), steps) == steps, 'the plans have other global batches'
        if epoch:
            name = f'batch {batch}' + (f', window {window}' if window > 1 else '')
            times.setdefault(name, {}).setdefault(how, []).append(seconds)
            ratios.setdefault(name, {}).setdefault(how, []).append(ratio(costs, window))
    return times, ratios, SECONDS * sum(steps) / NODES


def figure_measured(bench):
    """seconds per epoch of four PyTorch ranks whose steps sleep in proportion to their cost, with and without cost="""
    plot = bench.plot
    samples, epochs = 512 if bench.quick else 2048, bench.runs
    times, ratios, least = bench.measured('steps', lambda: measure(bench, samples, 1 + epochs))
    names = [f'batch {batch}' + (f', window {window}' if window > 1 else '') for batch, window in LOADS]
    most = max(max(seconds) for plans in times.values() for seconds in plans.values())
    panel = plot.Panel(f'{NODES} PyTorch ranks, one per node', '', 'seconds per epoch', (-0.6, len(LOADS) - 0.4),
                       (0, 1.15 * most), list(enumerate(names)))
    for i, name in enumerate(names):
        for j, how in enumerate(PLANS):
            seconds = times[name][how]
            panel.median_bar(i + 0.28 * (j - 1), 0.25, seconds, j, f'{statistics.median(seconds):.2f}', 9)
            bench.say(f'{name}, {how}: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), '
                      f'slowest rank / mean of the costs {statistics.mean(ratios[name][how]):.3f}')
    for colour, how in enumerate(PLANS):
        panel.name(colour, how)
    panel.rule(least, 'all ranks cost the same, and nothing else takes time')
    bench.write('cost-steps', [[panel]],
                f'{samples:,} cached samples with log-normal costs (sigma 0.9). A step lasts {1e6 * SECONDS:g} µs per '
                'unit of its cost, and each window ends with an all-reduce by gloo. All plans have the same global '
                'batches. Epochs of the plans take turns.')
