"""Partial-local shuffle (Nguyen et al.): accuracy by the part Q that is exchanged before each epoch (figure 5 of the
paper), the parts of an epoch by Q and the overlap of exchange and training (figures 10 and 4), and the seconds of an
epoch by workers (figure 9).

The ranks, one per node, are threads of one process that read their lists, each from the mount of its node. Computing
is sleep. An exchange for an epoch is requested when the one before begins, as dealfs.torch.Sampler does it."""
import contextlib
import json
import os
import shutil
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import training
import worlds
from drawing import K

PARTS = ['global', '0', '0.01', '0.1', '0.3', '1']
LEARNED = ['global', '0', '0.01', '0.1', '1']
SORTED = [(0, 1), (2, 3), (4, 5), (6, 7)]
OPTIONS = 'ram=512M,exchange'
SIZE, SAMPLES, STEPS, SECONDS = 112 * K, 400, 40, 5.2  # of the epochs whose time is measured; samples per worker
RATE = 12  # MiB per second that a node takes while samples move
WORKERS = (2, 4, 8)
BY_WORKERS = ('global', '0.1')


class World(worlds.World):
    """Nodes of this machine. With `classes` each node caches only what it reads before the nodes are joined."""

    def __init__(self, bench, nodes, source, options, classes=None):
        super().__init__(bench, nodes, source, options)
        self.source, self.options, self.classes = source, options, classes
        self.paths = [self.path(node) for node in range(nodes)]

    def __enter__(self):
        if self.classes:
            for node, path in enumerate(self.paths):
                os.makedirs(path, exist_ok=True)
                self.bench.sh(self.bench.DEALFS, 'mount', '-o', f'state={self.base}/state{node},{self.options}',
                              self.source, path)
                for c in self.classes[node]:
                    for name in os.listdir(f'{path}/class{c}'):
                        training.read(path, f'class{c}/{name}')
            self.command = [self.bench.DEALFS, 'join', f'{self.base}/node%r']
        super().__enter__()
        if not self.classes:
            self.bench.sh(self.bench.DEALFS, 'stage', self.path(0))
        return self


def dataset(bench, name, per_class, size):
    path = f'{bench.HERE}/{name}'
    shutil.rmtree(path, ignore_errors=True)
    training.make(path, per_class, size)
    return path


# --- accuracy ---

def accuracies(bench, source, epochs, batch):
    """For random parts and for sorted ones, by Q: for each seed, the accuracy after each epoch."""
    found = {'random parts': {}, 'parts sorted by class': {}}
    for seed in range(bench.runs):
        kept = bench.has(f'random {how} seed {seed}' for how in LEARNED)
        with contextlib.nullcontext() if kept else World(bench, 4, source, OPTIONS) as world:
            for i, how in enumerate(LEARNED):  # parts that are random stay random, whatever was exchanged before
                found['random parts'].setdefault(how, []).append(bench.measured(
                    f'random {how} seed {seed}', lambda: [a[1] for a in training.train(
                        world.paths, epochs, batch, how, 1000 * i, 1 + seed)]))
        for how in LEARNED:
            def from_sorted():
                with World(bench, 4, source, OPTIONS, SORTED) as world:
                    return [a[1] for a in training.train(world.paths, epochs, batch, how, 0, 1 + seed)]
            found['parts sorted by class'].setdefault(how, []).append(
                bench.measured(f'sorted {how} seed {seed}', from_sorted))
    return found


def accuracy_panel(plot, title, lines):
    epochs = len(next(iter(lines.values()))[0])
    panel = plot.Panel(title, 'epoch', 'accuracy', (0, epochs + 1), (0.2, 0.8))
    for colour, (how, seeds) in enumerate(lines.items()):
        panel.line([(i + 1, statistics.median(a[i] for a in seeds)) for i in range(epochs)], colour,
                   'global shuffling' if how == 'global' else f'Q = {how}')
        for i in range(3 + colour % 4, epochs, 4):
            panel.spread(i + 1, [a[i] for a in seeds], plot.COLOURS[colour])
    return panel


