"""DIMD (Kumar et al., figures 7 to 9): seconds and memory of a shuffle by nodes and groups, and what follows from them
for the paper's 220 GB over 32 nodes."""
import re
import statistics
import threading

import worlds
from drawing import K, M
from partial import World, dataset


def anonymous(pid):
    try:
        with open(f'/proc/{pid}/status') as f:
            return sum(int(line.split()[1]) for line in f if line.startswith('RssAnon')) * K
    except OSError:
        return 0


def shared(pid):
    """Of the ring and what else the node's processes share."""
    with open(f'/proc/{pid}/smaps') as f:
        return sum(int(n) for n in re.findall(r'memfd:.*(?:\n(?!Rss).*)*\nRss:\s+(\d+) kB', f.read())) * K


class Peak:
    """The most memory beyond shards and page cache that a node's server and courier had while it lasts. What they share
    does not shrink: it is counted at the end."""

    def __init__(self, world):
        self.pids = [[world.status(n)['pids'][name] for name in ('server', 'courier')] for n in range(world.nodes)]
        self.stop, self.most = threading.Event(), 0
        self.used = -self.processor_time()
        self.thread = threading.Thread(target=self.watch)

    def processor_time(self):
        return sum(worlds.processor_time(pid) for pids in self.pids for pid in pids)

    def watch(self):
        while not self.stop.wait(0.02):
            self.most = max(self.most, *(sum(map(anonymous, pids)) for pids in self.pids))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.used += self.processor_time()
        self.most += max(shared(pids[0]) for pids in self.pids)


def shuffles(bench, source, nodes, groups, total):
    """Of each shuffle: seconds, the peak of a node's memory in bytes, seconds of processor time per byte that moved."""
    found, room = [], total * groups // nodes + 256 * M
    with World(bench, nodes, source, f'ram={room // M}M,exchange,groups={groups}') as world:
        for seed in range(bench.runs):
            with Peak(world) as peak:
                bench.sh(bench.DEALFS, 'shuffle', '--wait', world.path(0), f'seed={seed}')
                move = world.status(0)['move']
            found.append([move['elapsed'] / 1e9, peak.most, peak.used / max(move['come_bytes'], 1)])
    return found


PAPER_SECONDS, PAPER_BYTES, PAPER_NODES = 4.2, 220e9, 32
LINK, CORES = 100e9 / 8, 4  # bytes per second of a node's link, cores that it has for this


def lines_panel(plot, title, y, found, column, unit, most):
    panel = plot.Panel(title, 'nodes, all on this machine', y, (1, 9), (0, most), [(n, n) for n in (2, 4, 8)])
    for colour, groups in enumerate((1, 2, 4)):
        panel.medians([(n + 0.12 * (colour - 1), [run[column] / unit for run in runs])
                       for (n, g), runs in found.items() if g == groups], colour, f'{groups} group{"s" * (groups > 1)}')
    return panel


def projection_panel(plot, costs):
    """Seconds by the link and by the processors, beside the paper's."""
    each = PAPER_BYTES / PAPER_NODES * (PAPER_NODES - 1) / PAPER_NODES
    bars = ([each / LINK], [each * cost / CORES for cost in costs], [PAPER_SECONDS])
    panel = plot.Panel('projection, not measured: 220 GB, 32 nodes', '', 'seconds', (-0.6, 2.6),
                       (0, 1.2 * max(map(max, bars))), [(0, 'by the link'), (1, 'by processors'), (2, 'the paper')])
    for i, values in enumerate(bars):
        panel.median_bar(i, 0.6, values, i, f'{statistics.median(values):.2f} s')
    return panel, each


def figure(bench):
    """DIMD: seconds and memory of a shuffle by nodes and groups; 220 GB over 32 nodes, projected"""
    total, found = (64 if bench.quick else 256) * M, {}
    source = dataset(bench, 'dimd', total // 8 // (128 * K), 128 * K)
    for groups in (1, 2, 4):
        for nodes in (2, 4, 8):
            if nodes // groups >= 2:  # a group of one has nobody to shuffle with
                found[nodes, groups] = bench.measured(
                    f'{nodes} nodes {groups} groups', lambda: shuffles(bench, source, nodes, groups, total))
    costs = [statistics.median(run[2] for run in runs) for runs in found.values()]
    plot, runs = bench.plot, [run for runs in found.values() for run in runs]
    seconds = lines_panel(plot, f'a shuffle of {total // M} MiB per group', 'seconds', found, 0, 1,
                          1.1 * max(run[0] for run in runs))
    memory = lines_panel(plot, 'memory beyond the shards', 'peak MiB of a node (server and courier)', found, 1, M, 290)
    memory.rule(256, 'limit of server and courier', 1)
    projection, each = projection_panel(plot, costs)
    bench.say(f'processor time: {1e9 * statistics.median(costs):.2f} s per GB')
    bench.write('dimd-shuffle', [[seconds, memory, projection]],
                'Left and middle: files of 128 KiB in RAM tiers. All nodes share the cores of this machine, so more '
                'nodes are not faster here.',
                f'Right: computed from the paper\'s sizes. Each node sends and gets {each / 1e9:.2f} GB. By the link: '
                'at 100 Gbit/s. By processors: the processor time of servers and couriers per byte that was measured '
                f'({1e9 * statistics.median(costs):.2f} s per GB; the range is that of nodes and groups), on {CORES} '
                'cores per node. The projection is the longer of the two. The paper measured 4.2 s.')
