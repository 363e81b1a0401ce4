"""What a user would take instead of dealfs, for a dataset on slow storage, on one node: the storage itself, a copy to
the local disk, rclone mount with its full cache, bindfs. Two times: from nothing to the end of the first epoch, with
all that has to be done before it; and a later epoch, with the page cache dropped."""
import contextlib
import os
import random
import shutil
import subprocess
import time

import training
import wall
from slow import Slow

# Three workers per node, as loaders of pictures have; the storage takes 20 ms for each read.
LOAD = wall.Workload('', 117000, 1, 0, 2000, 1200)
RATE, DELAY, WORKERS, EPOCHS = 600, 20, 3, 3


def await_mount(path, process):
    while not os.path.ismount(path):
        if process.poll() is not None:
            raise RuntimeError(f'{process.args[0]} did not start')
        time.sleep(0.01)


@contextlib.contextmanager
def client(path, *command):
    """A file system whose program stays in the foreground."""
    os.makedirs(path)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        await_mount(path, process)
        try:
            yield path
        finally:
            subprocess.run(['umount', path], check=True)


@contextlib.contextmanager
def itself(bench, source):
    yield source


@contextlib.contextmanager
def copied(bench, source):
    subprocess.run(['cp', '-r', source, f'{bench.HERE}/copy'], check=True)
    yield f'{bench.HERE}/copy'


@contextlib.contextmanager
def bound(bench, source):
    path = f'{bench.HERE}/bound'
    with client(path, 'bindfs', '-f', '--multithreaded', '-o', 'ro', source, path):
        yield path


@contextlib.contextmanager
def cloned(bench, source):
    path = f'{bench.HERE}/cloned'
    with client(path, 'rclone', 'mount', source, path, '--read-only', '--vfs-cache-mode', 'full', '--cache-dir',
                f'{bench.HERE}/rclone', '--config', '/dev/null'):
        yield path


@contextlib.contextmanager
def mounted(bench, source, options):
    path = f'{bench.HERE}/dealt'
    os.makedirs(path)
    bench.sh(bench.DEALFS, 'mount', '-o', f'state={path}.state,{options}', source, path, stderr=subprocess.DEVNULL)
    try:
        yield path
    finally:
        bench.sh(bench.DEALFS, 'umount', path)


@contextlib.contextmanager
def dealt(bench, source):
    with mounted(bench, source, 'ram=1G') as path:
        yield path


@contextlib.contextmanager
def dealt_ssd(bench, source):
    with mounted(bench, source, f'ram=0,ssd={bench.HERE},ssd_size=1G') as path:
        yield path


WAYS = {'the storage itself': itself, 'bindfs': bound, '`cp` to the local disk first': copied,
        '`rclone mount`, full cache': cloned, 'dealfs, SSD tier': dealt_ssd, 'dealfs, RAM tier': dealt}
SHORT = dict(zip(WAYS, ('storage', 'bindfs', 'cp first', 'rclone', 'SSD tier', 'RAM tier')))
NEED = {'bindfs': bound, 'rclone': cloned}


def order(path, epoch):
    """An epoch's paths: by a plan that is fed, where there are plans."""
    if os.path.exists(f'{path}/.dealfs/samples'):
        with open(f'{path}/.dealfs/samples') as f:
            names = f.read().split('\n')
        return [f'{path}/{names[i]}' for i in training.ask(
            path, f'plan epoch={epoch} ranks=1 batch={LOAD.batch} rank=0 tail=drop reply=u32 feed=yes')]
    paths = sorted(wall.files_below(path))
    random.Random(epoch).shuffle(paths)
    return paths


def drop_below(folder):
    for path in wall.files_below(folder):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def measure(bench, source, way):
    """Seconds to the end of the first epoch, and of a later one."""
    later = []
    with Slow(bench, source, RATE * LOAD.size, DELAY) as slow:
        began = time.monotonic()
        with way(bench, slow.path) as path:
            wall.train(bench, LOAD, [order(path, 0)], workers=WORKERS)
            first = time.monotonic() - began
            for epoch in range(1, EPOCHS):
                for cache in f'{bench.HERE}/copy', f'{bench.HERE}/rclone':
                    drop_below(cache)
                later.append(wall.train(bench, LOAD, [order(path, epoch)], workers=WORKERS)[0][0])
    for name in 'copy', 'rclone', 'bound', 'cloned', 'dealt', 'dealt.state':
        shutil.rmtree(f'{bench.HERE}/{name}', ignore_errors=True)
    return first, min(later)


def table(found, made_by):
    """As Markdown."""
    best = found['dealfs, RAM tier']
    print(f'{made_by}\n\n| | first epoch | dealfs: times as fast | later epoch | dealfs: times as fast |')
    print('|---|---:|---:|---:|---:|')
    for name, times in found.items():
        cells = ' | '.join(f'{t:.1f} s | {t / b:.1f}' for t, b in zip(times, best))
        print(f'| {name} | {cells} |')


def draw(plot, found, path, made_by):
    panels = []
    for i, title in enumerate(('to the end of the first epoch', 'a later epoch')):
        panel = plot.Panel(title, '', 'seconds', (-0.6, len(found) - 0.4), (0, 1.3 * max(t[i] for t in found.values())),
                           [(at, SHORT[name]) for at, name in enumerate(found)])
        for at, times in enumerate(found.values()):
            panel.bar(at, 0.6, [times[i]])
            panel.text(panel.px(at), panel.py(times[i]) - 5, f'{times[i]:.1f}')
        panels.append(panel)
    plot.write(path, [panels],
               [f'{LOAD.samples} files of {LOAD.size // 1000} KB on storage that gives {RATE} of them a second, each '
                f'after {DELAY} ms; {WORKERS} workers. The tiers are those of dealfs.', made_by])


def figure(bench, plot, say, made_by, figures):
    source, found = wall.dataset(bench, LOAD), {}
    missing = {name for name in NEED if not shutil.which(name)}
    for name in missing:
        say(f'instead: without {name}, which is not installed (Debian: apt install {name})')
    for name, way in WAYS.items():
        if way not in {NEED[m] for m in missing}:
            found[name] = measure(bench, source, way)
            say(f'{name}: first epoch {found[name][0]:.2f} s, later {found[name][1]:.2f} s')
    table(found, made_by)
    draw(plot, found, f'{figures}/instead.svg', made_by)
