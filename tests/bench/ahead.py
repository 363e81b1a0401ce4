"""The lines of `make bench` about reading ahead of loaders from other nodes, and from a slow source.

A rank of each node reads its list of a plan, one file after the other; with `feed=yes` the node reads ahead of it."""
import contextlib
import os
import random
import statistics
import subprocess
import time

import worlds

GIGABIT = 1e9 / 8
DELAY_MS = 50
THREADS = 16


class Epochs:
    """Epochs on the nodes of a world, of which nothing is in the page cache. Their order is given, so that no node can
    foresee the next one, which it would read ahead at the end of one."""

    def __init__(self, bench, world):
        self.bench, self.world, self.number = bench, world, 0
        self.paths = [world.path(node) for node in range(world.nodes)]
        self.order = os.path.join(bench.HERE, 'order-ahead')
        with open(f'{self.paths[0]}/.dealfs/samples', 'rb') as f:
            self.names = os.fsdecode(f.read()).split('\n')[:-1]

    def owners(self):
        """Of each sample: who has it."""
        owners = []
        for i in range(0, len(self.names), 1000):
            paths = [f'{self.paths[0]}/{name}' for name in self.names[i:i + 1000]]
            said = self.bench.sh(self.bench.DEALFS, 'where', self.paths[0], *paths)
            owners += [int(line.split('\t')[1]) for line in said.splitlines()]
        return owners

    def plan(self, node, *more):
        ranks = self.world.nodes
        command = [self.bench.DEALFS, 'plan', self.paths[node], f'ranks={ranks}', f'batch={8 * ranks}', f'rank={node}',
                   f'epoch={self.number}', 'mode=regular', 'tail=drop', 'order=text', *more]
        with open(self.order) as order:
            return subprocess.Popen(command, stdin=order, stdout=subprocess.PIPE, text=True)

    def lists(self):
        """The next epoch's, for each node: numbers of samples, and a file of paths."""
        self.number += 1
        order = list(range(len(self.names)))
        random.Random(self.number).shuffle(order)
        with open(self.order, 'w') as f:
            f.writelines(f'{i}\n' for i in order)
        for node, path in enumerate(self.paths):
            name = os.path.join(self.bench.HERE, f'list-ahead{node}')
            places = [int(i) for i in self.plan(node).communicate()[0].split()]
            with open(name, 'w') as f:
                f.writelines(f'{path}/{self.names[i]}\n' for i in places)
            yield places, name

    def read(self, fed):
        """Seconds until all ranks have read their lists; and these."""
        lists = list(self.lists())
        began = time.monotonic()
        plans = [self.plan(node, 'feed=yes') for node in range(self.world.nodes) if fed]
        readers = [subprocess.Popen([self.bench.program('trainer'), '1', '0', '1', '64', str(len(places)), name],
                                    stdout=subprocess.DEVNULL) for places, name in lists]
        for plan in plans:
            plan.communicate()
        if any([process.wait() for process in [*plans, *readers]]):
            raise RuntimeError('a reader failed')
        return time.monotonic() - began, [places for places, _ in lists]


def link_rates(bench, nodes, source, size, delay_ms):
    """Of each turn, fed and unfed: how many bytes per second of its list a node has from others."""
    rates = {True: [], False: []}
    with worlds.machines(nodes, '1gbit', wire=bench.program('wire'), delay=1000 * delay_ms) as (switch, mpirun):
        with worlds.World(bench, nodes, source, 'ram=2G', mpirun, switch) as world:
            bench.sh(bench.DEALFS, 'stage', world.path(0))
            epochs = Epochs(bench, world)
            owners = epochs.owners()
            epochs.read(True)  # the feeders begin
            for _ in range(bench.TURNS):
                for fed in rates:
                    took, lists = epochs.read(fed)
                    others = sum(owners[i] != node for node, places in enumerate(lists) for i in places)
                    rates[fed].append(others * size / nodes / took)
    return rates


def line_links(bench):
    """two and four nodes with links of 1 Gbit/s, most samples with other nodes: what is read ahead, against the link"""
    name, files, size = bench.sizes()[0]
    source = {2: bench.tree(name, files, size), 4: bench.tree(f'{name}-twice', 2 * files, size)}
    for delay_ms in (0, 2):
        for nodes in (2, 4):
            rates = link_rates(bench, nodes, source[nodes], size, delay_ms)
            what = f'{nodes} nodes, 1 Gbit/s' + f', {delay_ms} ms later' * (delay_ms > 0)
            fed, unfed = (statistics.median(rates[fed]) for fed in (True, False))
            bench.row(f'{what}: fed / the link', fed / bench.M, GIGABIT / bench.M, fed / GIGABIT,
                      0.8 if delay_ms else 0.9, 'MiB/s')
            bench.note(f'{what}: unfed {unfed / bench.M:.1f} MiB/s, {unfed / GIGABIT:.2f} of the link')


@contextlib.contextmanager
def slow_source():
    before = os.environ.get('DEALFS_SOURCE_FAULTS')
    os.environ['DEALFS_SOURCE_FAULTS'] = f'delay={DELAY_MS}'
    try:
        yield
    finally:
        del os.environ['DEALFS_SOURCE_FAULTS']
        if before is not None:
            os.environ['DEALFS_SOURCE_FAULTS'] = before


def line_first(bench):
    """first epoch over a source that takes 50 ms for each file, one reader on each node, against the source alone"""
    for nodes in (1, 2):
        files = nodes * (320 if bench.QUICK else 1600)
        source, took, opened = bench.tree(f'first{nodes}', files, bench.sizes()[0][2]), [], 0
        for _ in range(bench.TURNS):
            with slow_source(), worlds.World(bench, nodes, source, f'ram=1G,source_threads={THREADS}') as world:
                took.append(Epochs(bench, world).read(True)[0])
                opened = sum(world.status(node)['source']['samples'] for node in range(nodes))
        fed, least = statistics.median(took), files * DELAY_MS / 1000 / THREADS / nodes
        what = f'first epoch, {nodes} node{"s" * (nodes > 1)}'
        bench.row(f'{what}, 50 ms a file: fed / the source', fed, least, fed / least, 1.15, 's', at_most=True)
        bench.note(f'{what}: {opened} files were opened at the source, of {files}')


LINES = {'links': line_links, 'first': line_first}
