"""How many samples balancing moves (Yang and Cong, figure 6), on nodes that read. Compares the plans, the bytes that
crossed the links, `dealfs simulate imbalance`, and the paper."""
import json
import statistics
import subprocess
import types

import wall

PAPER = {32: 6.9, 64: 4.8, 128: 3.4}  # percent, by the batch per node
SAMPLES, SIZE, EPOCHS, NODES = 4096, 24200, range(5), (4, 8)


def received(pid):
    """Bytes that came to the machine of a process."""
    with open(f'/proc/{pid}/net/dev') as f:
        return int(next(line for line in f if 'eth0' in line).split()[1])


def measure(bench, source, nodes):
    """By batch, of each epoch: percent that plans moved, and that came over the links."""
    found, slow = {}, types.SimpleNamespace(path=source)
    load = wall.Workload('', SIZE, 25 * max(PAPER), SAMPLES, max(PAPER))
    load.link = None
    with wall.Cluster(bench, nodes, slow, load) as cluster:
        bench.sh(bench.DEALFS, 'stage', cluster.world.path(0), stderr=subprocess.DEVNULL)
        pids = [cluster.world.status(node)['pids']['courier'] for node in range(nodes)]
        for load.batch in PAPER:
            plans = [json.loads(bench.sh(
                bench.DEALFS, 'plan', cluster.world.path(0), f'epoch={epoch}', f'ranks={nodes}', f'batch={load.batch}',
                'tail=drop', 'reply=summary')) for epoch in EPOCHS]
            carried = []
            for epoch in EPOCHS:
                before = sum(map(received, pids))
                wall.train(bench, load, cluster.lists([epoch], 'mode=locality'), step=0)
                carried.append(100 * (sum(map(received, pids)) - before) / SAMPLES / SIZE)
            found[load.batch] = [[100 * plan['moved'] / SAMPLES for plan in plans], carried]
    return found


def simulated(bench, nodes):
    out = json.loads(bench.sh(bench.DEALFS, 'simulate', 'imbalance', '--json', '--nodes', str(nodes), '--samples',
                              str(SAMPLES), '--batch', ','.join(map(str, PAPER))))
    return {box['batch']: box for box in out}


def figure(bench):
    """how much balancing moves: by the plans, over the links, simulated, and in the paper; as root"""
    load = wall.Workload('', SIZE, 25, SAMPLES, 1)
    source, panels = wall.dataset(bench, load), []
    for nodes in NODES:
        found = bench.measured(f'{nodes} nodes', lambda: measure(bench, source, nodes))
        boxes = simulated(bench, nodes)
        panel = bench.plot.Panel(f'{nodes} nodes', 'batch per node', '% of the samples read', (-0.6, len(PAPER) - 0.4),
                                 (0, 12), list(enumerate(PAPER)))
        for i, (batch, paper) in enumerate(PAPER.items()):
            bars = [*found[str(batch)], [boxes[batch]['mean']], [paper]]
            for j, values in enumerate(bars):
                panel.median_bar(i + 0.2 * (j - 1.5), 0.18, values, j, f'{statistics.median(values):.1f}', 9)
            box = boxes[batch]
            bench.say(f'{nodes} nodes, batch {batch}: plans moved, links carried, simulated, paper:',
                      *(f'{statistics.median(values):.2f} %' for values in bars), f'; in a step {box["transfers"]:.1f} '
                      f'transfers, at least {box["transfers_least"]:.1f}; without balancing it takes '
                      f'{box["lost"]:.0f} % longer')
        for colour, name in enumerate(['moved by the plans', 'carried by the links, with all headers',
                                       'dealfs simulate imbalance, mean', 'the paper, median']):
            panel.name(colour, name)
        panels.append(panel)
    bench.write('beta', [panels], f'{SAMPLES} files of {SIZE / 1000:g} KB, {len(EPOCHS)} epochs, tiers staged, page '
                'cache dropped. Nodes are network namespaces of this machine. All values are counts, so they do not '
                'depend on its load.')
