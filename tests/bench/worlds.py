"""The lines of `make bench` about worlds of several nodes, all on this machine.

Two nodes that read from each other, over shared memory and (as root) over TCP between network namespaces; beside it
what bare MPI does, and what a sample costs each process. Four nodes that join with a kept catalog."""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

NETWORK = '10.98.7.0/24'
TCP = ['OMPI_MCA_btl=tcp,self', f'OMPI_MCA_btl_tcp_if_include={NETWORK}', f'OMPI_MCA_oob_tcp_if_include={NETWORK}',
       f'PRTE_MCA_prte_if_include={NETWORK}']
TICK = os.sysconf('SC_CLK_TCK')


def environment():
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
                OMPI_MCA_orte_execute_quiet='1')


class World:
    """Nodes of this machine, from `ready` to their unmounting."""

    def __init__(self, bench, nodes, source, options, mpirun=(), prefix=(), keep=False):
        self.bench, self.nodes, self.keep = bench, nodes, keep
        self.mpirun = [*prefix, 'mpirun', '--bind-to', 'none', *(mpirun or ['--oversubscribe', '-n', str(nodes)])]
        self.base = os.path.join(bench.HERE, 'world')
        self.command = [bench.DEALFS, 'mount', '-o', f'state={self.base}/state%r,{options}', source,
                        f'{self.base}/node%r']

    def path(self, node):
        return f'{self.base}/node{node}'

    def __enter__(self):
        for node in range(self.nodes):
            os.makedirs(self.path(node), exist_ok=True)
        self.began = time.monotonic()
        self.process = subprocess.Popen([*self.mpirun, *self.command], env=environment(), text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.strip() == 'ready':
                self.took = time.monotonic() - self.began
                return self
        self.__exit__()
        raise RuntimeError('no world: ' + ''.join(said))

    def __exit__(self, *_):
        for node in range(self.nodes):
            subprocess.run([self.bench.DEALFS, 'umount', self.path(node)], stdout=subprocess.DEVNULL)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        if not self.keep:
            shutil.rmtree(self.base, ignore_errors=True)

    def status(self, node):
        with open(f'{self.path(node)}/.dealfs/status') as f:
            return json.load(f)

    def owned(self, node, names):
        """Lists of the files that this node and the other ones own, as paths below the mount of node 0."""
        with open(names) as f:
            paths = f.read().split('\n')[:-1]
        lists = [[] for _ in range(self.nodes)]
        for i in range(0, len(paths), 1000):
            for line in self.bench.sh(self.bench.DEALFS, 'where', self.path(0), *paths[i:i + 1000]).splitlines():
                _, owner, _, path = line.split('\t')
                lists[int(owner)].append(path if path.startswith('/') else f'{self.path(0)}/{path}')
        out = []
        for owner in sorted(range(self.nodes), key=lambda owner: owner != node):
            out.append(os.path.join(self.bench.HERE, f'list-world-{owner}'))
            with open(out[-1], 'w') as f:
                f.writelines(path + '\n' for path in lists[owner])
        return out


def processor_time(pid):
    with open(f'/proc/{pid}/stat') as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def bare_mpi(bench, size, mpirun, prefix, *wrapper, **variables):
    """What pingpong prints, and its microseconds of processor time per answer."""
    said = bench.sh(*prefix, 'mpirun', '--bind-to', 'none', *(mpirun or ['--oversubscribe', '-n', '2']),
                    *wrapper, bench.program('pingpong'), str(size), '4', '3',
                    env=dict(environment(), **variables)).strip()
    return said, float(re.search(r'([\d.]+) us', said).group(1))


def remote_lines(bench, source, size, what, need, mpirun=(), prefix=()):
    rates = []
    with World(bench, 2, source, 'ram=2G', mpirun, prefix) as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0))
        local, remote = world.owned(0, bench.list_of(world.path(0)))

        def read_local():
            rates.append(bench.read(local, '-c', '-t', '4'))
            return rates[-1]
        bench.paired(f'{what}, remote / local, 4 threads', lambda: bench.read(remote, '-c', '-t', '4'), read_local,
                     need, 'files/s')
        pids = {f'{name} {node}': pid for node in (0, 1) for name, pid in world.status(node)['pids'].items()
                if name in ('server', 'courier')}
        before = {name: processor_time(pid) for name, pid in pids.items()}
        bench.read(remote, '-c', '-r', '3', '-t', '4')
        reads = 3 * sum(1 for _ in open(remote))
        costs = {name: 1e6 * (processor_time(pid) - before[name]) / reads for name, pid in pids.items()}
        bench.note(f'{what}: processor time a sample, kernel included: {sum(costs.values()):.0f} us; '
                   + ', '.join(f'{name} {cost:.0f}' for name, cost in costs.items()))
    said, _ = bare_mpi(bench, size, mpirun, prefix)
    bench.note(f'{what}: bare MPI, {size} bytes, 4 in flight, both spinning: {said}')
    _, bare = bare_mpi(bench, size, mpirun, prefix, 'taskset', '-c', '0', OMPI_MCA_mpi_yield_when_idle='1')
    sample = 1e6 * os.cpu_count() / statistics.median(rates)
    bench.note(f'{what}: bound on this machine {sample / (sample + bare):.2f}: a local sample takes {sample:.0f} us of '
               f'its cores, and bare MPI on one core, where it never waits, {bare:.0f} us')


