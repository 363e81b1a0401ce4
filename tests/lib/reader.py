"""Read files of a mount at random, beside whatever happens to it, and compare each with the source.

    reader.py SOURCE MOUNTPOINT STOP SEED

until the file STOP is there, with a pause after each, as a loader computes. Pages are dropped before each read, so that
the mount is asked. The last line is
`READS files, MOST s`: how many, and how long the slowest took; exit status 1 when one failed or was wrong.
"""
import hashlib
import os
import random
import sys
import time

PAUSE = 0.005  # seconds; without it the readers of a world take all processors while a test waits for a timeout


def content(path):
    with open(path, 'rb', buffering=0) as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.md5(f.read()).digest()


def main():
    source, mountpoint, stop, seed = sys.argv[1:]
    names, sums = [], {}
    for folder, _, files in os.walk(source):
        names += [os.path.relpath(os.path.join(folder, name), source) for name in files]
    for name in names:
        sums[name] = content(os.path.join(source, name))
    order = random.Random(seed)
    reads, wrong, most = 0, 0, 0.0
    while not os.path.exists(stop):
        name = order.choice(names)
        began = time.monotonic()
        try:
            if content(os.path.join(mountpoint, name)) != sums[name]:
                print(f'{name}: other bytes than the source', flush=True)
                wrong += 1
        except OSError as error:
            print(f'{name}: {error}', flush=True)
            wrong += 1
        took = time.monotonic() - began
        if took > 5:
            print(f'{time.strftime("%T")} {name}: {took:.1f} s', flush=True)
        most = max(most, took)
        reads += 1
        time.sleep(PAUSE)
    print(f'{reads} files, {most:.2f} s')
    return wrong > 0


sys.exit(main())
