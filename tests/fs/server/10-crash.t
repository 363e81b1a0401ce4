#!/usr/bin/python3
"""Servers and keepers that die at any moment: no reader notices, and nothing is left behind. How long readers
wait: make bench (hangs).

Mounts are put up by bring-up, without the command. The shared memory of a mount tells the pids, and how many requests
were answered: every wait here is for something that moves there."""
import atexit
import ctypes
import errno
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../lib'))
from tap import diag, done_testing, ok, wait_for

BUILD = os.environ.get('top_builddir') or os.getcwd()
KEEPER = os.path.join(BUILD, 'dealfs-keeper')
BRING_UP = os.environ.get('BRING_UP') or os.path.join(BUILD, 'tests/fs/server/bring-up')
KILLS = int(os.environ.get('KILLS', '200'))
READERS = 8


class Tree:
    """A source whose bytes the test knows."""
    SIZES = [0, 1, 4095, 4096, 4097, 114688, 131071, 131072, 131073, 1048577, 3000000]

    def __init__(self, path):
        self.path = path
        self.content = {}
        rng = random.Random(1)
        for i in range(44):
            folder = f'd{i % 4}'
            os.makedirs(os.path.join(path, folder), exist_ok=True)
            self.content[f'{folder}/f{i}'] = rng.randbytes(self.SIZES[i % len(self.SIZES)])
        self.content['poison'] = rng.randbytes(5000)
        self.content['stuck'] = rng.randbytes(5000)
        for name, data in self.content.items():
            with open(os.path.join(path, name), 'wb') as f:
                f.write(data)


class Mount:
    def __init__(self, base, tree, name, faults='', source_faults='', life=None, expect=True,
                 keeper=KEEPER, minute=0, patience=30):
        self.path = os.path.join(base, name)
        self.state = os.path.join(base, name + '.state')
        self.memory = None
        os.mkdir(self.path)
        env = dict(os.environ, DEALFS_FAULTS=faults, DEALFS_MINUTE=str(minute),
                   DEALFS_PATIENCE=str(patience))
        if source_faults:
            env['DEALFS_SOURCE_FAULTS'] = source_faults
        if life is not None:
            env['LIFE'] = str(life)
        done = subprocess.run([BRING_UP, keeper, tree.path, self.path, self.state], env=env, capture_output=True,
                              text=True, pass_fds=[] if life is None else [life])
        self.up, self.message = done.returncode == 0, done.stderr
        if self.up:
            with open(f'/proc/{int(done.stdout)}/fd/5', 'rb') as f:
                self.memory = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
        live.append(self)
        if self.up != expect:
            raise RuntimeError(f'the mount is {"" if self.up else "not "}up: {self.message}{self.log()}')

    def number(self, offset, form='I'):
        return struct.unpack_from(form, self.memory, offset)[0]

    def lane(self, name):
        return LAYOUT[name + '_lane']

    keeper = property(lambda self: self.number(LAYOUT['keeper']))
    server = property(lambda self: self.number(LAYOUT['server']))
    generation = property(lambda self: self.number(LAYOUT['generation']))
    lingering = property(lambda self: self.number(LAYOUT['lingering']))
    answered = property(lambda self: self.number(self.lane('data') + LAYOUT['answered'], 'Q'))

    def slots_in_use(self):
        """Those with a request; a reader that waits in the kernel has one as well, in state 1 (READING)."""
        lane = self.lane('data')
        count = self.number(lane + LAYOUT['count'])
        first = lane + self.number(lane + LAYOUT['slots'], 'Q')
        return sum(self.number(first + i * LAYOUT['slot']) & 255 > 1 for i in range(count))

    def log(self):
        try:
            with open(os.path.join(self.state, 'log'), errors='replace') as f:
                return f.read()
        except OSError as e:
            return str(e)

    def status(self):
        def read():
            try:
                with open(self.state + '/control/status') as f:
                    return json.load(f)
            except OSError as e:
                if e.errno != errno.ESTALE:  # another server came between the file's being opened and read
                    raise
        return wait_for(read)

    def healthy(self, text):
        """The sentences of health have this in them."""
        return text in '; '.join(self.status()['health'])

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as f:
                    line = f.read()
            except OSError:
                continue
            if self.state.encode() in line:
                found.append(int(pid))
        return found

    def mounted(self):
        with open('/proc/self/mountinfo') as f:
            return any(line.split()[4] in (self.path, self.state + '/control') for line in f)

    def gone(self):
        return wait_for(lambda: not self.mounted() and not self.processes(), pause=0.02)

    def kill_server(self):
        """And wait until there is another one: with the next keeper killed before it has one, all would be dead."""
        pid, generation = self.server, self.generation
        kill(pid)
        return wait_for(lambda: self.generation > generation and self.server not in (0, pid))

    def take_down(self):
        for path in (self.path, self.state + '/control'):
            subprocess.run(['umount', '-l', path], stderr=subprocess.DEVNULL)
        for _ in range(50 if not wait_for(lambda: not self.processes(), 10, 0.02) else 0):
            for pid in self.processes():  # each replaces the other
                kill(pid)


