"""The planner against PyTorch itself: randperm and DistributedSampler.

usage: torch-order.py PLANNER
Speaks TAP.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True
try:
    import torch
    from torch.utils.data import DistributedSampler
except ImportError:
    print('1..0 # SKIP torch is not installed')
    sys.exit()
import random

import model


def perms(planner):
    for n in 0, 1, 2, 5, 100, 624, 625, 1000, 70000, 1281167:
        for seed in 0, 1, 42, 2**32 - 1, 2**32 + 7, 2**63 - 1, 2**64 - 1:
            if n > 100000 and seed > 42:
                continue
            g = torch.Generator()
            g.manual_seed(seed)
            model.must(planner.order(n, seed) == torch.randperm(n, generator=g).tolist(), f'n={n} seed={seed}')


def samplers(planner, drop):
    rng = random.Random(7)
    for n in 1, 2, 3, 10, 31, 64, 100, 1000:
        for ranks in 1, 2, 3, 7, 16, 40:
            seed, epoch = rng.choice([0, 3, 2**33]), rng.randrange(4)
            w = model.World(rng, samples=n, nodes=1, groups=1, ranks=ranks, placed=None, batch=rng.choice([1, 4, 50]),
                            mode=model.REGULAR, tail=model.DROP if drop else model.PAD, echo=model.ONE, skip=0)
            w.order = planner.order(n, seed + epoch)
            _, lists = planner.plan(w)
            for rank in range(ranks):
                sampler = DistributedSampler(range(n), ranks, rank, shuffle=True, seed=seed, drop_last=drop)
                sampler.set_epoch(epoch)
                # Of fewer samples than ranks it takes all and then fails to cut them: nothing is left of them.
                if not (drop and n < ranks):
                    model.must(lists[rank] == list(sampler), f'n={n} rank {rank} of {ranks}, drop={drop}')
                else:
                    model.must(lists[rank] == [], f'n={n} rank {rank} of {ranks}, drop={drop}')


def main():
    print(f'# torch {torch.__version__}')
    planner = model.Planner(sys.argv[1])
    model.test('randperm', perms, planner)
    model.test('DistributedSampler, which fills up', samplers, planner, False)
    model.test('DistributedSampler, which leaves the rest out', samplers, planner, True)
    print(f'1..{model.count}')
    sys.exit(model.failed > 0)


if __name__ == '__main__':
    main()
