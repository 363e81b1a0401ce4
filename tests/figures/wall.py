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
import subprocess
import time

import training
import worlds
from slow import Slow

WAYS = ['source', 'regular', 'locality']
FURTHER = [1, 2, 4, 8, 16, 32, 64, 128, 256]
PAPER_SAMPLES = 1281167  # of ImageNet-1K: enough for a batch of 256 nodes
LINK = 0.7  # of what a node trains with, its link carries: less than regular lists need, more than locality does
WORKERS, AHEAD = 16, 16  # of a rank; batches


class Workload:
    """Of the paper: the bytes of a sample, and how many times as fast it was by locality, with how many nodes. A node
    trains with `speed` samples a second, in steps of 40 ms, and the source gives half as many again, to all of them."""

    def __init__(self, name, size, nodes, times, speed, samples):
        self.name, self.size, self.nodes, self.times = name, size, nodes, times
        self.speed, self.source, self.batch, self.samples = speed, 3 * speed // 2, speed // 25, samples
        self.step = self.batch / speed
        self.link = f'{int(LINK * speed * size * 8 * 1.05 / 1000)}kbit'  # 5 %: frames and headers
        self.burst = str(self.batch * size)


IMAGENET = Workload('ImageNet-1K, 117 KB', 117000, 256, 34, 400, 2560)
PAPER_RATES = ['--samples', str(PAPER_SAMPLES), '--nodes', ','.join(map(str, FURTHER)), '--train-rate',
               str(IMAGENET.speed), '--storage-rate', str(IMAGENET.source), '--cache-rate',
               str(int(LINK * IMAGENET.speed))]