@contextlib.contextmanager
def machines(count, rate=None, burst='1mb', latency='50ms', wire=None, delay=0):
    """Network namespaces on a bridge in one more, each with a link of this rate; yields an agent for mpirun, as ssh is
    called. Through `wire`, which program is given (wire.c), what a machine sends comes `delay` microseconds later."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        def machine():
            process = subprocess.Popen(['unshare', '-n', '-u', 'sh', '-c',
                                        'hostname "$1"; echo; exec sleep infinity', '-', f'machine{len(pids)}'],
                                       stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            process.stdout.readline()
            ends.callback(lambda: (process.kill(), process.wait()))
            pids.append(process.pid)
            at(pids[-1], 'ip', 'link', 'set', 'lo', 'up')
            return process.pid

        def at(pid, *command):
            subprocess.run(['nsenter', f'--net=/proc/{pid}/ns/net', f'--uts=/proc/{pid}/ns/uts', *command], check=True)

        def link(pid, port):
            if not delay:
                at(switch, 'ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(pid))
                return
            process = subprocess.Popen([wire, str(delay), str(pid), 'eth0', str(switch), port],
                                       stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            ends.callback(lambda: (process.kill(), process.wait()))
            if not process.stdout.readline():
                raise RuntimeError('there is no wire')

        pids = []
        switch = machine()
        at(switch, 'ip', 'link', 'add', 'bridge', 'type', 'bridge')
        at(switch, 'ip', 'address', 'add', NETWORK.replace('.0/', '.100/'), 'dev', 'bridge')
        at(switch, 'ip', 'link', 'set', 'bridge', 'up')
        for i in range(1, count + 1):
            pid = machine()
            link(pid, f'port{i}')
            at(switch, 'ip', 'link', 'set', f'port{i}', 'master', 'bridge', 'up')
            at(pid, 'ip', 'address', 'add', NETWORK.replace('.0/', f'.{i}/'), 'dev', 'eth0')
            at(pid, 'ip', 'link', 'set', 'eth0', 'up')
            for end, device in ((pid, 'eth0'), (switch, f'port{i}')) if rate else ():
                at(end, 'tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf', 'rate', rate, 'burst', burst, 'latency',
                   latency)
            os.symlink(f'/proc/{pid}/ns', f'{folder}/{i}')
        agent = f'{folder}/agent'
        with open(agent, 'w') as f:
            f.write(f'#!/bin/sh\nns={folder}/${{1##*.}}\nshift\n'
                    'exec nsenter --net="$ns/net" --uts="$ns/uts" sh -c "$*"\n')
        os.chmod(agent, 0o755)
        yield ['nsenter', f'--net=/proc/{switch}/ns/net', f'--uts=/proc/{switch}/ns/uts', 'env', *TCP,
               'OMPI_MCA_plm=rsh', f'OMPI_MCA_plm_rsh_agent={agent}', 'OMPI_MCA_plm_rsh_no_tree_spawn=1',
               'PRTE_MCA_plm=ssh', f'PRTE_MCA_plm_ssh_agent={agent}', 'PRTE_MCA_plm_ssh_no_tree_spawn=1'], [
            '--map-by', 'ppr:1:node', '--host',
            ','.join(NETWORK.replace('.0/24', f'.{i}') for i in range(1, count + 1))]


def line_remote(bench):
    """two nodes here, shards staged, page cache dropped: reads from the other node against reads from this one"""
    name, files, size = bench.sizes()[0]
    source = bench.tree(name, files, size)
    remote_lines(bench, source, size, f'{name}, shared memory', 0.4)
    if os.geteuid() != 0:
        return
    with machines(2) as (switch, mpirun):
        remote_lines(bench, source, size, f'{name}, TCP between namespaces', 0.25, mpirun, switch)


def received(pid):
    """Bytes that came over the network to the namespace of a process."""
    with open(f'/proc/{pid}/net/dev') as f:
        return next(int(line.split()[1]) for line in f if line.strip().startswith('eth0:'))


def line_blocks(bench):
    """two nodes by TCP: bytes over the network for each random read of 4 KiB in files of 16 MiB of the other node"""
    if os.geteuid() != 0:
        return
    source, reads = bench.tree('16M', 16, 16 << 20), 2000
    with machines(2) as (switch, mpirun), World(bench, 2, source, 'ram=1G', mpirun, switch) as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0))
        remote = world.owned(0, bench.list_of(world.path(0)))[1]
        courier, bytes_each = world.status(0)['pids']['courier'], []
        for _ in range(bench.TURNS):
            before = received(courier)
            bench.read(remote, '-c', '-t', '2', '-r', '1', '-k', '4096', '-n', str(reads))
            bytes_each.append((received(courier) - before) / reads)
        median = statistics.median(bytes_each)
        bench.row('remote 4 KiB of a file of 16 MiB: bytes over the network / 4 KiB', median, 4096, median / 4096, 3,
                  'bytes', at_most=True)
        bench.note(f'bytes over the network, {len(bytes_each)} turns: {min(bytes_each):.0f} to {max(bytes_each):.0f}')


def slept(pids):
    """Nanoseconds that processes were on a processor, and how often they slept."""
    used = sleeps = 0
    for task in (task for pid in pids for task in glob.glob(f'/proc/{pid}/task/*')):
        with open(f'{task}/schedstat') as f:
            used += int(f.read().split()[0])
        with open(f'{task}/status') as f:
            sleeps += next(int(line.split()[1]) for line in f if line.startswith('voluntary_'))
    return used, sleeps


def idle_costs(pids):
    """The share of a core in percent, and wakes per second, over 4 s."""
    before, began = slept(pids), time.monotonic()
    time.sleep(4)
    after, took = slept(pids), time.monotonic() - began
    return (after[0] - before[0]) / took / 1e7, (after[1] - before[1]) / took


def late_answers(paths):
    """Milliseconds of reads of another node's files, each after a pause in which its courier falls asleep."""
    for path in paths:
        time.sleep(0.05)
        began = time.monotonic()
        with open(path, 'rb') as f:
            f.read()
        yield (time.monotonic() - began) * 1000