# --- time ---

def read_batches(mount, names, mine, batch, batches):
    """A rank's loader: reads its epoch, and adds each batch when it is there."""
    for i in range(0, len(mine), batch):
        for k in mine[i:i + batch]:
            training.read(mount, names[k])
        batches.release()


def run_epoch(paths, names, lists, batch, compute):
    """Seconds of waiting for samples and of computing. Reading ahead is bounded by nothing but the epoch."""
    ready, waited, computed = [threading.Semaphore(0) for _ in paths], 0.0, 0.0
    with ThreadPoolExecutor(len(paths)) as pool:
        reads = [pool.submit(read_batches, path, names, mine, batch, one)
                 for path, mine, one in zip(paths, lists, ready)]
        for _ in range(len(lists[0]) // batch):
            at = time.monotonic()
            for one, read in zip(ready, reads):
                while not one.acquire(timeout=1):
                    if read.done():
                        read.result()
            waited += time.monotonic() - at
            at = time.monotonic()
            time.sleep(compute)
            computed += time.monotonic() - at
        for read in reads:
            read.result()
    return waited, computed


class Exchange:
    """Requested in the background of an epoch, for the next one."""

    def __init__(self, mount, epoch, how):
        self.request = f'exchange epoch={epoch} fraction={how}' if how not in ('global', '0') else None
        self.thread = threading.Thread(target=self.ask, args=(mount,))
        self.layout = None
        self.thread.start()

    def ask(self, mount):
        if self.request:
            self.layout = json.loads(training.ask(mount, self.request))['layout']

    def keys(self):
        self.thread.join()
        return f' layout={self.layout}' if self.layout else ''


def epoch_times(world, how, steps, compute, epochs, first):
    """For each epoch but the first: seconds of planning and waiting for the exchange, of waiting for samples, of
    computing; and when the move that runs meanwhile ended, in seconds after the epoch's begin."""
    with open(f'{world.path(0)}/.dealfs/samples') as f:
        names = f.read().split('\n')[:-1]
    batch, found = len(names) // world.nodes // steps, []
    exchange = Exchange(world.path(0), first, '0')
    for epoch in range(first, first + epochs + 1):
        at = time.monotonic()
        mode = 'mode=regular' if how == 'global' else 'mode=local' + exchange.keys()
        lists = training.lists_of(world.paths, epoch, batch, mode)
        planning = time.monotonic() - at
        exchange = Exchange(world.path(0), epoch + 1, how)
        waited, computed = run_epoch(world.paths, names, lists, batch, compute)
        move = world.status(0)['move']
        assert move['state'] != 'moving', 'the epoch is shorter than the move'
        moved = move['elapsed'] / 1e9 if exchange.request else 0
        found.append([planning, waited, computed, moved])
    exchange.thread.join()
    return found[1:]


def times(bench, workers, parts):
    """By Q: for each epoch, what epoch_times returns. The samples per worker are the same for any number of them."""
    keys = {how: f'{workers} workers {how}' for how in parts}
    if bench.has(keys.values()):
        return {how: bench.measured(key, None) for how, key in keys.items()}
    source = dataset(bench, 'large', SAMPLES * workers // 8, SIZE)
    with World(bench, workers, source, f'{OPTIONS},exchange_rate={RATE}M') as world:
        return {how: bench.measured(key, lambda: epoch_times(
            world, how, STEPS, SECONDS / STEPS, bench.runs, 1000 * i)) for i, (how, key) in enumerate(keys.items())}


NAMES = ('planning and waiting for the exchange', 'waiting for samples', 'computing',
         'moving samples in the background')


def part_panel(plot, times):
    """Of each Q two bars from 0: the epoch, and what moves while it runs."""
    most = max(sum(epoch[:3]) for epochs in times.values() for epoch in epochs)
    panel = plot.Panel('parts of an epoch, and the exchange', 'Q', 'seconds after the start of the epoch',
                       (-0.6, len(times) - 0.4), (0, 1.15 * most), list(enumerate(times)))
    for i, epochs in enumerate(times.values()):
        columns = [[epoch[j] for epoch in epochs] for j in range(4)]
        panel.bar(i - 0.12, 0.44, [statistics.median(column) for column in columns[:3]])
        panel.spread(i - 0.12, [sum(epoch[:3]) for epoch in epochs])
        if any(columns[3]):
            panel.median_bar(i + 0.24, 0.2, columns[3], 3)
    for colour, name in enumerate(NAMES):
        panel.name(colour, name)
    return panel


def planning_panel(plot, times):
    shares = {how: [100 * epoch[0] / sum(epoch[:3]) for epoch in epochs] for how, epochs in times.items()}
    panel = plot.Panel('planning and waiting for the exchange', 'Q', '% of the epoch', (-0.6, len(times) - 0.4),
                       (0, max(1.1, *(1.1 * max(share) for share in shares.values()))), list(enumerate(times)))
    panel.medians(list(enumerate(shares.values())), 0, 'of the epoch', joined=False)
    panel.rule(1, '1 %', 1)
    return panel


def worker_panel(plot, found):
    most = max(sum(epoch[:3]) for times in found.values() for epochs in times.values() for epoch in epochs)
    panel = plot.Panel('time of an epoch, by workers', f'workers, {SAMPLES} samples each', 'seconds', (1, 9),
                       (0, 1.1 * most), [(w, w) for w in WORKERS])
    for colour, how in enumerate(BY_WORKERS):
        panel.medians([(w + 0.12 * (colour - 1), [sum(epoch[:3]) for epoch in found[w][how]]) for w in WORKERS],
                      colour, 'global shuffling' if how == 'global' else f'Q = {how}')
    return panel


def figure(bench):
    """partial-local shuffle: accuracy by exchanged fraction, for random parts and for parts sorted by class"""
    per_class, epochs = (100, 8) if bench.quick else (100, 10)
    accuracy = accuracies(bench, dataset(bench, 'small', per_class, 2 * K), epochs, 8)
    bench.write('partial-shuffle', [[accuracy_panel(bench.plot, *item) for item in accuracy.items()]],
                f'A small network learns {8 * per_class} samples of 8 classes, 4 nodes, batches of 8 per rank, batch '
                f'normalization per rank; {bench.runs} seeds. Sorted: node i has read classes 2i and 2i+1 before the '
                'join. Accuracies do not depend on the load of the machine.')


def figure_overlap(bench):
    """partial-local shuffle: the parts of an epoch, by exchanged fraction; time of an epoch, by workers"""
    found = {workers: times(bench, workers, PARTS if workers == 4 else BY_WORKERS) for workers in (4, 2, 8)}
    for how, epochs in found[4].items():
        middle = [statistics.median(epoch[j] for epoch in epochs) for j in range(4)]
        bench.say(how, *(f'{name}: {seconds:.3f} s;' for name, seconds in zip(NAMES, middle)))
    plot = bench.plot
    bench.write('partial-overlap',
                [[part_panel(plot, found[4]), planning_panel(plot, found[4]), worker_panel(plot, found)]],
                f'{SAMPLES} samples of {SIZE // K} KiB per worker, one rank per node; left and middle 4 nodes. '
                f'Computing is sleep, {SECONDS} s per epoch. The exchange for the next epoch is requested when an '
                'epoch begins. Its samples move while the epoch runs; the narrow bar ends when the last one has moved. '
                f'Nodes are directories of one machine; a node receives at most {RATE} MiB per second while samples '
                'move, as on a slow network. The page cache is dropped. The range includes waiting for processors that '
                'other programs use.')