OTHERS = [Workload('UCF101-RGB, 24.2 KB', 24200, 256, 55, 800, 2560),
          Workload('UCF101-FLOW, 4.6 KB', 4600, 256, 60, 800, 2560),
          Workload('MuMMI, 131 KB', 131000, 128, 120, 400, 1280)]


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
        return [[f'{mount}/{self.names[i]}' for epoch in epochs for i in training.ask(
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


def train(bench, load, lists, epochs=1, step=None, workers=WORKERS):
    """Seconds of each epoch, of computing, of waiting, and of the wait for its first batch."""
    steps, files = len(lists[0]) // epochs // load.batch, []
    for rank, paths in enumerate(lists):
        files.append(f'{bench.HERE}/list{rank}')
        with open(files[-1], 'w') as f:
            f.writelines(f'{path}\n' for path in paths[:epochs * steps * load.batch])
    out = bench.sh(f'{bench.PROGRAMS}/trainer', str(load.batch), str(int(1e6 * (load.step if step is None else step))),
                   str(workers), str(AHEAD), str(steps), *files)
    return [[float(x) for x in line.split()] for line in out.splitlines()]


def mean(epochs):
    """Seconds of computing and of waiting. Many are counted without the first, in which loading begins, and the last,
    of which a part is loaded before it; of few, both together."""
    counted = epochs[1:-1] or epochs
    return [sum(epoch[i] for epoch in counted) / len(counted) for i in (1, 2)]


def files_below(path):
    return [f'{folder}/{name}' for folder, _, names in os.walk(path) for name in names]


def plain_lists(path, ranks):
    """What DistributedSampler would do, without a mount."""
    paths = files_below(path)
    random.Random(1).shuffle(paths)
    return [paths[rank:len(paths) // ranks * ranks:ranks] for rank in range(ranks)]


def dataset(bench, load):
    path = f'{bench.HERE}/wall'
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    bench.sh(f'{bench.PROGRAMS}/maker', path, str(load.samples), str(load.size), '1000')
    return path


# --- by nodes ---------------------------------------------------------------------------------------------------------

def measure_nodes(bench, load, source, nodes):
    """Of one number of nodes: by way, seconds of computing and of waiting of an epoch after the first, and those of
    the model; what was calibrated; the parts of the dataset that the first epoch and the later ones read from the
    source."""
    total, bars, epochs = load.samples * load.size, {}, range(1, 1 + (nodes if nodes < 3 else nodes + 1))
    with Slow(bench, source, load.source * load.size) as slow:
        bars['source'] = mean(train(bench, load, plain_lists(slow.path, nodes)))
        with Cluster(bench, nodes, slow, load) as cluster:
            before = slow.read()
            train(bench, load, cluster.lists([0], 'mode=locality'))
            filled = slow.read()
            for way in 'regular', 'locality':
                bars[way] = mean(train(bench, load, cluster.lists(epochs, f'mode={way}'), len(epochs)))
            later = slow.read()
            by_model, measured = cluster.model(nodes == 1)
    return {'bars': bars, 'model': by_model, 'measured': measured, 'first': (filled - before) / total,
            'later': (later - filled) / total}


def measure(bench, say, load, nodes=(1, 2, 4, 8)):
    source, found = dataset(bench, load), {}
    unthrottled = load.samples / train(bench, load, plain_lists(source, nodes[-1]), step=0)[0][0]
    say(f'{load.name}: unthrottled, {nodes[-1]} nodes read {unthrottled:.0f} samples/s; '
        f'the source gives {load.source}')
    for p in nodes:
        f = found[p] = measure_nodes(bench, load, source, p)
        say(f'{p} nodes:', ', '.join(
            f'{way} {sum(f["bars"][way]):.2f} s (model {f["model"][way]:.2f}, '
            f'{sum(f["bars"][way]) / f["model"][way] - 1:+.0%})' for way in WAYS),
            f'; read from the source: first epoch {f["first"]:.3f} x, later {f["later"]:.3f} x')
    return found


def further(bench, load, measured):
    """By way, the model's seconds of an epoch for more nodes, by the rates of a node that were measured."""
    p, costs = measured['nodes'], []
    for n in FURTHER:
        out = json.loads(bench.sh(
            bench.DEALFS, 'model', '--json', '--nodes', str(n), '--samples', str(PAPER_SAMPLES), '--batch',
            str(load.batch), '--train-rate', str(load.speed), '--storage-rate', str(measured['storage_rate']),
            '--cache-rate', str(measured['cache_rate'] / p * n),
            '--balance-rate', str(measured['balance_rate'] / p * n)))
        costs.append({way: load.samples / PAPER_SAMPLES * out['costs'][0][name]['epoch']
                      for way, name in zip(WAYS, ('regular', 'distributed', 'locality'))})
    return costs


# --- shards too small, and the first epoch ----------------------------------------------------------------------------

PARTS = [0, 0.25, 0.5, 0.75, 1]
SMALL_NODES = 4


def measure_part(bench, source, part):
    """Where the nodes keep only this part of the dataset: by way as above, and that part as it came out."""
    load, total = IMAGENET, IMAGENET.samples * IMAGENET.size
    ram = f'ram={int(part * total / SMALL_NODES * 1.02) if part < 1 else "512M"}'
    with Slow(bench, source, load.source * load.size) as slow, Cluster(bench, SMALL_NODES, slow, load, ram) as cluster:
        train(bench, load, cluster.lists([0], 'mode=locality'))
        before, bars = slow.read(), {}
        for way in 'regular', 'locality':
            bars[way] = mean(train(bench, load, cluster.lists([1, 2, 3], f'mode={way}'), 3))
        read = (slow.read() - before) / 6 / total
        by_model, measured = cluster.model(part == 0)
    return {'bars': bars, 'model': by_model, 'cached': measured['cached'], 'read': read}


# A loader of few workers, and a source that takes its time for each: what is asked for early counts.
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


def part_panel(plot, found):
    most = 1.5 * max(sum(bar) for f in found for bar in f['bars'].values())
    panel = plot.Panel(f'{SMALL_NODES} nodes that keep a part of the dataset', 'part kept', 'seconds an epoch',
                       (-0.05, 1.05), (0, most), [(a, f'{a:g}') for a in PARTS])
    for colour, way in enumerate(WAYS[1:], 1):
        points = sorted((f['cached'], f['model'][way], sum(f['bars'][way])) for f in found)
        panel.line([point[:2] for point in points], colour, NAMES[way], dashed=True)
        for cached, _, measured in points:
            panel.mark(cached, measured, colour)
    panel.legend_at = 'top'
    return panel


def first_panel(plot, found):
    panel = plot.Panel(f'to the end of the first epoch, {FEW} workers per node', '', 'seconds',
                       (-0.6, len(found) - 0.4), (0, 1.4 * max(map(sum, found.values()))), list(enumerate(found)))
    for i, bar in enumerate(found.values()):
        panel.bar(i, 0.5, bar, (STAGING, COMPUTING, WAITING))
        panel.text(panel.px(i), panel.py(sum(bar)) - 5, f'{sum(bar):.1f} s')
    for colour, name in ((STAGING, 'staging'), (COMPUTING, 'computing'), (WAITING, 'waiting for samples')):
        panel.name(colour, name)
    panel.legend_at = 'top'
    return panel


def figure_first(bench, plot, say, made_by, figures):
    source, parts, first = dataset(bench, IMAGENET), [], {}
    for part in PARTS:
        f = measure_part(bench, source, part)
        parts.append(f)
        say(f'part {f["cached"]:.3f}:', ', '.join(
            f'{way} {sum(f["bars"][way]):.2f} s (model {f["model"][way]:.2f}, '
            f'{sum(f["bars"][way]) / f["model"][way] - 1:+.0%})' for way in WAYS[1:]),
            f'; an epoch reads {f["read"]:.3f} x from the source')
    for way in 'on the fly', 'fed', 'staged first':
        first[way], read = measure_first(bench, source, way)
        say(f'{way}: {sum(first[way]):.2f} s, of which {first[way][2]:.2f} waiting; read {read:.3f} x from the source')
    plot.write(f'{figures}/storage-wall-first.svg', [[part_panel(plot, parts), first_panel(plot, first)]],
               [f'Samples of {IMAGENET.size // 1000} KB; source and links as in the figure of the storage wall. '
                'Points and bars: measured; lines: dealfs model,',
                'which adds up what a node waits for source and peers; it asks both at once. '
                f'Right: the source takes {SLOW_MS} ms for each read, too.', made_by])


COMPUTING, WAITING, STAGING = 5, 3, 4  # colours
NODE_TICKS = [(n, n) for n in FURTHER]
NAMES = {'source': 'the source alone', 'regular': 'dealfs, regular lists', 'locality': 'dealfs, locality'}


def line_panel(plot, bench, load, found):
    """Measured points on the model's lines."""
    costs = further(bench, load, found[max(found)]['measured'])
    values = [cost[way] for cost in costs for way in WAYS]
    panel = plot.Panel(load.name, 'nodes', 'seconds an epoch', (0.8, 320), (min(values) / 4, max(values) * 2),
                       NODE_TICKS, logarithmic=True)
    for colour, way in enumerate(WAYS):
        panel.line([(n, cost[way]) for n, cost in zip(FURTHER, costs)], colour, dashed=True)
        for p, f in found.items():
            panel.mark(p, sum(f['bars'][way]), colour)
        panel.name(colour, NAMES[way])
    return panel


def bar_panel(plot, load, found):
    most = 1.5 * max(sum(f['bars'][way]) for f in found.values() for way in WAYS)
    panel = plot.Panel('computing and waiting', 'nodes; in turn: source, regular, locality', 'seconds an epoch',
                       (-0.6, len(found) - 0.4), (0, most), list(enumerate(found)))
    for i, f in enumerate(found.values()):
        for j, way in enumerate(WAYS):
            panel.bar(i + 0.28 * (j - 1), 0.24, f['bars'][way], (COMPUTING, WAITING))
    panel.name(COMPUTING, 'computing')
    panel.name(WAITING, 'waiting for samples')
    panel.legend_at = 'top'
    return panel


def gain_panel(plot, bench, found):
    """How many times as fast an epoch is by locality as from the source."""
    panel = plot.Panel('an epoch by locality', 'nodes', 'times as fast as from the source', (0.8, 320), (0.5, 3000),
                       NODE_TICKS, logarithmic=True)
    for colour, (load, by_nodes) in enumerate(found.items()):
        costs = further(bench, load, by_nodes[max(by_nodes)]['measured'])
        panel.line([(n, cost['source'] / cost['locality']) for n, cost in zip(FURTHER, costs)], colour, load.name,
                   dashed=True)
        for p, f in by_nodes.items():
            panel.mark(p, sum(f['bars']['source']) / sum(f['bars']['locality']), colour)
        panel.text(panel.px(load.nodes), panel.py(load.times) + 4, '×', size=15)
        panel.text(panel.px(load.nodes) - 8, panel.py(load.times) + 4, load.times, size=10, anchor='end')
    panel.legend_at = 'top'
    return panel


NOTES = ['Points and bars: measured. The nodes are network namespaces of this machine; computing is sleep.',
         'To all nodes together the source gives 1.5 times what one node trains with; a link carries 0.7 of that.',
         'Lines: dealfs model, with the rates of a node that were measured in the world of 8.']


def figure(bench, plot, say, made_by, figures):
    found = measure(bench, say, IMAGENET)
    plot.write(f'{figures}/storage-wall.svg', [[line_panel(plot, bench, IMAGENET, found),
                                                bar_panel(plot, IMAGENET, found)]], [*NOTES, made_by])


def figure_sizes(bench, plot, say, made_by, figures):
    found = {load: measure(bench, say, load) for load in OTHERS}
    plot.write(f'{figures}/storage-wall-sizes.svg',
               [[line_panel(plot, bench, load, found[load]) for load in OTHERS],
                [bar_panel(plot, load, found[load]) for load in OTHERS],
                [gain_panel(plot, bench, {IMAGENET: measure(bench, say, IMAGENET, (8,)), **found})]],
               [*NOTES, '×: what the paper has, on its machine, for loading without training.', made_by])
