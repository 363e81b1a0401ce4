"""A rank that reads its list of one epoch after the other, fed, beside whatever happens to its node.

    epochs.py SOURCE MOUNTPOINT STOP FIRST LAST KEY=VALUE…

Epochs FIRST to LAST, or until the file STOP is there. The list is asked for with feed=yes and these keys, of which
rank=, and read at once, out of a page cache that has nothing of it, in its order. Each file must have the bytes of the
source. The last line is `EPOCHS epochs`; exit status 1 when a file could not be read or had other bytes."""
import os
import sys
import time

def content(path, drop=False):
    with open(path, 'rb', buffering=0) as f:
        if drop:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return b''
        return f.read()


def plan(mountpoint, epoch, keys):
    """Where the list is asked for is no matter of a loader that has its files: it asks again."""
    while True:
        try:
            with open(f'{mountpoint}/.dealfs/control', 'r+b', buffering=0) as f:
                f.write(f'plan epoch={epoch} feed=yes {" ".join(keys)}\n'.encode())
                return [int(word) for word in f.read().split()]
        except OSError as error:
            print(f'epoch {epoch}: plan: {error}', flush=True)
            time.sleep(0.1)


def end(mountpoint, epoch, keys):
    """Its report is final then; nothing depends on it."""
    rank = next(key for key in keys if key.startswith('rank='))
    try:
        with open(f'{mountpoint}/.dealfs/control', 'r+b', buffering=0) as f:
            f.write(f'end epoch={epoch} {rank}\n'.encode())
            f.read()
    except OSError as error:
        print(f'epoch {epoch}: end: {error}', flush=True)


def read_epoch(source, mountpoint, names):
    wrong = 0
    for name in names:
        try:
            if content(f'{mountpoint}/{name}') != content(f'{source}/{name}'):
                print(f'{name}: other bytes than the source', flush=True)
                wrong += 1
        except OSError as error:
            print(f'{name}: {error}', flush=True)
            wrong += 1
    return wrong


def main():
    source, mountpoint, stop, first, last, *keys = sys.argv[1:]
    with open(f'{mountpoint}/.dealfs/samples', 'rb') as f:
        names = os.fsdecode(f.read()).split('\n')
    epochs = wrong = 0
    for epoch in range(int(first), int(last) + 1):
        if os.path.exists(stop):
            break
        files = [names[i] for i in plan(mountpoint, epoch, keys)]
        wrong += read_epoch(source, mountpoint, files)
        end(mountpoint, epoch, keys)
        for name in files:
            content(f'{mountpoint}/{name}', drop=True)
        epochs += 1
        print(f'epoch {epoch}: {len(files)} files', flush=True)
    print(f'{epochs} epochs')
    return wrong > 0


sys.exit(main())