def kill(pid, sig=signal.SIGKILL):
    if pid == 0:
        raise ValueError('nobody to kill: 0 would be this test and all its readers')
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


# --- readers ---

libc = ctypes.CDLL(None, use_errno=True)


def read_once(root, tree, rng):
    """One random look at the mount; raises on a wrong byte."""
    name = rng.choice(ordinary)
    data = tree.content[name]
    path = os.path.join(root, name)
    kind = rng.randrange(10)
    if kind == 0:
        if os.stat(path).st_size != len(data):
            raise ValueError(f'{name}: wrong size')
        return
    if kind == 1:
        folder = os.path.dirname(name)
        if sorted(os.listdir(os.path.join(root, folder))) != sorted(
                os.path.basename(n) for n in tree.content if n.startswith(folder + '/')):
            raise ValueError(f'{folder}: wrong listing')
        return
    if kind == 2:
        if os.path.exists(f'{path}.{rng.randrange(1 << 30)}'):
            raise ValueError('what is not there is there')
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        at = rng.randrange(len(data) + 1) if kind < 6 else 0
        length = rng.randrange(300000) if kind < 6 else len(data) + 1
        if os.pread(fd, length, at) != data[at:at + length]:
            raise ValueError(f'{name}: wrong bytes at {at}, {length}')
    finally:
        os.close(fd)


class Readers:
    """Processes that read until they are stopped; what went wrong, and how often they read, comes back by pipe."""

    def __init__(self, mount, tree, count=READERS):
        self.stop = mmap.mmap(-1, 4096)
        self.children = []
        for seed in range(count):
            r, w = os.pipe()
            pid = os.fork()
            if pid == 0:
                os._exit(self.body(mount.path, tree, random.Random(seed), w))
            os.close(w)
            self.children.append((pid, r))

    def body(self, root, tree, rng, out):
        reads, errors = 0, []
        while self.stop[0] == 0:
            try:
                read_once(root, tree, rng)
                reads += 1
            except (OSError, ValueError) as e:
                errors.append(str(e))
                if len(errors) > 3:
                    break
        os.write(out, json.dumps([reads, errors]).encode())
        return 0

    def finish(self):
        self.stop[0] = 1
        reads, errors = 0, []
        for pid, r in self.children:
            with os.fdopen(r) as f:
                result = json.loads(f.read() or '[0, ["a reader died"]]')
            os.waitpid(pid, 0)
            reads += result[0]
            errors += result[1]
        self.children = []
        return reads, errors


def all_right(root, tree):
    for name, data in tree.content.items():
        with open(os.path.join(root, name), 'rb') as f:
            if f.read() != data:
                diag(f'{name} differs')
                return False
    return True


def spawn(action):
    """A child that does something, as an errno: 0 when it returned what is true."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if action() else 255)
        except OSError as e:
            os._exit(e.errno)
    return pid


def outcome(pid):
    """'ok', 'wrong', an errno's name, or 'hangs'."""
    done = wait_for(lambda: (lambda d: d if d[0] else None)(os.waitpid(pid, os.WNOHANG)))
    if done is None:
        kill(pid)
        return 'hangs'
    code = os.waitstatus_to_exitcode(done[1])
    return {0: 'ok', 255: 'wrong'}.get(code) or errno.errorcode.get(code, str(code))


def attempt(path):
    """What opening and reading a file gives."""
    def read():
        with open(path, 'rb') as f:
            f.read()
        return True
    return outcome(spawn(read))


