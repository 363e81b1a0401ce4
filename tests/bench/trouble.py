"""The lines of `make bench` about reads while something is wrong: how much later they are answered."""
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import time

import worlds

SIZE = 112 << 10
THREADS = 64
PEER_TIMEOUT = 2
CUT = 3 * PEER_TIMEOUT  # seconds
SLOWEST = 2  # seconds that any read may take beside others


def paths_of(name):
    with open(name) as f:
        return f.read().split('\n')[:-1]


def write_list(bench, name, paths):
    name = os.path.join(bench.HERE, f'list-{name}')
    with open(name, 'w') as f:
        f.writelines(path + '\n' for path in paths)
    return name


def slowest(paths, seconds):
    """Of reads past the page cache, one after the other, for this time: the seconds of the slowest one."""
    longest, end = 0, time.monotonic() + seconds
    for path in itertools.cycle(paths):
        with open(path, 'rb', buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.monotonic()
            f.read()
            now = time.monotonic()
        longest = max(longest, now - began)
        if now > end:
            return longest


def beside(bench, what, turns, median, tail):
    """Rows about latencies beside others and without them, in pairs of turns."""
    for key, name, need in ('p50us', 'median', median), ('p99us', 'p99', tail):
        pairs = [(ours[key], alone[key]) for ours, alone in turns]
        bench.row(f'{name} read {what} / without them', *(statistics.median(column) for column in zip(*pairs)),
                  statistics.median(a / b for a, b in pairs), need, 'us', at_most=True)
    longest = max(ours['maxus'] for ours, _ in turns) / 1e6
    bench.row(f'slowest read {what}', longest, SLOWEST, longest / SLOWEST, 1, 's', at_most=True)


# --- a mount whose source hangs ---

class Source:
    """1,000 files of d0000, and 256 of d0001; a source that hangs when it should. Mounts of it bear servers' deaths."""

    def __init__(self, bench):
        self.bench, self.path = bench, bench.tree('112K-1256', 1256, SIZE)
        self.faults = os.path.join(bench.HERE, 'faults')

    def set(self, text):
        with open(self.faults + '.new', 'w') as f:
            f.write(text)
        os.rename(self.faults + '.new', self.faults)

    def __enter__(self):
        self.set('')
        os.environ.update(DEALFS_SOURCE_FAULTS=f'file={self.faults}', DEALFS_MINUTE='0')
        return self

    def __exit__(self, *_):
        self.set('')
        del os.environ['DEALFS_SOURCE_FAULTS'], os.environ['DEALFS_MINUTE']

    @contextlib.contextmanager
    def blocked(self, mount):
        """A thread waits for each file of d0001. When the source answers, all get their bytes."""
        paths = paths_of(self.bench.list_of(f'{mount.path}/d0001'))
        self.set('hang=d0001/*')
        crowd = [subprocess.Popen([self.bench.program('reader'), '-r', '1', '-t', str(THREADS),
                                   write_list(self.bench, f'blocked{at}', paths[at:at + THREADS])],
                                  stdout=subprocess.DEVNULL) for at in range(0, len(paths), THREADS)]
        try:
            while status(mount)['parked'] < len(paths):
                assert all(process.poll() is None for process in crowd), 'a reader does not wait'
                time.sleep(0.01)
            yield
            assert status(mount)['parked'] >= len(paths)
        finally:
            self.set('')
            failed = [process.wait() for process in crowd if process.wait()]
        assert not failed, failed


def status(mount):
    with open(f'{mount.path}/.dealfs/status') as f:
        return json.load(f)


def line_hangs(bench):
    """reads of cached files beside 256 that wait for a source that hangs; a reader whose server is killed"""
    with Source(bench) as source, bench.Mount(source.path, 'ram=256M', stage=False) as mount, \
            bench.Mount(source.path, 'ram=256M', stage=False) as other:
        names = [bench.list_of(f'{m.path}/d0000') for m in (mount, other)]
        for name in names:
            bench.read(name, '-r', '1')
        with source.blocked(mount):
            turns = [[bench.latencies(name, '-c', '-t', '1') for name in names] for _ in range(bench.TURNS)]
        beside(bench, 'beside 256 that wait for the source', turns, 2, 4)
        pauses = []
        for _ in range(bench.TURNS):
            os.kill(status(mount)['pids']['server'], signal.SIGKILL)
            pauses.append(slowest(paths_of(names[0]), 1))
    bench.row('a server is killed: its reader waits', statistics.median(pauses), 1, statistics.median(pauses), 1, 's',
              at_most=True)


# --- nodes ---

def line_cut(bench):
    """three nodes by TCP: one reader beside 64 threads of another node, and the slowest read while a link is cut"""
    if os.geteuid() != 0:
        return
    source = bench.tree('112K-600', 600, SIZE)
    with worlds.machines(3) as (switch, mpirun), \
            worlds.World(bench, 3, source, f'ram=256M,peer_timeout={PEER_TIMEOUT}', mpirun, switch) as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0))
        of_2 = world.owned(0, bench.list_of(world.path(0)))[2]
        mine = write_list(bench, 'of-node1', [path.replace(world.path(0), world.path(1)) for path in paths_of(of_2)])
        turns = []
        for _ in range(bench.TURNS):
            alone = bench.latencies(mine, '-c', '-t', '1')
            with subprocess.Popen([bench.program('reader'), '-c', '-r', '64', '-t', str(THREADS), of_2],
                                  stdout=subprocess.DEVNULL) as crowd:
                before = world.status(0)['reads']['peer']
                while world.status(0)['reads']['peer'] < before + THREADS:
                    assert crowd.poll() is None, 'they have read all'
                    time.sleep(0.01)
                before = world.status(0)['reads']['peer']
                turns.append([bench.latencies(mine, '-c', '-t', '1'), alone])
                reads = world.status(0)['reads']['peer'] - before
                assert crowd.poll() is None, 'they have read all'
                crowd.terminate()
        beside(bench, f'of another node beside {THREADS} threads of a third one', turns, 5, 20)
        bench.note(f'beside {THREADS} threads: they got {reads} answers while the other got {len(paths_of(mine))}')
        bench.sh(*switch, 'ip', 'link', 'set', 'port3', 'down')
        longest = slowest(paths_of(mine), CUT)
        bench.sh(*switch, 'ip', 'link', 'set', 'port3', 'up')
    bench.row('a link is cut: slowest read / peer_timeout', longest, PEER_TIMEOUT, longest / PEER_TIMEOUT, 2.5, 's',
              at_most=True)


LINES = {'hangs': line_hangs, 'cut': line_cut}
