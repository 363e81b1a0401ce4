"""What balancing moves (Yang and Cong, figure 6), on nodes that read: by the plans, by what crossed the links, by
`dealfs simulate imbalance`, and by the paper."""
import json
import subprocess
import types

import wall

PAPER = {32: 6.9, 64: 4.8, 128: 3.4}  # percent, by the batch of a node
SAMPLES, SIZE, EPOCHS, NODES = 4096, 24200, range(3), (4, 8)


def received(pid):
    """Bytes that came to the machine of a process."""
    with open(f'/proc/{pid}/net/dev') as f:
        return int(next(line for line in f if 'eth0' in line).split()[1])


def measure(bench, source, nodes):
    """By batch: percent that plans moved, and that came over the links."""
    found, slow = {}, types.SimpleNamespace(path=source)
    load = wall.Workload('', SIZE, nodes, 0, 25 * max(PAPER), SAMPLES)
    load.link = None
    with wall.Cluster(bench, nodes, slow, load) as cluster:
        bench.sh(bench.DEALFS, 'stage', cluster.world.path(0), stderr=subprocess.DEVNULL)
        pids = [cluster.world.status(node)['pids']['courier'] for node in range(nodes)]
        for load.batch in PAPER:
            plans = [json.loads(bench.sh(
                bench.DEALFS, 'plan', cluster.world.path(0), f'epoch={epoch}', f'ranks={nodes}', f'batch={load.batch}',
                'tail=drop', 'reply=summary')) for epoch in EPOCHS]
            before = sum(map(received, pids))
            wall.train(bench, load, cluster.lists(EPOCHS, 'mode=locality'), len(EPOCHS), step=0)
            carried = sum(map(received, pids)) - before
            found[load.batch] = (100 * sum(plan['moved'] for plan in plans) / SAMPLES / len(EPOCHS),
                                 100 * carried / SAMPLES / SIZE / len(EPOCHS))
    return found


def simulated(bench, nodes):
    out = json.loads(bench.sh(bench.DEALFS, 'simulate', 'imbalance', '--json', '--nodes', str(nodes), '--samples',
                              str(SAMPLES), '--batch', ','.join(map(str, PAPER))))
    return {box['batch']: box for box in out}


def figure(bench, plot, say, made_by, figures):
    load = wall.Workload('', SIZE, 0, 0, 25, SAMPLES)
    source, panels = wall.dataset(bench, load), []
    for nodes in NODES:
        found, boxes = measure(bench, source, nodes), simulated(bench, nodes)
        panel = plot.Panel(f'{nodes} nodes', 'batch of a node', '% of what is read', (-0.6, len(PAPER) - 0.4),
                           (0, 12), list(enumerate(PAPER)))
        for i, (batch, paper) in enumerate(PAPER.items()):
            bars = [*found[batch], boxes[batch]['mean'], paper]
            for j, value in enumerate(bars):
                panel.bar(i + 0.2 * (j - 1.5), 0.18, [value], (j,))
                panel.text(panel.px(i + 0.2 * (j - 1.5)), panel.py(value) - 4, f'{value:.1f}', size=9)
            box = boxes[batch]
            say(f'{nodes} nodes, batch {batch}: plans moved {bars[0]:.2f} %, links carried {bars[1]:.2f} %, '
                f'simulated {bars[2]:.2f} %, paper {paper} %; in a step {box["transfers"]:.1f} transfers, at least '
                f'{box["transfers_least"]:.1f}; without balancing it takes {box["lost"]:.0f} % longer')
        for colour, name in enumerate(['moved by the plans', 'carried by the links, with all headers',
                                       'dealfs simulate imbalance, mean', 'the paper, median']):
            panel.name(colour, name)
        panel.legend_at = 'top'
        panels.append(panel)
    plot.write(f'{figures}/beta.svg', [panels],
               [f'{SAMPLES} files of {SIZE / 1000:g} KB, {len(EPOCHS)} epochs, shards staged, page cache dropped; '
                'network namespaces of this machine.', made_by])
