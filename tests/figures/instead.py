"""The alternatives to dealfs for a dataset on slow storage, on one node: the storage itself, copies to the local disk
by one or many processes, and rclone mount with its full cache. Two times are measured: preparation and first epoch
together, and a later epoch with the page cache dropped. The same is measured for a dataset that is already on a fast
local disk, where dealfs gains nothing."""
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import time

import accelerators
import training
import wall
from slow import Slow

# Three workers per node, as loaders of pictures have; the storage takes 20 ms for each read.
LOAD = wall.Workload('', 117000, 2000, 640, 80)
RATE, DELAY, WORKERS, COPIES = 600, 20, 3, 16


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
def copied_by_many(bench, source):
    """Directories first, then files, 8 for each cp."""
    copy = f'{bench.HERE}/copy'
    os.makedirs(copy)
    subprocess.run(f'find . -type d -print0 | (cd {copy} && xargs -0 mkdir -p) && '
                   f'find . -type f -print0 | xargs -0 -n 8 -P {COPIES} cp --parents -t {copy}', shell=True, check=True,
                   cwd=source)
    yield copy


@contextlib.contextmanager
def synchronized(bench, source):
    os.makedirs(f'{bench.HERE}/copy')
    subprocess.run(['fpsync', '-n', str(COPIES), '-f', '8', '-t', f'{bench.HERE}/fpsync', f'{source}/',
                    f'{bench.HERE}/copy/'], check=True, stdout=subprocess.DEVNULL)
    yield f'{bench.HERE}/copy'


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
    os.makedirs(f'{bench.HERE}/ssd')
    with mounted(bench, source, f'ram=0,ssd={bench.HERE}/ssd,ssd_size=1G') as path:
        yield path


WAYS = {'the storage itself': itself, '`cp -r` first': copied, f'`xargs -P {COPIES} cp` first': copied_by_many,
        f'`fpsync -n {COPIES}` first': synchronized, '`rclone mount`, full cache': cloned,
        'dealfs, SSD tier': dealt_ssd, 'dealfs, RAM tier': dealt}
SHORT = dict(zip(WAYS, ('storage', 'cp', 'xargs cp', 'fpsync', 'rclone', 'SSD tier', 'RAM tier')))
NEED = {'fpsync': synchronized, 'rclone': cloned}
LOCAL = {'the local disk itself': itself, 'dealfs, SSD tier': dealt_ssd, 'dealfs, RAM tier': dealt}


def order(path, epoch):
    """An epoch's paths: by a plan that is fed, where there are plans."""
    if os.path.exists(f'{path}/.dealfs/samples'):
        with open(f'{path}/.dealfs/samples') as f:
            names = f.read().split('\n')
        return [f'{path}/{names[i]}' for i in training.numbers(
            path, f'plan epoch={epoch} ranks=1 batch={LOAD.batch} rank=0 tail=drop reply=u32 feed=yes')]
    paths = sorted(wall.files_below(path))
    random.Random(epoch).shuffle(paths)
    return paths


def drop_below(folder):
    accelerators.drop(wall.files_below(folder))


def measure(bench, source, way, slow):
    """Seconds to the end of the first epoch, and of a later one."""
    with Slow(bench, source, RATE * LOAD.size, DELAY) if slow else contextlib.nullcontext() as throttled:
        drop_below(source)
        began = time.monotonic()
        with way(bench, throttled.path if slow else source) as path:
            wall.train(bench, LOAD, [order(path, 0)], workers=WORKERS)
            first = time.monotonic() - began
            for cache in source, f'{bench.HERE}/copy', f'{bench.HERE}/rclone':
                drop_below(cache)
            later = wall.train(bench, LOAD, [order(path, 1)], workers=WORKERS)[0][0]
    for name in 'copy', 'fpsync', 'rclone', 'cloned', 'dealt', 'dealt.state', 'ssd':
        shutil.rmtree(f'{bench.HERE}/{name}', ignore_errors=True)
    return first, later


def times(runs, i):
    seconds = sorted(r[i] for r in runs)
    return f'{statistics.median(seconds):.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f})'


def ratios(runs, best, i):
    """The median of the ratios within each run."""
    return f'{statistics.median(r[i] / b[i] for r, b in zip(runs, best)):.1f}'


def table(found):
    """As Markdown."""
    print('\n| | first epoch, with all that it needs | / RAM tier | a later epoch | / RAM tier |')
    print('|---|---:|---:|---:|---:|')
    for name, runs in found.items():
        cells = ' | '.join(f'{times(runs, i)} | {ratios(runs, found["dealfs, RAM tier"], i)}' for i in (0, 1))
        print(f'| {name} | {cells} |')


def bar_panel(plot, title, found, i):
    panel = plot.Panel(title, '', 'seconds', (-0.6, len(found) - 0.4),
                       (0, 1.1 * max(r[i] for runs in found.values() for r in runs)),
                       [(at, SHORT.get(name, 'local disk')) for at, name in enumerate(found)])
    for at, runs in enumerate(found.values()):
        values = [r[i] for r in runs]
        panel.median_bar(at, 0.6, values, 0, f'{statistics.median(values):.1f}')
    return panel


def figure(bench):
    """alternatives to dealfs on slow storage, also as a table; and on local storage; as root"""
    source, slow, local = wall.dataset(bench, LOAD), {}, {}
    missing = {name for name in NEED if not shutil.which(name)}
    for name in missing:
        bench.say(f'instead: without {name}, which is not installed (Debian: apt install fpart rclone)')
    for run in range(bench.runs):
        for name, way in WAYS.items():
            if way not in {NEED[m] for m in missing}:
                slow.setdefault(name, []).append(
                    bench.measured(f'{name} run {run}', lambda: measure(bench, source, way, True)))
        for name, way in LOCAL.items():
            local.setdefault(name, []).append(
                bench.measured(f'local: {name} run {run}', lambda: measure(bench, source, way, False)))
    table(slow)
    table(local)
    plot = bench.plot
    bench.write('instead', [[bar_panel(plot, 'slow storage: preparation and first epoch', slow, 0),
                             bar_panel(plot, 'slow storage: a later epoch', slow, 1)],
                            [bar_panel(plot, 'local disk: preparation and first epoch', local, 0),
                             bar_panel(plot, 'local disk: a later epoch', local, 1)]],
                f'{LOAD.samples} files of {LOAD.size // 1000} KB, {WORKERS} readers, one node. Above: on storage that '
                f'delivers {RATE} of them per second, each after {DELAY} ms (simulated). Below: on a local disk, where '
                'dealfs gains nothing. The page cache is dropped before each epoch, except for parts of copies that '
                'are not written back yet. An epoch trains for 0.3 s (sleep). The tiers are those of dealfs, which '
                'knows the order of an epoch and reads ahead (feed=yes).')
