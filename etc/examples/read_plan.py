#!/usr/bin/env python3
"""Read a rank's samples of an epoch in their order.

    read_plan.py MOUNTPOINT epoch=E ranks=R batch=B rank=r [KEY=VALUE...]

Prints number, bytes and path of each sample."""
import os
import sys

# If the package is not installed, use the one in this source tree.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../python'))
import dealfs  # noqa: E402


def main(path, *words):
    keys = dict(word.split('=', 1) for word in words)
    mount = dealfs.Mount(path)
    names = mount.samples(keys.get('samples', 'all'))
    for number in mount.plan(**keys):
        with open(os.path.join(path, names[number]), 'rb') as f:
            data = f.read()
        sys.stdout.buffer.write(b'%d\t%d\t%s\n' % (number, len(data), os.fsencode(names[number])))


if len(sys.argv) < 3:
    sys.exit(__doc__)
try:
    main(*sys.argv[1:])
except OSError as error:
    sys.exit(f'read_plan.py: {error}')