# --- the tests ---

def survives_under_load(base, tree):
    m = Mount(base, tree, 'load')
    readers = Readers(m, tree)
    rng = random.Random(7)
    served = True
    for _ in range(KILLS):
        target = m.answered + rng.randrange(60)
        served = served and wait_for(lambda: m.answered > target) and m.kill_server()
    ok(served, f'{KILLS} servers killed, each followed by one that answers')
    last = m.answered
    ok(wait_for(lambda: m.answered > last + 100), 'the last one serves')
    reads, errors = readers.finish()
    ok(not errors and reads > KILLS, f'{READERS} readers saw no error and no wrong byte')
    diag(f'{reads} reads, {m.answered} requests answered by {m.generation} servers')
    for e in errors[:8]:
        diag(e)
    ok(m.generation == KILLS + 1, 'no server died by itself')
    ok(wait_for(lambda: m.slots_in_use() == 0), 'no request is left in a slot')
    if not errors and served:
        kill_keepers(m, tree)
    else:
        diag(m.log()[-3000:])
    subprocess.run(['umount', m.path], check=False)
    ok(m.gone(), 'umount: both mounts and all processes are gone')


def kill_keepers(m, tree):
    readers = Readers(m, tree)
    fine = True
    for i in range(10):
        keeper = m.keeper
        kill(keeper)
        fine = fine and wait_for(lambda: m.keeper not in (0, keeper))
        if i % 2:
            target = m.answered
            fine = fine and m.kill_server() and wait_for(lambda: m.answered > target)
    reads, errors = readers.finish()
    ok(fine and not errors, 'ten keepers killed, with servers between them: each replaced, no reader noticed')
    for e in errors[:8]:
        diag(e)
    if not fine:
        diag(m.log()[-3000:])


def waiting_requests_survive(base, tree):
    """Readers that wait for the source are innocent of the deaths of servers, however many."""
    faults = os.path.join(base, 'slow.faults')
    with open(faults, 'w') as f:
        f.write('hang=*')
    m = Mount(base, tree, 'slow', source_faults='file=' + faults)
    name = next(n for n, data in tree.content.items() if len(data) == 114688)
    reader = spawn(lambda: open(os.path.join(m.path, name), 'rb').read() == tree.content[name])
    fine = wait_for(lambda: m.slots_in_use() > 0)
    for i in range(8):
        fine = fine and m.kill_server() and attempt(os.path.join(m.path, f'none{i}')) == 'ENOENT'
        fine = fine and wait_for(lambda: m.slots_in_use() > 0)
    ok(fine, 'eight servers killed while a reader waits for the source')
    os.remove(faults)
    ok(outcome(reader) == 'ok', 'the reader gets its bytes')
    m.take_down()


def init_is_replayed(base, tree):
    m = Mount(base, tree, 'init', faults='abort_init@1,abort_init@2')
    ok(m.up and m.generation == 3, 'two servers die between reading INIT and answering it: the third answers')
    ok(m.up and all_right(m.path, tree), 'and the mount is right')
    fine = m.up
    for _ in range(12):
        generation = m.generation
        kill(m.server)
        fine = fine and wait_for(lambda: m.generation > generation and m.server)
        kill(m.server)  # at once: somewhere in its start
        fine = fine and attempt(os.path.join(m.path, f'none{generation}')) == 'ENOENT'
    ok(fine, 'servers killed in their start are replaced')
    m.take_down()


def gives_up(base, tree):
    m = Mount(base, tree, 'never', faults='abort_start', expect=False)
    ok(not m.up and 'five servers' in m.message, 'five servers that die at their start: the command is told')
    diag(m.message)
    ok(m.gone(), 'and nothing is left')


