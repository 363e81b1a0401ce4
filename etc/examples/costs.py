#!/usr/bin/env python3
"""Upload the cost of each sample, and print how much of the imbalance between ranks it removes.

    costs.py MOUNTPOINT NAME RANKS BATCH

Here the cost of a text is its number of words. Use the tokens, pixels or seconds of your samples instead. Then train
with Sampler(dataset, batch_size=BATCH, samples='all', cost=NAME)."""
import os
import sys

# If the package is not installed, use the one in this source tree.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../python'))
import dealfs  # noqa: E402


def words(path):
    with open(path, 'rb') as f:
        return len(f.read().split())


def main(path, name, ranks, batch):
    mount = dealfs.Mount(path)
    mount.costs(name, [words(os.path.join(path, sample)) for sample in mount.samples()])
    slowest = mount.summary(epoch=0, ranks=ranks, batch=batch, cost=name)['slowest_by_mean']
    print(f"{name}: the slowest rank costs {slowest['median']:.2f} times the mean (without cost=: "
          f"{slowest['median_before']:.2f})")


if len(sys.argv) != 5:
    sys.exit(__doc__)
try:
    main(*sys.argv[1:])
except OSError as error:
    sys.exit(f'costs.py: {error}')