def line_idle(bench):
    """a node of two that does nothing: its share of a core, wakes per second; and how late a sleeping peer answers"""
    source = bench.tree('112K-200', 200, 112 << 10)
    with World(bench, 2, source, 'ram=256M') as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0))
        pids = world.status(0)['pids'].values()
        time.sleep(2)  # what staging left to do
        shares, wakes = zip(*(idle_costs(pids) for _ in range(bench.TURNS)))
        with open(world.owned(0, bench.list_of(world.path(0)))[1]) as f:
            late = list(late_answers(f.read().split('\n')[:40]))
    bench.row('an idle node of a world: share of a core', statistics.median(shares), 1, statistics.median(shares), 1,
              '%', at_most=True)
    bench.row('an idle node of a world: wakes per second', statistics.median(wakes), 30, statistics.median(wakes) / 30,
              1, '1/s', at_most=True)
    bench.row('a sample of a node that sleeps', statistics.median(late), 50, statistics.median(late) / 50, 1, 'ms',
              at_most=True)


def line_join(bench):
    """four nodes with a kept catalog of 1,000,000 files: from mpirun to `ready`"""
    source = bench.many()
    options = 'ram=64M,rescan=never'
    with World(bench, 4, source, options, keep=True):
        pass
    took = []
    for turn in range(bench.TURNS):
        with World(bench, 4, source, options, keep=turn < bench.TURNS - 1) as world:
            took.append(world.took)
    bench.row('four nodes mount and join, kept catalog of many files', statistics.median(took), 2,
              statistics.median(took) / 2, 1, 's', at_most=True)


def moved(bench, world, *command):
    """MiB/s of a turn's move, by the nodes' own clocks."""
    bench.sh(bench.DEALFS, command[0], '--wait', world.path(0), *command[1:])
    move = world.status(0)['move']
    assert move['refused_samples'] == 0 and move['come_bytes'] == move['bytes'], move
    return move['come_bytes'] / move['elapsed'] * 1e9 / bench.M


