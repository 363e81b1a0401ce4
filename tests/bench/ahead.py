"""The lines of `make bench` about reading ahead of loaders from other nodes, and from a slow source.

A rank of each node reads its list of a plan, one file after the other; with `feed=yes` the node reads ahead of it.
What links carry is counted by their devices."""
import contextlib
import os
import statistics
import subprocess
import time

import worlds

GIGABIT = 1e9 / 8
DELAY_MS = 50
THREADS = 16


class Epochs:
    """Epochs of one kind of plan on the nodes of a world, each a new one, of which nothing is in the page cache."""

    def __init__(self, bench, paths, *keys):
        self.bench, self.paths, self.keys = bench, paths, keys
        self.number = 0
        with open(f'{paths[0]}/.dealfs/samples', 'rb') as f:
            self.names = os.fsdecode(f.read()).split('\n')

    def command(self, node, *more):
        ranks = len(self.paths)
        return [self.bench.DEALFS, 'plan', self.paths[node], f'ranks={ranks}', f'batch={8 * ranks}', f'rank={node}',
                f'epoch={self.number}', 'tail=drop', *self.keys, *more]

    def read(self, fed):
        """Seconds until all ranks have read their lists."""
        self.number += 1
        commands = []
        for node, path in enumerate(self.paths):
            name = os.path.join(self.bench.HERE, f'list-ahead{node}')
            places = self.bench.sh(*self.command(node)).split()
            with open(name, 'w') as f:
                f.writelines(f'{path}/{self.names[int(i)]}\n' for i in places)
            if fed:
                commands.append(self.command(node, 'feed=yes'))
            commands.append([self.bench.program('trainer'), '1', '0', '1', '64', str(len(places)), name])
        began = time.monotonic()
        processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
        if any([process.wait() for process in processes]):
            raise RuntimeError('a reader failed')
        return time.monotonic() - began


def from_peers(world):
    """Bytes that came from other nodes so far, to all nodes together."""
    total = 0
    for node in range(world.nodes):
        status = world.status(node)
        total += status['bytes']['peer'] + status['fed']['bytes']['peer']
    return total


def link_rates(bench, nodes, source, delay_ms):
    """Of each turn, fed and unfed: what a node got from others, as a part of what its link carries."""
    rates = {True: [], False: []}
    with worlds.machines(nodes, '1gbit', wire=bench.program('wire'), delay=1000 * delay_ms) as (switch, mpirun):
        with worlds.World(bench, nodes, source, 'ram=2G', mpirun, switch) as world:
            bench.sh(bench.DEALFS, 'stage', world.path(0))
            epochs = Epochs(bench, [world.path(node) for node in range(nodes)], 'mode=regular')
            epochs.read(True)  # the feeders begin
            for _ in range(bench.TURNS):
                for fed in rates:
                    before = from_peers(world)
                    took = epochs.read(fed)
                    rates[fed].append((from_peers(world) - before) / nodes / took)
    return rates


def line_links(bench):
    """two and four nodes with links of 1 Gbit/s, most samples with other nodes: what is read ahead, against the link"""
    name, files, size = bench.sizes()[0]
    source = bench.tree(name, files, size)
    for delay_ms in (0, 2):
        for nodes in (2, 4):
            rates = link_rates(bench, nodes, source, delay_ms)
            what = f'{nodes} nodes, 1 Gbit/s' + f', {delay_ms} ms later' * (delay_ms > 0)
            fed, unfed = (statistics.median(rates[fed]) / bench.M for fed in (True, False))
            bench.row(f'{what}: fed / the link', fed, GIGABIT / bench.M, fed * bench.M / GIGABIT,
                      0.8 if delay_ms else 0.9, 'MiB/s')
            bench.note(f'{what}: unfed {unfed:.1f} MiB/s, {unfed * bench.M / GIGABIT:.2f} of the link')


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
                took.append(Epochs(bench, [world.path(node) for node in range(nodes)], 'mode=regular').read(True))
                opened = sum(world.status(node)['source']['samples'] for node in range(nodes))
        fed, least = statistics.median(took), files * DELAY_MS / 1000 / THREADS / nodes
        what = f'first epoch, {nodes} node{"s" * (nodes > 1)}'
        bench.row(f'{what}, 50 ms a file: fed / the source', fed, least, fed / least, 1.15, 's', at_most=True)
        bench.note(f'{what}: {opened} files were opened at the source, of {files}')


LINES = {'links': line_links, 'first': line_first}
