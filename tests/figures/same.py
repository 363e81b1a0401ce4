"""Locality trains the same (Yang and Cong, table I): the loss of each step by DistributedSampler and by
dealfs.torch.Sampler, with the same seeds, and the bytes that cross the links meanwhile. In the middle of the second
training a server is killed, and later all ranks end and twice as many resume from a checkpoint.

The nodes are network namespaces. Ranks talk by gloo over another link, which is not counted. No batch normalization:
its statistics depend on which rank has which samples of a step."""
import importlib
import io
import json
import os
import signal
import subprocess
import types

import beta
import echoing
import wall

NODES, BATCH, SIDE, NOISE, PER_CLASS = 4, 64, 64, 0.8, 96  # BATCH: of all ranks together
EPOCHS, KILL, RESUME = 8, 2.5, 5.25  # in epochs
STEPS = echoing.CLASSES * PER_CLASS // BATCH  # of an epoch


def load(path):
    """An image, read past the page cache."""
    from PIL import Image
    with open(path, 'rb') as f:
        content = f.read()
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return Image.open(io.BytesIO(content)).convert('RGB')


def run_rank(rank, ranks, job):
    """Trains job.epochs, or from the checkpoint, or up to it. Rank 0 prints the results into a file, as JSON: the loss
    of each step, and the bytes that came to all nodes in each epoch."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{job.base}/meet-{job.name}', rank=rank, world_size=ranks)
    losses, carried = [], {}
    for epoch, step, loss in steps_of(rank, ranks, job):
        if rank == 0:
            losses.append(loss)
            carried.setdefault(epoch, []).append(sum(map(beta.received, job.couriers)))
            if job.kill == (epoch, step):
                os.kill(job.victim, signal.SIGKILL)
    if rank == 0:
        with open(f'{job.base}/found-{job.name}', 'w') as f:
            json.dump([losses, [counts[-1] for counts in carried.values()]], f)
    dist.destroy_process_group()


def steps_of(rank, ranks, job):
    """Yields epoch, step and the loss of the global batch, while it trains."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler
    from torchvision import transforms
    from torchvision.datasets import ImageFolder
    from dealfs.torch import Sampler
    shape = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    data = ImageFolder(job.paths[rank * NODES // ranks], shape, loader=load)
    if job.sampler == 'DistributedSampler':
        sampler = DistributedSampler(data, seed=job.seed)
    else:
        sampler = Sampler(data, seed=job.seed, batch_size=BATCH // ranks, feed=False)
    network = echoing.make_network(job.seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    parts = {'network': network, 'optimizer': optimizer, 'sampler': sampler}
    if job.resume:
        for name, state in torch.load(job.checkpoint).items():
            parts[name].load_state_dict(state)
    replicas, loader = DistributedDataParallel(network), DataLoader(data, BATCH // ranks, sampler=sampler)
    for epoch in range(getattr(sampler, 'next_epoch', 0), EPOCHS):
        sampler.set_epoch(epoch)
        for step, (images, classes) in enumerate(getattr(sampler, 'over', iter)(loader)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(replicas(images), classes)
            loss.backward()
            optimizer.step()
            total = loss.detach().double()
            dist.all_reduce(total)
            yield epoch, step, total.item() / ranks
            if job.end == (epoch, step):
                if rank == 0:
                    torch.save({name: part.state_dict() for name, part in parts.items()}, job.checkpoint)
                return


def train(bench, cluster, couriers, name, sampler, seed, ranks=NODES, **keys):
    """The loss of each step, and the bytes that had come to all nodes at the end of each epoch."""
    import torch.multiprocessing
    job = types.SimpleNamespace(**{
        'name': f'{name}-{seed}', 'sampler': sampler, 'seed': seed, 'base': bench.HERE, 'couriers': couriers,
        'paths': [cluster.world.path(node) for node in range(NODES)], 'checkpoint': f'{bench.HERE}/checkpoint-{seed}',
        'resume': False, 'end': None, 'kill': None, 'victim': None, **keys})
    # Forks: loading torch takes longer than training. The parent has computed nothing and has no threads.
    torch.multiprocessing.start_processes(run_rank, (ranks, job), ranks, start_method='fork')
    with open(f'{bench.HERE}/found-{job.name}') as f:
        return json.load(f)


def at(epochs):
    """The epoch and the step of it."""
    return int(epochs), int(epochs % 1 * STEPS)


def per_epoch(before, counts, total):
    """Percent of the dataset."""
    return [100 * (b - a) / total for a, b in zip([before, *counts], counts)]


def compare(bench, cluster, seed, total):
    """Of one seed: losses and percents by DistributedSampler and by Sampler, and losses with another order."""
    couriers = [cluster.world.status(node)['pids']['courier'] for node in range(NODES)]

    def now():
        return sum(map(beta.received, couriers))
    before = now()
    theirs, their_bytes = train(bench, cluster, couriers, 'theirs', 'DistributedSampler', seed)
    their_percent = per_epoch(before, their_bytes, total)
    before, server = now(), cluster.world.status(1)['pids']['server']
    ours, our_bytes = train(bench, cluster, couriers, 'ended', 'Sampler', seed, kill=at(KILL), victim=server,
                            end=at(RESUME))
    assert cluster.world.status(1)['pids']['server'] != server, 'the server was not killed'
    rest, rest_bytes = train(bench, cluster, couriers, 'resumed', 'Sampler', seed, 2 * NODES, resume=True)
    counts = our_bytes[:-1] + rest_bytes  # the epoch that was interrupted ends in the second run
    return {'theirs': theirs, 'ours': ours + rest, 'their percent': their_percent,
            'our percent': per_epoch(before, counts, total)}


def measure(bench):
    seeds = [f'seed {seed}' for seed in range(bench.runs)]
    if bench.has(seeds):
        return [bench.measured(seed, None) for seed in seeds]
    source = f'{bench.HERE}/pictures'
    echoing.make_pictures(source, PER_CLASS, SIDE, NOISE)
    importlib.import_module('torchvision.datasets')  # once, for all ranks are forks
    os.environ.update(GLOO_SOCKET_IFNAME='lo', OMP_NUM_THREADS='1')
    total = sum(map(os.path.getsize, wall.files_below(source)))
    load_ = types.SimpleNamespace(link=None, burst=None)
    with wall.Cluster(bench, NODES, types.SimpleNamespace(path=source), load_) as cluster:
        bench.sh(bench.DEALFS, 'stage', cluster.world.path(0), stderr=subprocess.DEVNULL)
        return [bench.measured(name, lambda: compare(bench, cluster, seed, total)) for seed, name in enumerate(seeds)]


def loss_panel(plot, found):
    first = found[0]
    panel = plot.Panel('loss of each step', 'epoch', 'cross entropy', (0, EPOCHS), (0, 1.05 * max(first['theirs'])),
                       [(n, n) for n in range(EPOCHS + 1)])
    panel.line([(i / STEPS, loss) for i, loss in enumerate(first['theirs'])], 0, 'DistributedSampler')
    panel.line([(i / STEPS, loss) for i, loss in enumerate(first['ours'])], 3, 'dealfs.torch.Sampler', dashed=True)
    return panel


def events(panel):
    for colour, x, name in ((1, KILL, 'a server is killed'), (4, RESUME, 'ranks end; twice as many resume')):
        panel.line([(x, panel.y0), (x, panel.y1)], colour, name, dashed=True)
    return panel


def difference_panel(plot, found):
    """Each step's largest difference of all seeds, and that of other orders."""
    steps = range(len(found[0]['ours']))
    same = [max(abs(f['ours'][i] - f['theirs'][i]) for f in found) for i in steps]
    other = [min(abs(f['theirs'][i] - found[k - 1]['theirs'][i]) for k, f in enumerate(found)) for i in steps]
    panel = plot.Panel('difference of the losses', 'epoch', 'cross entropy', (0, EPOCHS), (1e-9, 10),
                       [(n, n) for n in range(EPOCHS + 1)], 'y')
    for colour, (values, name) in enumerate(((same, 'the two samplers: largest of all seeds'),
                                             (other, 'two seeds: smallest of all pairs'))):
        panel.line([(i / STEPS, max(value, 1e-9)) for i, value in enumerate(values)], colour, name)
    return panel, max(same)


def bytes_panel(plot, found):
    panel = plot.Panel('bytes over the links', 'epoch', '% of the dataset', (0, EPOCHS), (0, 100),
                       [(n, n) for n in range(EPOCHS + 1)])
    for colour, key, name in (0, 'their percent', 'DistributedSampler'), (3, 'our percent', 'dealfs.torch.Sampler'):
        panel.medians([(i + 0.5, [f[key][i] for f in found]) for i in range(EPOCHS)], colour, name)
    return panel


def figure(bench):
    """losses by DistributedSampler and Sampler, with a killed server and a resume, and bytes over the links; as root"""
    found, plot = measure(bench), bench.plot
    differences, most = difference_panel(plot, found)
    bench.say(f'largest difference: {most:.2g}')
    bench.write('same-training', [[events(loss_panel(plot, found)), events(differences)],
                                  [events(bytes_panel(plot, found))]],
                f'A small convolutional network without batch normalization, {echoing.CLASSES * PER_CLASS} images, '
                f'{NODES} nodes (network namespaces), batches of {BATCH} of all ranks together, {len(found)} seeds; '
                'the losses of one are drawn. Tiers are staged and the page cache is dropped after each read, so each '
                'epoch reads through the mounts. Bytes over the links include all headers, of files of about 4.5 KB.',
                f'With Sampler the server of one node is killed at epoch {KILL}. At epoch {RESUME} all {NODES} ranks '
                f'end, and {2 * NODES} resume from a checkpoint, two per node. The largest difference of a loss is '
                f'{most:.1g}: the order in which floating-point numbers are added. Losses and bytes do not depend on '
                'the load of the machine.')
