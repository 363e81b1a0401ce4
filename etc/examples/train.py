#!/usr/bin/env python3
"""Train a small network on the images of a dealfs mount, by several ranks on CPUs.

    torchrun --nnodes N --nproc-per-node R ... train.py MOUNTPOINT [--epochs E] [--batch B] [--checkpoint FILE]

The mount contains one folder per class, as for torchvision's ImageFolder. With --checkpoint, a run that was ended
resumes in mid-epoch, also with another number of ranks.

    --order locality   each step has DistributedSampler's samples; ranks read mostly samples of their own node (default)
    --order regular    each rank reads DistributedSampler's list. The weights are the same, and more samples come from
                       other nodes
    --order local      ranks read only samples of their own node. With --exchange 0.1, a tenth of these is shuffled
                       among the nodes before each epoch: see exchange.md"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

# If the package is not installed, use the one in this source tree.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../python'))
from dealfs.torch import Sampler  # noqa: E402


def make_network(classes):
    torch.manual_seed(0)
    # No batch normalization: its statistics would depend on which rank reads which samples of a step.
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                         nn.Linear(128, classes))


def load(path, parts):
    if path and os.path.exists(path):
        saved = torch.load(path, map_location='cpu')
        for name, part in parts.items():
            part.load_state_dict(saved[name])


def save(path, parts):
    if path and dist.get_rank() == 0:
        torch.save({name: part.state_dict() for name, part in parts.items()}, path + '.new')
        os.replace(path + '.new', path)


def say(epoch, loss, network):
    if dist.get_rank() == 0:
        print(f'epoch {epoch}: loss {loss:.6f}', flush=True)


def train(args, sampler_of=Sampler, each_epoch=say):
    """Train until args.epochs epochs have ended, or this run has made args.steps steps. Returns the network."""
    shape = transforms.Compose([transforms.Resize(args.pixels), transforms.CenterCrop(args.pixels),
                                transforms.ToTensor()])
    dataset = ImageFolder(args.mount, shape)
    network = make_network(len(dataset.classes))
    optimizer = torch.optim.SGD(network.parameters(), lr=args.rate, momentum=0.9)
    keys = {'mode': args.order}
    if args.exchange:
        keys['exchange'] = args.exchange
    if args.echo and args.echo != 'measure':
        keys['echo'] = args.echo
    sampler = sampler_of(dataset, seed=args.seed, batch_size=args.batch, **keys)
    parts = {'network': network, 'optimizer': optimizer, 'sampler': sampler}
    load(args.checkpoint, parts)
    replicas = DistributedDataParallel(network)

    loader = DataLoader(dataset, args.batch, sampler=sampler, num_workers=args.workers,
                        persistent_workers=args.workers > 0)
    steps = 0
    for epoch in range(sampler.next_epoch, args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2, dtype=torch.double)
        for images, labels in sampler.over(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(replicas(images), labels)
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)])
            steps += 1
            if steps == args.steps:
                save(args.checkpoint, parts)
                return network
        dist.all_reduce(total)
        each_epoch(epoch, (total[0] / total[1].clamp(min=1)).item(), network)
        if args.echo == 'measure':
            sampler.fix_echo()
        save(args.checkpoint, parts)
    return network


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('mount', metavar='MOUNTPOINT')
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--batch', type=int, default=32, help='samples of one rank in a step')
    parser.add_argument('--pixels', type=int, default=64)
    parser.add_argument('--rate', type=float, default=0.05, help='of learning')
    parser.add_argument('--seed', type=int, default=0, help='of the order')
    parser.add_argument('--order', choices=['locality', 'regular', 'local'], default='locality')
    parser.add_argument('--exchange', metavar='Q', help='with --order local: the fraction of samples that changes node')
    parser.add_argument('--echo', metavar='F', help='use each sample F times; measure: largest F without extra time')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--checkpoint', metavar='FILE', help='written after each epoch, read at the start')
    parser.add_argument('--steps', type=int, default=0, help='end after this many steps; 0: after the last epoch')
    parser.add_argument('--rendezvous', default='env://', help='URL where ranks meet; default: as set by torchrun')
    return parser.parse_args(words)


def main():
    args = parse()
    rank, ranks = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
    os.environ.setdefault('USE_LIBUV', '0')  # ranks meet without libuv, which Debian's PyTorch has not
    meet = {'init_method': args.rendezvous} if ranks > 1 else {'store': dist.HashStore()}
    dist.init_process_group('gloo', rank=rank, world_size=ranks, **meet)
    train(args)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