def outlives_deaths(base, tree):
    """Servers in a row, each killed at once: the later ones after a pause, without tiers or peers."""
    m = Mount(base, tree, 'seven', minute=3600)
    for deaths, state, text in (2, 'open', '2 servers'), (1, 'locked', 'without its tiers:'), (
            2, 'locked', 'without other nodes:'):
        killed = all(m.kill_server() for _ in range(deaths))
        ok(killed and all_right(m.path, tree), f'{deaths} more killed: reads are right')
        ok(m.status()['ram']['state'] == state and m.healthy(text), f'the RAM tier is {state}, and health has "{text}"')
    ok('5 servers died within 3600 s: the next one starts in 400 ms' in m.log(), 'they pause for longer and longer')
    m.take_down()

    m = Mount(base, tree, 'three', minute=8)
    while not m.healthy('without its tiers:'):
        m.kill_server()
    ok(wait_for(lambda: m.status()['ram']['state'] == 'open' and not m.healthy('without')),
       'when none has died for a while, the tiers are open again')
    ok('has run for a minute' in m.log(), 'by another server, as the log says')
    m.take_down()

    m = Mount(base, tree, 'dozen', minute=4)
    generation = m.generation
    for _ in range(12):
        last, server = m.generation, m.server
        kill(server)
        wait_for(lambda: m.generation > last and m.server not in (0, server))
    ok(m.generation >= generation + 12 and m.mounted(), 'twelve killed at once: the mount stays')
    ok(all_right(m.path, tree), 'and reads are right')
    subprocess.run(['umount', m.path], check=False)
    ok(m.gone(), 'umount: nothing is left')


def dies_of_each_answer(base, tree):
    """A server that has answered counts when it dies like any other."""
    m = Mount(base, tree, 'answer', minute=3600)
    readers = Readers(m, tree, 2)
    for _ in range(6):
        server, answered, generation = m.server, m.answered, m.generation
        wait_for(lambda: m.answered > answered)
        kill(server)
        wait_for(lambda: m.generation > generation and m.server not in (0, server))
    ok('6 servers died within 3600 s: the next one starts in 800 ms' in m.log(),
       'killed after each first answer, it is started less and less often')
    reads, errors = readers.finish()
    ok(not errors and reads > 0, 'readers do not notice')
    for e in errors[:8]:
        diag(e)
    m.take_down()


class Programs:
    """Keeper and server in a folder of their own, where the server can be made to fail."""

    def __init__(self, base, name):
        self.folder = os.path.join(base, name + '.programs')
        os.mkdir(self.folder)
        for program in 'dealfs-keeper', 'dealfs-server':
            shutil.copy(os.path.join(BUILD, program), self.folder)
        self.keeper = os.path.join(self.folder, 'dealfs-keeper')
        self.server = os.path.join(self.folder, 'dealfs-server')

    def break_server(self):
        """The file itself: the keeper executes the previous program where another file does not work."""
        os.chmod(self.server, 0o644)

    def mend_server(self):
        os.chmod(self.server, 0o755)


def without_server(base, tree, name, **options):
    """Readers wait for the source when no server can live any more. Returns the mount, its programs, the file with the
    faults of the source, the files and their readers."""
    faults = os.path.join(base, name + '.faults')
    with open(faults, 'w') as f:
        f.write('hang=*')
    programs = Programs(base, name)
    m = Mount(base, tree, name, keeper=programs.keeper, source_faults='file=' + faults, **options)
    attempt(os.path.join(m.path, 'd0/f0'))  # empty: with a first close the kernel tries FLUSH
    files = next(n for n, data in tree.content.items() if len(data) == 114688), 'poison'
    readers = [spawn(lambda n=n: open(os.path.join(m.path, n), 'rb').read()) for n in files]
    ok(wait_for(lambda: m.slots_in_use() >= 2), 'two readers wait for the source')
    programs.break_server()
    kill(m.server)
    return m, programs, faults, files, readers


def killed_without_server(base, tree):
    m, _, _, _, (waits, dies) = without_server(base, tree, 'killed', minute=6, patience=3600)
    wait_for(lambda: m.generation > 4)
    kill(dies)
    result = outcome(dies)
    ok(result == '-9', f'no server can live: a reader is killed, and need not wait ({result})')
    kill(waits)
    outcome(waits)
    m.take_down()


