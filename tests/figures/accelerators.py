"""How many accelerators can be fed, as MLPerf Storage counts them, with its RetinaNet workload: one JPEG per file, each
accelerator computes (here: sleeps) for a fixed time for each batch, and it counts if it computes at least 85 % of the
time. The first batch is not counted. All places are measured in turn with the same number of accelerators, so that
other work on the machine meets all of them alike."""
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

SIZE, BATCH, STEP = 322957, 24, 0.04755
NEEDED = 0.85
WORKERS, AHEAD = 4, 2  # of an accelerator
COUNTS = (1, 2, 4, 6, 8, 10, 12, 14)


def utilization(bench, paths, accelerators):
    """AU: the part of the time in which they compute. No file is read twice."""
    steps = min(20, len(paths) // BATCH // accelerators)
    order = random.Random(accelerators).sample(paths, accelerators * steps * BATCH)
    lists = []
    for i in range(accelerators):
        lists.append(f'{bench.HERE}/list{i}')
        with open(lists[-1], 'w') as f:
            f.writelines(f'{path}\n' for path in order[i::accelerators])
    out = bench.sh(f'{bench.PROGRAMS}/trainer', str(BATCH), str(int(1e6 * STEP)), str(WORKERS), str(AHEAD), str(steps),
                   *lists)
    seconds, _, _, first = map(float, out.split())
    return steps * STEP / (seconds - first)


def drop(paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def cold(bench, originals, paths, accelerators):
    drop(originals)
    drop(paths)
    return utilization(bench, paths, accelerators)


@contextlib.contextmanager
def mounted(bench, source, options, staged=True):
    path = tempfile.mkdtemp(prefix='mount-', dir=bench.HERE)
    bench.sh(bench.DEALFS, 'mount', '-o', f'state={path}.state,{options}', source, path, stderr=subprocess.DEVNULL)
    try:
        if staged:
            bench.sh(bench.DEALFS, 'stage', path, stderr=subprocess.DEVNULL)
        yield path
    finally:
        bench.sh(bench.DEALFS, 'umount', path)
        os.rmdir(path)


@contextlib.contextmanager
def bound(bench, source):
    path = f'{bench.HERE}/bound'
    os.makedirs(path)
    with subprocess.Popen(['bindfs', '-f', '--multithreaded', '-o', 'ro', source, path]) as process:
        while not os.path.ismount(path) and process.poll() is None:
            time.sleep(0.01)
        try:
            yield path
        finally:
            subprocess.run(['umount', path], check=True)
    os.rmdir(path)


def figure(bench):
    """accelerators that can be fed, as MLPerf Storage counts them: from dealfs, ext4 and bindfs"""
    if not shutil.which('bindfs'):
        bench.say('accelerators: without bindfs, which is not installed (Debian: apt install bindfs)')
    samples, source = 1440 if bench.quick else 5760, f'{bench.HERE}/pictures'
    os.makedirs(source)
    bench.sh(f'{bench.PROGRAMS}/maker', source, str(samples), str(SIZE), '1000')
    os.sync()
    room = samples * SIZE * 21 // 20
    with contextlib.ExitStack() as ends:
        places = {'ext4': source, 'dealfs, RAM tier': ends.enter_context(mounted(bench, source, f'ram={room}')),
                  'dealfs, SSD tier': ends.enter_context(
                      mounted(bench, source, f'ram=0,ssd={bench.HERE},ssd_size={room}'))}
        if shutil.which('bindfs'):
            places['bindfs'] = ends.enter_context(bound(bench, source))
        draw(bench, measure(bench, source, places))


def measure(bench, source, places):
    """By place: (number of accelerators, AU of each run)."""
    names = [os.path.relpath(f'{folder}/{n}', source) for folder, _, files in os.walk(source) for n in files]
    originals, found = [f'{source}/{n}' for n in names], {name: {} for name in places}
    for run in range(bench.runs):
        for n in COUNTS:
            for name, path in places.items():
                au = bench.measured(f'{name} {n} run {run}', lambda: cold(
                    bench, originals, [f'{path}/{file}' for file in names], n))
                found[name].setdefault(n, []).append(au)
    return {name: list(line.items()) for name, line in found.items()}


def draw(bench, found):
    panel = bench.plot.Panel('one node, page cache dropped', 'accelerators', 'share of the time spent computing',
                             (0.5, COUNTS[-1] + 0.5), (0, 1.05), [(n, n) for n in COUNTS])
    for colour, (name, line) in enumerate(found.items()):
        enough = max((n for n, aus in line if statistics.median(aus) >= NEEDED), default=0)
        bench.say(name, enough, *(f'{n}: {statistics.median(aus):.2f}' for n, aus in line))
        panel.medians([(n + 0.1 * (colour - 1.5), aus) for n, aus in line], colour, f'{name}: {enough}')
    panel.rule(NEEDED, 'needed: 85 %')
    bench.write('accelerators', [[panel]],
                f'MLPerf Storage, RetinaNet: files of {SIZE:,} bytes, batches of {BATCH}, {STEP} s of computing '
                f'(sleep) for each; {WORKERS} readers per accelerator. The number after a name is the largest number '
                'of accelerators that were fed. The places are measured in turn.')
