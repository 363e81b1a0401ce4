"""The storage wall (Yang and Cong, figures 1 and 8 to 12): nodes that train from one slow source, by the source alone,
through dealfs by regular lists (equation 7) and by locality (equation 8).

The source is throttled by one token bucket for all nodes; the nodes are network namespaces with links of their own;
computing is sleep, so that the cores, which all nodes share, count little. Ranks drop the pages of what they have
read."""
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import time

import training
import worlds
from slow import Slow

WAYS = ['source', 'regular', 'locality']
FURTHER = [1, 2, 4, 8, 16, 32, 64, 128, 256]
NODES = (1, 2, 4, 8)
PAPER_SAMPLES = 1281167  # of ImageNet-1K: enough for a batch of 256 nodes
LINK = 0.7  # of what a node trains with, its link carries: less than regular lists need, more than locality does
WORKERS, AHEAD = 16, 16  # of a rank; batches
PAPER_RATES = ['--samples', str(PAPER_SAMPLES), '--nodes', ','.join(map(str, FURTHER)), '--train-rate', '400',
               '--storage-rate', '600', '--cache-rate', '280']


class Workload:
    """Files of `size` bytes. A node trains with `speed` samples per second in steps of `batch`, and the source delivers
    `source` samples per second to all nodes together. So few that this machine's cores, which all nodes share, have
    little to do: sleep and the limits of source and links decide."""

    def __init__(self, name, size, speed, samples, batch, source=None):
        self.name, self.size, self.speed, self.samples, self.batch = name, size, speed, samples, batch
        self.source, self.step = source or 3 * speed // 2, batch / speed
        self.link = f'{int(LINK * speed * size * 8 * 1.05 / 1000)}kbit'  # 5 %: frames and headers
        self.burst = str(batch * size)


IMAGENET = Workload('training: ImageNet-1K, 117 KB', 117000, 100, 640, 16)


class Cluster:
    """Nodes with links over a source, from their mounting on."""

    def __init__(self, bench, nodes, slow, load, options='ram=512M'):
        self.bench, self.nodes, self.slow, self.load, self.options = bench, nodes, slow, load, options

    def __enter__(self):
        with contextlib.ExitStack() as ends:
            switch, mpirun = ends.enter_context(worlds.machines(self.nodes, self.load.link, self.load.burst, '1s'))
            self.world = ends.enter_context(
                worlds.World(self.bench, self.nodes, self.slow.path, self.options, mpirun, switch))
            with open(f'{self.world.path(0)}/.dealfs/samples') as f:
                self.names = f.read().split('\n')[:-1]
            self.ends = ends.pop_all()
        return self

    def __exit__(self, *_):
        self.ends.close()

    def lists(self, epochs, keys):
        """Of each rank, a path in its own node's mount for each sample."""
        mounts = [self.world.path(rank) for rank in range(self.nodes)]
        return [[f'{mount}/{self.names[i]}' for epoch in epochs for i in training.numbers(
            mount, f'plan epoch={epoch} ranks={self.nodes} batch={self.load.batch} rank={rank} '
            f'tail=drop reply=u32 {keys}')]
                for rank, mount in enumerate(mounts)]

    def model(self, alone=False):
        """By what is measured here: seconds of an epoch by way, and the measured. Alone: others have nothing to
        give."""
        cache = ['--cache-rate', '1e12'] if alone else []
        out = json.loads(self.bench.sh(
            self.bench.DEALFS, 'model', '--calibrate', self.world.path(0), '--seconds', '1', '--json', '--nodes',
            str(self.nodes), '--train-rate', str(self.load.speed), '--batch', str(self.load.batch), *cache,
            stderr=subprocess.DEVNULL))
        cost = out['costs'][0]
        return {'source': cost['regular']['epoch'], 'regular': cost['distributed']['epoch'],
                'locality': cost['locality']['epoch']}, out['measured']