def no_server_lives(base, tree):
    """Requests in slots and in the kernel get EIO, and the mount stays."""
    m, programs, faults, (name, _), (waits, other) = without_server(base, tree, 'no', minute=6, patience=2)
    result = attempt(os.path.join(m.path, 'none'))
    ok(result == 'EIO', f'no server can live: a reader gets EIO ({result})')
    ok(outcome(other) == 'EIO', 'so does one that waited before')
    ok(outcome(waits) == 'EIO', 'and another one')
    ok(attempt(m.state + '/control/status') == 'EIO', 'and who asks for status')
    ok(m.mounted(), 'the mount stays')
    os.remove(faults)
    programs.mend_server()
    ok(wait_for(lambda: attempt(os.path.join(m.path, 'none')) == 'ENOENT') and all_right(m.path, tree),
       'a server can live again: reads are right')
    ok(m.healthy('failed with EIO while no server could run'), 'and health has it')
    refused = m.log().count('dealfs-server: Permission denied')
    programs.break_server()
    kill(m.server)
    ok(wait_for(lambda: m.log().count('dealfs-server: Permission denied') > refused), 'a later server is refused')
    reader = spawn(lambda: open(os.path.join(m.path, name), 'rb').read() == tree.content[name])
    programs.mend_server()
    ok(outcome(reader) == 'ok' and m.mounted(), 'the mount stays, and the next one serves')
    programs.break_server()
    kill(m.server)
    subprocess.run(['umount', '-l', m.path], check=False)
    ok(m.gone(), 'umount while no server lives: nothing is left')


def poison(base, tree):
    m = Mount(base, tree, 'poison', faults='abort_read=poison')
    readers = Readers(m, tree, 4)
    result = attempt(os.path.join(m.path, 'poison'))
    ok(result == 'EIO', f'a request that kills servers gets EIO ({result})')
    ok('request 15 on inode' in m.log(), 'and is named in the log')
    reads, errors = readers.finish()
    ok(not errors and reads > 0, 'other readers do not notice')
    for e in errors[:8]:
        diag(e)
    ok(attempt(os.path.join(m.path, 'poison')) == 'EIO', 'and so does another reader')
    ok(m.generation == 4, f'it took {m.generation - 1} servers')
    m.take_down()


def hangs(pid):
    """A thread of it waits in the kernel."""
    try:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/stat') as f:
                if f.read().rsplit(')', 1)[1].split()[0] == 'D':
                    return True
    except OSError:  # it has ended
        pass
    return False


def innocent(base, tree):
    m = Mount(base, tree, 'innocent', faults=','.join(f'stuck_lookup=stuck@{i}' for i in (1, 2, 3)))
    asker = spawn(lambda: os.stat(os.path.join(m.path, 'stuck')).st_size == 5000)
    fine = all(wait_for(lambda: hangs(m.server)) and m.kill_server() for _ in range(3))
    ok(fine, 'three servers are killed while a request is in progress')
    result = outcome(asker)
    ok(result == 'ok', f'which is not to blame: it is answered ({result})')
    m.take_down()


def stuck(base, tree):
    m = Mount(base, tree, 'stuck', faults='stuck_lookup=stuck@1')
    asker = spawn(lambda: os.stat(os.path.join(m.path, 'stuck')).st_size == 5000)
    first = m.server
    ok(wait_for(lambda: hangs(first)), 'a thread of the server hangs in the kernel, waiting for itself')
    readers = Readers(m, tree, 2)
    ok(m.kill_server(), 'killed, it is replaced')
    result = outcome(asker)
    ok(result == 'ok', f'and the request is answered ({result})')
    ok(wait_for(lambda: not os.path.exists(f'/proc/{first}')), 'then the old one can die')
    reads, errors = readers.finish()
    ok(not errors and reads > 0, 'other readers do not notice')
    m.take_down()


def hangs_at_start(base, tree):
    """Servers that hang before they serve are replaced, each by one that does without more."""
    m = Mount(base, tree, 'hang', faults='hang_start@2,hang_start@3', minute=3600, patience=5)
    kill(m.server)
    result = attempt(os.path.join(m.path, 'd1/f5'))
    ok(result in ('ok', 'EIO'), f'two servers hang at their start: a reader waits, and not for ever ({result})')
    ok(wait_for(lambda: m.generation >= 4) and all_right(m.path, tree), 'the third one serves')
    ok(m.healthy('hung before it served') and m.healthy('without other nodes:'),
       'health has how, and what it does without')
    m.take_down()


