#!/usr/bin/env python3
"""Read a rank's samples of an epoch in their order, with nothing but Python.

    read_plan.py MOUNTPOINT epoch=E ranks=R batch=B rank=r [KEY=VALUE...]

A plan is a file, named by the keys of its request. Prints number, bytes and path of each sample."""
import array
import os
import re
import sys
from urllib.parse import quote

ESCAPES = {b'n': b'\n', b'r': b'\r', b'\\': b'\\'}


def sample_names(mount, samples):
    """The paths of a sample list: line i, from 0, is sample i. Newlines and backslashes in a path are escaped."""
    with open(f'{mount}/.dealfs/samples.d/{samples}', 'rb') as f:
        return [re.sub(rb'\\(.)', lambda match: ESCAPES[match[1]], line) for line in f.read().split(b'\n')[:-1]]


def plan(mount, words):
    keys = dict(word.split('=', 1) for word in words)
    keys['reply'] = 'u32'
    name = ','.join(f"{key}={quote(value, safe='')}" for key, value in keys.items())
    numbers = array.array('I')
    with open(f'{mount}/.dealfs/plan/{name}', 'rb') as f:
        numbers.frombytes(f.read())
    if sys.byteorder == 'big':
        numbers.byteswap()
    return numbers, keys.get('samples', 'all')


def main(mount, *words):
    numbers, samples = plan(mount, words)
    names = sample_names(mount, samples)
    for number in numbers:
        with open(os.path.join(os.fsencode(mount), names[number]), 'rb') as f:
            data = f.read()
        sys.stdout.buffer.write(b'%d\t%d\t%s\n' % (number, len(data), names[number]))


if len(sys.argv) < 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