def train(bench, load, lists, epochs=1, step=None, workers=WORKERS, prepare=0):
    """Of each epoch: its seconds, those of computing, of waiting, and of the wait for its first batch."""
    steps, files = len(lists[0]) // epochs // load.batch, []
    for rank, paths in enumerate(lists):
        files.append(f'{bench.HERE}/list{rank}')
        with open(files[-1], 'w') as f:
            f.writelines(f'{path}\n' for path in paths[:epochs * steps * load.batch])
    times = f'{int(1e6 * (load.step if step is None else step))},{int(1e6 * prepare)}'
    out = bench.sh(f'{bench.PROGRAMS}/trainer', str(load.batch), times, str(workers), str(AHEAD), str(steps), *files)
    return [[float(x) for x in line.split()] for line in out.splitlines()]


def computing_and_waiting(epochs):
    """Of each epoch but the first, in which loading begins, and the last, of which a part is loaded before it."""
    return [epoch[1:3] for epoch in epochs[1:-1]]


def totals(epochs):
    return [sum(epoch) for epoch in epochs]


def files_below(path):
    return [f'{folder}/{name}' for folder, _, names in os.walk(path) for name in names]


def plain_lists(path, ranks, batch, epochs):
    """What DistributedSampler would do, without a mount."""
    paths, lists = sorted(files_below(path)), [[] for _ in range(ranks)]
    for epoch in range(epochs):
        random.Random(epoch).shuffle(paths)
        for rank in range(ranks):
            lists[rank] += paths[rank:len(paths) // (ranks * batch) * ranks * batch:ranks]
    return lists


def dataset(bench, load):
    path = f'{bench.HERE}/wall'
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    bench.sh(f'{bench.PROGRAMS}/maker', path, str(load.samples), str(load.size), '1000')
    return path


# --- training, by nodes -----------------------------------------------------------------------------------------------

def measure_nodes(bench, load, source, nodes):
    """Of one number of nodes: by way, seconds of computing and of waiting of each epoch, and those of the model; what
    was calibrated; the parts of the dataset that the first epoch and the later ones read from the source."""
    total, bars, epochs = load.samples * load.size, {}, range(1, 3 + bench.runs)
    with Slow(bench, source, load.source * load.size) as slow:
        bars['source'] = computing_and_waiting(train(
            bench, load, plain_lists(slow.path, nodes, load.batch, len(epochs)), len(epochs)))
        with Cluster(bench, nodes, slow, load) as cluster:
            before = slow.read()
            train(bench, load, cluster.lists([0], 'mode=locality'))
            filled = slow.read()
            for way in 'regular', 'locality':
                bars[way] = computing_and_waiting(train(
                    bench, load, cluster.lists(epochs, f'mode={way}'), len(epochs)))
            later = slow.read()
            by_model, measured = cluster.model(nodes == 1)
    return {'bars': bars, 'model': by_model, 'measured': measured, 'first': (filled - before) / total,
            'later': (later - filled) / total}


def further(bench, load, measured, grows):
    """By way, the model's seconds of an epoch for more nodes, by the rates of a node that were measured. The network's
    total bandwidth grows with the nodes, or it does not."""
    p, costs = measured['nodes'], []
    for n in FURTHER:
        factor = n / p if grows else 1
        out = json.loads(bench.sh(
            bench.DEALFS, 'model', '--json', '--nodes', str(n), '--samples', str(PAPER_SAMPLES), '--batch',
            str(load.batch), '--train-rate', str(load.speed), '--storage-rate', str(measured['storage_rate']),
            '--cache-rate', str(measured['cache_rate'] * factor),
            '--balance-rate', str(measured['balance_rate'] * factor)))
        costs.append({way: load.samples / PAPER_SAMPLES * out['costs'][0][name]['epoch']
                      for way, name in zip(WAYS, ('regular', 'distributed', 'locality'))})
    return costs


COMPUTING, WAITING, STAGING = 5, 3, 4  # colours
NODE_TICKS = [(n, n) for n in FURTHER]
NAMES = {'source': 'the source alone', 'regular': 'dealfs, regular lists', 'locality': 'dealfs, locality'}


def line_panel(bench, load, found):
    """Measured points on the model's lines."""
    grow, fixed = (further(bench, load, found[max(found)]['measured'], grows) for grows in (True, False))
    values = [cost[way] for cost in grow + fixed for way in WAYS]
    panel = bench.plot.Panel(load.name, 'nodes', 'seconds per epoch', (0.8, 320), (min(values) / 2, max(values) * 2),
                             NODE_TICKS, logarithmic=True)
    for colour, way in enumerate(WAYS):
        panel.medians([(p * 1.06 ** (colour - 1), totals(f['bars'][way])) for p, f in found.items()], colour,
                      NAMES[way], joined=False)
        panel.line([(n, cost[way]) for n, cost in zip(FURTHER, grow)], colour, dashed=True)
    for colour, way in ((7, 'regular'), (6, 'locality')):
        panel.line([(n, cost[way]) for n, cost in zip(FURTHER, fixed) if n >= max(found)], colour,
                   f'{way}, Rc fixed', dashed=True)
    return panel


def bar_panel(bench, found):
    most = 1.15 * max(total for f in found.values() for way in WAYS for total in totals(f['bars'][way]))
    panel = bench.plot.Panel('computing and waiting', 'nodes; in turn: source, regular, locality', 'seconds per epoch',
                             (-0.6, len(found) - 0.4), (0, most), list(enumerate(found)))
    for i, f in enumerate(found.values()):
        for j, way in enumerate(WAYS):
            epochs = f['bars'][way]
            panel.bar(i + 0.28 * (j - 1), 0.24, [statistics.median(epoch[k] for epoch in epochs) for k in (0, 1)],
                      (COMPUTING, WAITING))
            panel.spread(i + 0.28 * (j - 1), totals(epochs), '#000')
    panel.name(COMPUTING, 'computing')
    panel.name(WAITING, 'waiting for samples')
    return panel


def figure(bench):
    """the storage wall: an epoch by nodes, from the source alone and through dealfs; as root"""
    source = dataset(bench, IMAGENET)
    found = {p: bench.measured(f'{p} nodes', lambda: measure_nodes(bench, IMAGENET, source, p)) for p in NODES}
    for p, f in found.items():
        bench.say(p, 'nodes:', ', '.join(
            f'{way} {statistics.median(totals(f["bars"][way])):.2f} s (model {f["model"][way]:.2f})' for way in WAYS),
            f'; read from the source: first epoch {f["first"]:.3f} x, later {f["later"]:.3f} x')
    bench.write('storage-wall', [[line_panel(bench, IMAGENET, found), bar_panel(bench, found)]],
                'Points and bars are measured: nodes are network namespaces of one machine, and computing is sleep. '
                f'A node trains with {IMAGENET.speed} samples per second. The source is throttled to '
                f'{IMAGENET.source} per second for all nodes together; a link carries {int(LINK * IMAGENET.speed)} per '
                'second.',
                'Dashed lines: dealfs model, with the rates of a node measured in the world of 8. It assumes a '
                'network whose total bandwidth grows with the nodes. Rc fixed: the network carries only as much as it '
                'carried for 8 nodes.')


# --- loading alone, by sizes ------------------------------------------------------------------------------------------

PREPARE = 0.02  # seconds per sample
LOADERS, THREADS = 2, (0, 4)  # of a rank; of each of them
LOADING_NODES = (2, 4, 8)
SIZES = {'ImageNet-1K, 117 KB': 117000, 'UCF101-RGB, 24.2 KB': 24200, 'UCF101-FLOW, 4.6 KB': 4600,
         'MuMMI, 131 KB': 131000}
LOADED = ('source', 'locality')


def load_nodes(bench, load, source, nodes):
    """By way and threads: seconds of each epoch of loading alone."""
    found, epochs = {}, range(1, 3 + bench.runs)
    with Slow(bench, source, load.source * load.size) as slow, Cluster(bench, nodes, slow, load) as cluster:
        bench.sh(bench.DEALFS, 'stage', cluster.world.path(0), stderr=subprocess.DEVNULL)
        lists = {'source': plain_lists(slow.path, nodes, load.batch, len(epochs)),
                 'locality': cluster.lists(epochs, 'mode=locality')}
        for way in LOADED:
            for threads in THREADS:
                found[f'{way} {threads}'] = load_epochs(bench, load, lists[way], len(epochs), threads, way)
    return found


def load_epochs(bench, load, lists, epochs, threads, way):
    """Seconds of each epoch. By locality without preparing, epochs of milliseconds end in bursts: then the mean of each
    training."""
    prepare = 0 if 'MuMMI' in load.name else PREPARE

    def trained():
        return [time[0] for time in train(bench, load, lists, epochs, 0, LOADERS * max(threads, 1), prepare)]
    if prepare or way == 'source':
        return trained()[1:-1]
    return [statistics.mean(trained()) for _ in range(bench.runs)]


def size_panel(bench, name, found):
    values = [time for f in found.values() for times in f.values() for time in times]
    panel = bench.plot.Panel(name, 'nodes', 'seconds per epoch', (1.6, 10), (min(values) / 1.3, max(values) * 1.3),
                             [(n, n) for n in LOADING_NODES], logarithmic=True)
    for colour, key in enumerate(f'{way} {threads}' for way in LOADED for threads in THREADS):
        way, threads = key.split()
        panel.medians([(p * 1.03 ** (colour - 1.5), f[key]) for p, f in found.items()], colour,
                      f'{NAMES[way]}, threads {threads}')
    return panel


def figure_sizes(bench):
    """loading alone for samples of four sizes, by nodes and threads, from the source and by locality; as root"""
    panels = []
    for name, size in SIZES.items():
        load = Workload(name, size, 1000, 256, 16, 300)
        source = None
        found = {}
        for p in LOADING_NODES:
            if f'{name} {p}' not in bench.results:
                source = source or dataset(bench, load)
            found[p] = bench.measured(f'{name} {p}', lambda: load_nodes(bench, load, source, p))
        panels.append(size_panel(bench, name, found))
    bench.write('storage-wall-sizes', [panels[:2], panels[2:]],
                f'Loading without training. Files of the paper\'s sizes with random bytes; the source is throttled to '
                '300 samples per second for all nodes together, whatever their size. The nodes are network namespaces '
                f'of one machine. Each has {LOADERS} workers, which prepare a sample in {1000 * PREPARE:.0f} ms '
                '(sleep; none for MuMMI, as in the paper). Threads 0: a worker loads one sample after the other. '
                'Threads 4: four concurrently. The tiers are staged.',
                'The network\'s total bandwidth grows with the nodes: each has a link of its own. Without preparing '
                '(MuMMI), the processors of this machine, which all nodes share, limit locality.')


# --- shards too small, and the first epoch ----------------------------------------------------------------------------

PARTS = [0, 0.25, 0.5, 0.75, 1]
SMALL_NODES = 4


def measure_part(bench, source, part):
    """Where the nodes keep only this part of the dataset: by way as above, and that part as it was measured."""
    load, total = IMAGENET, IMAGENET.samples * IMAGENET.size
    ram = f'ram={int(part * total / SMALL_NODES * 1.02) if part < 1 else "512M"}'
    epochs = range(1, 3 + bench.runs)
    with Slow(bench, source, load.source * load.size) as slow, Cluster(bench, SMALL_NODES, slow, load, ram) as cluster:
        train(bench, load, cluster.lists([0], 'mode=locality'))
        before, bars = slow.read(), {}
        for way in 'regular', 'locality':
            bars[way] = totals(computing_and_waiting(train(
                bench, load, cluster.lists(epochs, f'mode={way}'), len(epochs))))
        read = (slow.read() - before) / 2 / len(epochs) / total
        by_model, measured = cluster.model(part == 0)
    return {'bars': bars, 'model': by_model, 'measured': measured, 'read': read}


def at_once(load, measured):
    """Seconds of an epoch by regular lists, if loaders wait for source and peers concurrently. The equation adds both
    times; here only the longer one counts."""
    kept, nodes, rate = measured['cached'], SMALL_NODES, measured['cache_rate']
    peers = kept * load.samples / rate * (nodes - 1) / nodes if rate else 0  # None: nothing is cached
    return max(load.samples / nodes / load.speed, (1 - kept) * load.samples / measured['storage_rate'], peers)


# With few workers and a slow source, reading ahead matters most.
SLOW_MS, FEW = 50, 2


def measure_first(bench, source, way):
    """Seconds until the first epoch has ended: what is read before it, and the epoch."""
    load = IMAGENET
    with Slow(bench, source, load.source * load.size, SLOW_MS) as slow, \
            Cluster(bench, SMALL_NODES, slow, load) as cluster:
        began = time.monotonic()
        if way == 'staged first':
            bench.sh(bench.DEALFS, 'stage', cluster.world.path(0), stderr=subprocess.DEVNULL)
        lists = cluster.lists([0], 'mode=locality' + (' feed=yes' if way == 'fed' else ''))
        before = time.monotonic() - began
        _, computing, waiting, _ = train(bench, load, lists, workers=FEW)[0]
        return [before, computing, waiting], slow.read() / load.samples / load.size


def part_panel(bench, found):
    most = 1.1 * max(max(f['bars'][way] + [f['model'][way], at_once(IMAGENET, f['measured'])])
                     for f in found for way in WAYS[1:])
    panel = bench.plot.Panel(f'{SMALL_NODES} nodes that cache a part of the dataset', 'cached part',
                             'seconds per epoch', (-0.05, 1.05), (0, most), [(a, f'{a:g}') for a in PARTS])
    for colour, way in enumerate(WAYS[1:], 1):
        panel.medians([(f['measured']['cached'] + 0.01 * (2 * colour - 3), f['bars'][way]) for f in found], colour,
                      NAMES[way], joined=False)
    for colour, way in enumerate(WAYS[1:], 1):
        panel.line([(f['measured']['cached'], f['model'][way]) for f in found], colour,
                   f'equation {6 + colour}: waits add up', dashed=True)
    panel.line([(f['measured']['cached'], at_once(IMAGENET, f['measured'])) for f in found], 5,
               'waits for source and peers at once', dashed=True)
    return panel


def first_panel(bench, found):
    panel = bench.plot.Panel(f'time to the end of the first epoch, {FEW} workers per node', '', 'seconds',
                             (-0.6, len(found) - 0.4), (0, 1.15 * max(sum(r) for runs in found.values() for r in runs)),
                             list(enumerate(found)))
    for i, runs in enumerate(found.values()):
        panel.bar(i, 0.5, [statistics.median(r[j] for r in runs) for j in range(3)], (STAGING, COMPUTING, WAITING))
        seconds = [sum(r) for r in runs]
        panel.spread(i, seconds)
        panel.text(panel.px(i), panel.py(max(seconds)) - 5, f'{statistics.median(seconds):.1f} s')
    for colour, name in ((STAGING, 'staging'), (COMPUTING, 'computing'), (WAITING, 'waiting for samples')):
        panel.name(colour, name)
    return panel


def figure_first(bench):
    """shards too small for the dataset; the first epoch on the fly, fed, and staged before; as root"""
    source, parts, first = dataset(bench, IMAGENET), [], {}
    for part in PARTS:
        f = bench.measured(f'part {part}', lambda: measure_part(bench, source, part))
        parts.append(f)
        bench.say(f'part {f["measured"]["cached"]:.3f}:', ', '.join(
            f'{way} {statistics.median(f["bars"][way]):.2f} s (model {f["model"][way]:.2f}, '
            f'{statistics.median(f["bars"][way]) / f["model"][way] - 1:+.0%})' for way in WAYS[1:]),
            f'; at once {at_once(IMAGENET, f["measured"]):.2f}; an epoch reads {f["read"]:.3f} x from the source')
    for run in range(bench.runs):
        for way in 'on the fly', 'fed', 'staged first':
            times, read = bench.measured(f'{way} run {run}', lambda: measure_first(bench, source, way))
            first.setdefault(way, []).append(times)
            bench.say(f'{way}: {sum(times):.2f} s, of which {times[2]:.2f} waiting; read {read:.3f} x from the source')
    bench.write('storage-wall-first', [[part_panel(bench, parts), first_panel(bench, first)]],
                f'Samples of {IMAGENET.size // 1000} KB; nodes, source and links as in the figure of the storage wall.',
                'Left: points are measured. Coloured lines: dealfs model. The paper\'s equation adds the time of the '
                'source to that of the peers, and is up to about 40 % above the measurement. Loaders wait for both '
                'concurrently: the grey line, the slower of the two, is what they take.',
                f'Right: the source also takes {SLOW_MS} ms for each read (simulated).')