def lingers(base, tree):
    """A keeper knows of killed servers that the keeper before could not end."""
    programs = Programs(base, 'linger')
    m = Mount(base, tree, 'linger', faults='stuck_lookup=stuck@1', keeper=programs.keeper)
    asker = spawn(lambda: os.stat(os.path.join(m.path, 'stuck')).st_size == 5000)
    first, keeper = m.server, m.keeper
    ok(wait_for(lambda: hangs(first)), 'a thread of the server hangs in the kernel')
    programs.break_server()
    kill(first)
    ok(wait_for(lambda: m.lingering == first), 'killed, it lingers')
    kill(keeper)
    wait_for(lambda: m.keeper not in (0, keeper))
    generation = m.generation
    wait_for(lambda: m.generation > generation + 1)
    ok(m.lingering == first, 'the next keeper watches it as well')
    programs.mend_server()
    ok(outcome(asker) == 'ok' and wait_for(lambda: m.lingering == 0), 'until it has ended')
    m.take_down()


def both_killed(base, tree):
    m = Mount(base, tree, 'both')
    keeper, server = m.keeper, m.server
    kill(keeper, signal.SIGSTOP)
    kill(server)
    kill(keeper)
    ok(wait_for(lambda: m.keeper not in (0, keeper) and m.server != server),
       'keeper and server killed at once: others come')
    ok(attempt(os.path.join(m.path, 'd1/f5')) == 'ok', 'and serve')
    everybody = m.processes()
    for pid in everybody:  # the one who waits to be a keeper, too
        kill(pid, signal.SIGSTOP)
    for pid in everybody:
        kill(pid)
    ok(wait_for(lambda: not m.processes(), pause=0.02), 'all killed at once: nobody is left')
    result = attempt(os.path.join(m.path, 'd1/f1'))
    ok(result in ('ENOTCONN', 'ECONNABORTED'), f'a reader gets ENOTCONN ({result})')
    m.take_down()


def life_line(base, tree):
    r, w = os.pipe()
    m = Mount(base, tree, 'life', life=r)
    os.close(r)
    ok(m.up and all_right(m.path, tree), 'a mount with a life line')
    os.close(w)
    ok(m.gone(), 'is taken away when it is cut')


def ways_to_unmount(base, tree):
    for name, command in ('lazy', ['umount', '-l']), ('user', ['fusermount3', '-uz']), ('all', ['umount', '-R']):
        m = Mount(base, tree, name)
        with open(os.path.join(m.path, 'd1/f5'), 'rb') as f:
            held = f.read(10) if name != 'all' else None
            if held is None:
                f.close()
            subprocess.run(command + [m.path], check=False)
            if held is not None:
                ok(not m.mounted() or held, 'a reader was inside')
                ok(f.read() == tree.content['d1/f5'][10:], f'{" ".join(command)}: a reader inside goes on')
        ok(m.gone(), f'{" ".join(command)}: nothing is left')
        ok(not os.path.exists(m.state + '/control'), 'nor the place of the control mount')


def signals_are_ignored(base, tree):
    m = Mount(base, tree, 'signals')
    keeper, server = m.keeper, m.server
    for sig in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE:
        kill(keeper, sig)
        kill(server, sig)
    ok(all_right(m.path, tree) and (m.keeper, m.server) == (keeper, server), 'other signals end neither')
    m.take_down()


def main():
    if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
        print('1..0 # SKIP needs root and /dev/fuse')
        return 0
    base = tempfile.mkdtemp(dir=os.environ.get('TEST_DIRECTORY'))
    atexit.register(clean, base, os.getpid())
    tree = Tree(os.path.join(base, 'source'))
    ordinary.extend(n for n in tree.content if '/' in n)
    wanted = sys.argv[1:]
    for test in (survives_under_load, waiting_requests_survive, init_is_replayed, gives_up, outlives_deaths,
                 dies_of_each_answer, killed_without_server, no_server_lives, poison, innocent, stuck, hangs_at_start,
                 lingers, both_killed, life_line, ways_to_unmount, signals_are_ignored):
        if not wanted or test.__name__ in wanted:
            try:
                test(base, tree)
            except Exception as e:  # the other tests go on
                ok(False, f'{test.__name__} goes on to its end')
                diag(f'{type(e).__name__}: {e}')
    return done_testing()


def clean(base, owner):
    if os.getpid() != owner:
        return
    for m in live:
        m.take_down()
    shutil.rmtree(base, ignore_errors=True)


live = []
ordinary = []
LAYOUT = json.loads(subprocess.run([BRING_UP, '--layout'], capture_output=True, check=True).stdout)
sys.exit(main())