def exchange_lines(bench, source, total):
    """A world a turn: filled, exchanged, shuffled."""
    staged, exchanged, shuffled = [], [], []
    for turn in range(bench.TURNS):
        with World(bench, 4, source, 'ram=2G,exchange') as world:
            bench.sh(bench.DEALFS, 'stage', world.path(0))
            staged.append(total / world.status(0)['stage']['elapsed'] * 1e9 / bench.M)
            exchanged.append(moved(bench, world, 'exchange', f'epoch={turn}', 'fraction=1'))
            shuffled.append(moved(bench, world, 'shuffle', f'seed={turn}'))
    for what, values in ('exchange of all', exchanged), ('shuffle', shuffled):
        bench.row(f'{what}, 4 nodes here / staging', statistics.median(values), statistics.median(staged),
                  statistics.median(a / b for a, b in zip(values, staged)), 0.5, 'MiB/s')


def exchange_links(bench, source, total):
    with machines(4, '1gbit') as (switch, mpirun):
        with World(bench, 4, source, 'ram=2G,exchange', mpirun, switch) as world:
            bench.sh(bench.DEALFS, 'stage', world.path(0))
            ours = [moved(bench, world, 'shuffle', f'seed={turn}') for turn in range(bench.TURNS)]
        theirs = float(bench.sh(*switch, 'mpirun', '--bind-to', 'none', *mpirun, bench.program('alltoall'),
                                str(total // 4), '1', str(bench.TURNS), env=environment()))
    ours = statistics.median(ours)
    bench.row('shuffle, 4 nodes, links of 1 Gbit/s / MPI_Alltoallv', ours, theirs, ours / theirs, 0.8, 'MiB/s')


def own_files(bench, world):
    """A list of all files, each in the mount of its owner."""
    names = os.path.join(bench.HERE, 'list-own')
    with open(bench.list_of(world.path(0))) as f:
        paths = f.read().split('\n')[:-1]
    with open(names, 'w') as f:
        for i in range(0, len(paths), 1000):
            for line in bench.sh(bench.DEALFS, 'where', world.path(0), *paths[i:i + 1000]).splitlines():
                _, owner, _, path = line.split('\t')
                f.write(f'{world.path(int(owner))}/{os.path.relpath(path, world.path(0))}\n'
                        if path.startswith('/') else f'{world.path(int(owner))}/{path}\n')
    return names


def exchange_behind(bench, source):
    """One reader, which with the server that answers it keeps half of two cores busy, reads what each node owns."""
    def epoch():
        said = bench.sh(bench.program('reader'), '-c', '-r', '1', '-t', '1', names)
        return [float(re.search(rf'{key}=([\d.]+)', said).group(1)) for key in ('median', 'p99us')]
    rates, tails, ends = [], [], []
    with World(bench, 4, source, 'ram=2G,exchange') as world:
        bench.sh(bench.DEALFS, 'stage', world.path(0))
        for turn in range(bench.TURNS):
            names = own_files(bench, world)
            alone = epoch()
            began = time.monotonic()
            with subprocess.Popen([bench.DEALFS, 'exchange', '--wait', world.path(0), f'epoch={turn}', 'fraction=0.3'],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                beside = epoch()
                took = time.monotonic() - began
            rates.append((beside[0], alone[0]))
            tails.append((beside[1], alone[1]))
            ends.append((world.status(0)['move']['elapsed'] / 1e9, took))
    for what, pairs, need, unit, at_most in (
            ('reads beside an exchange of 0.3 / without it', rates, 0.8, 'files/s', False),
            ('their p99 / without it', tails, 2, 'us', True),
            ('the exchange / the epoch', ends, 1, 's', True)):
        bench.row(what, *(statistics.median(column) for column in zip(*pairs)),
                  statistics.median(a / b for a, b in pairs), need, unit, at_most=at_most)


def line_exchange(bench):
    """samples on the move: four nodes, against staging, against MPI_Alltoallv, behind an epoch's reads"""
    _, files, size = bench.sizes()[0]
    source = bench.tree('112K', files, size)
    exchange_lines(bench, source, files * size)
    exchange_behind(bench, source)
    if os.geteuid() == 0:
        exchange_links(bench, source, files * size)


LINES = {'remote': line_remote, 'blocks': line_blocks, 'idle': line_idle, 'join': line_join, 'exchange': line_exchange}
