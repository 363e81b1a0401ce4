#!/usr/bin/python3
"""The control mount as its clients see it: shells, Python, dd, threads, signals, and a server that dies in between.

The mount is put up by bring-up, without the command; its control mount is looked at where it is mounted, and bound on
MOUNTPOINT/.dealfs, as the command would, for the example of the usage text."""
import atexit
import errno
import json
import mmap
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../lib'))
from tap import PATIENCE, done_testing, equal, ok, wait_for

BUILD = os.environ.get('top_builddir') or os.getcwd()
KEEPER = os.environ.get('KEEPER') or os.path.join(BUILD, 'dealfs-keeper')
BRING_UP = os.environ.get('BRING_UP') or os.path.join(BUILD, 'tests/fs/server/bring-up')
FILES = 200
SNAPSHOTS = 1024  # open at once


def fails(number, what, action):
    try:
        got = action()
    except OSError as e:
        got = e.errno
    equal(got, number, what)


# --- the mount ---

def make_source(path):
    """Returns the samples in order."""
    names = [f'class {i % 2}/f{i:04}.jpg' for i in range(FILES)] + ["class 0/it's.png", 'root.txt']
    odd = [b'class 1/new\nline.png', b'class 1/\xff\\x.bmp']
    for name in [os.fsencode(name) for name in names] + odd:
        full = os.path.join(os.fsencode(path), name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'wb') as f:
            f.write(name * 10)
    os.symlink('root.txt', os.path.join(path, 'link'))


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if STATE.encode() in f.read().split(b'\0'):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def clean_up():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for path in (MOUNT, CONTROL):  # what is mounted inside goes with it
        try:
            subprocess.run(['umount', '-l', path], stderr=subprocess.DEVNULL, timeout=10)
        except subprocess.TimeoutExpired:
            pass
    wait_for(lambda: not processes(), seconds=10)
    for pid in processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    shutil.rmtree(BASE, ignore_errors=True)


def bring_up():
    done = subprocess.run([BRING_UP, KEEPER, SOURCE, MOUNT, STATE], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit('Bail out! ' + done.stderr)
    subprocess.run(['mount', '--bind', CONTROL, MOUNT + '/.dealfs'], check=True)


def status():
    return json.loads(read('status'))


def kill_server():
    before = status()
    os.kill(before['pids']['server'], signal.SIGKILL)
    ok(wait_for(lambda: status_between()['generation'] > before['generation']),
       'the server was killed, another one answers')


# --- clients ---

def path(name='control'):
    return os.path.join(CONTROL, name)


def read(name):
    with open(path(name), 'rb') as f:
        return f.read()


def ask(request):
    """The reply, or the errno and the reason."""
    fd = os.open(path(), os.O_RDWR)
    try:
        os.write(fd, request)
        reply = b''
        while piece := os.read(fd, 65536):
            reply += piece
        return reply
    except OSError as e:
        return e.errno, os.read(fd, 65536).decode()
    finally:
        os.close(fd)


def shell(script):
    """What the script prints, errors included; $c is the control file."""
    done = subprocess.run(['bash', '-c', script], env=dict(os.environ, c=path(), LC_ALL='C'), capture_output=True,
                          text=True)
    return done.stdout + done.stderr


def errors():
    return [line.split('\t') for line in read('errors').decode().splitlines()]


WHERE = b'0\t-\t-\tclass 0/f0000.jpg\n'


def test_tree():
    equal(sorted(os.listdir(CONTROL)),
          ['control', 'decoded', 'epochs', 'errors', 'metrics', 'node', 'nodes', 'plan', 'samples', 'samples.d',
           'status'],
          'the root')
    equal([oct(os.stat(path(name)).st_mode) for name in ('.', 'control', 'status', 'samples', 'samples.d')],
          ['0o40555', '0o100600', '0o100444', '0o100444', '0o40555'], 'modes')
    equal(os.listdir(path('samples.d')), ['all', 'imagefolder'], 'samples.d')
    equal(read('node'), b'0\n', 'node')
    fields = read('nodes').decode().rstrip('\n').split('\t')
    equal([fields[0], len(fields[1]), fields[2], fields[3], len(fields)], ['0', 32, os.uname().nodename, 'alone', 6],
          'nodes')
    for what, action in {
            'create': lambda: os.open(path('new'), os.O_CREAT | os.O_WRONLY),
            'mkdir': lambda: os.mkdir(path('new')),
            'unlink': lambda: os.unlink(path('status')),
            'rmdir': lambda: os.rmdir(path('samples.d')),
            'rename': lambda: os.rename(path('status'), path('new')),
            'symlink': lambda: os.symlink('x', path('new')),
            'link': lambda: os.link(path('status'), path('new')),
            'mkfifo': lambda: os.mkfifo(path('new')),
            'open status to write': lambda: os.open(path('status'), os.O_WRONLY),
            'truncate samples': lambda: os.truncate(path('samples'), 0),
            'chmod status': lambda: os.chmod(path('status'), 0o777),
    }.items():
        fails(errno.EROFS, what + ': read-only', action)
    fails(errno.EPERM, 'chmod control', lambda: os.chmod(path(), 0o666))
    fails(None, 'truncate control is accepted', lambda: os.truncate(path(), 0))
    fails(errno.ENOENT, 'no other name', lambda: os.stat(path('plan2')))


def test_samples():
    whole = read('samples')
    names = whole.decode('utf-8', 'surrogateescape').splitlines()
    equal(len(names), FILES + 4, 'samples has all files')
    equal(os.stat(path('samples')).st_size, len(whole), 'and its true size')
    ok('class 1/new\\nline.png' in names and names[-1] == 'root.txt', 'in order, a newline in a name escaped')
    equal(os.stat(path('samples')).st_mtime_ns, os.stat(path('samples.d/all')).st_mtime_ns, 'times are the catalog\'s')
    reply = ask(b'where\n' + whole)
    equal([line.split(b'\t')[0] for line in reply.splitlines()], [b'%d' % i for i in range(len(names))],
          'where takes its lines back')
    with open(path('samples'), 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        equal(m[:], whole, 'samples can be mapped')


def splice_whole(name):
    source = os.open(path(name), os.O_RDONLY)
    reader, writer = os.pipe()
    text = b''
    while n := os.splice(source, writer, 4096):
        text += os.read(reader, n)
    for fd in (source, reader, writer):
        os.close(fd)
    return text


def sent(name):
    with open(path(name), 'rb') as source, open(os.path.join(BASE, 'sent'), 'w+b') as to:
        while os.sendfile(to.fileno(), source.fileno(), None, 1 << 20):
            pass
        to.seek(0)
        return to.read()


def copied(*command):
    def copy(name):
        to = os.path.join(BASE, 'copy')
        subprocess.run(['bash', '-c', ' '.join(command), 'copy', path(name), to], check=True)
        with open(to, 'rb') as f:
            return f.read()
    return copy


def copied_by_python(name):
    to = os.path.join(BASE, 'copy')
    shutil.copyfile(path(name), to)
    with open(to, 'rb') as f:
        return f.read()


def test_copies():
    """Generated files have a size, which many who copy believe."""
    ask(b'nonsense\n')
    ways = {'sendfile': sent, 'splice': splice_whole, 'shutil.copyfile': copied_by_python,
            'cat': copied('cat "$1" >"$2"'), 'cp': copied('cp "$1" "$2"'),
            'head': copied('head -c 1000000 "$1" >"$2"')}
    if shutil.which('busybox'):
        ways['busybox cat'] = copied('busybox cat "$1" >"$2"')
        ways['busybox cp'] = copied('busybox cp "$1" "$2"')
    for name, begin in {'status': b'{', 'metrics': b'#', 'nodes': b'0\t', 'node': b'0\n', 'errors': b'2'}.items():
        ok(os.stat(path(name)).st_size > 0 and os.stat(path(name)).st_ino == os.stat(path(name)).st_ino,
           f'{name} has a size and one number')
        for way, copy in ways.items():
            text = copy(name)
            ok(text.startswith(begin) and text.endswith(b'}\n' if name == 'status' else b'\n'),
               f'{way} of {name}: whole')
        with open(path(name), 'rb') as f:
            equal(os.fstat(f.fileno()).st_size, len(f.read()), f'{name} is as long as it says')
            f.seek(0)
            ask(b'nonsense\n')
            equal(os.fstat(f.fileno()).st_size, len(f.read()), 'and stays so while it is open')


def mapped(name):
    with open(path(name), 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        return m[:]


def counted(name):
    with open(path(name), 'rb') as f:
        return f.read(os.fstat(f.fileno()).st_size)


def test_plans():
    """A plan is made when its file is stated or opened, and who opens it sees the true size before anything else."""
    ways = {'stat and read': lambda name: read(name)[:os.stat(path(name)).st_size], 'fstat': counted, 'mmap': mapped,
            'read': read, 'sendfile': sent, 'splice': splice_whole, 'shutil.copyfile': copied_by_python,
            'cat': copied('cat "$1" >"$2"'), 'cp': copied('cp "$1" "$2"'),
            'dd': copied('dd if="$1" of="$2" status=none')}
    if shutil.which('busybox'):
        ways['busybox cat'] = copied('busybox cat "$1" >"$2"')
        ways['busybox cp'] = copied('busybox cp "$1" "$2"')
    for epoch, (way, copy) in enumerate(ways.items(), 1000):
        pairs = f'epoch={epoch},ranks=1,batch=3,reply=u32'
        before = status()['plans']['made']
        text = copy('plan/' + pairs)
        equal(status()['plans']['made'], before + 1, f'{way} has a plan made once')
        ok(len(text) > 0 and text == ask(f'plan {pairs.replace(",", " ")}\n'.encode()), 'and gets it whole')
    with open(path('plan/' + pairs), 'rb') as f:
        equal(os.stat(path('plan/' + pairs)).st_ino, os.fstat(f.fileno()).st_ino, 'its number stays')
        kill_server()
        os.stat(path('plan/' + pairs))
        f.seek(0)
        equal(f.read(), text, 'who has it open gets it from another server')
        equal(os.fstat(f.fileno()).st_size, len(text), 'with its size')


def test_crowd():
    """Any number of users who look at the status all the time hold up nobody."""
    children = []
    root = os.open(CONTROL, os.O_PATH)
    for uid in [0] * 8 + [33] * 24:
        children.append(os.fork())
        if children[-1] == 0:
            os.setuid(uid)
            while True:
                fd = os.open('status', os.O_RDONLY, dir_fd=root)
                os.read(fd, 1)
                os.close(fd)
    os.close(root)
    good = 0
    for _ in range(50):
        good += status()['node'] == 0
    equal(good, 50, 'status is whole in a crowd')
    equal([os.waitpid(child, os.WNOHANG)[0] for child in children], [0] * 32, 'whose openers all go on')
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_where():
    equal(ask(b'where\nclass 0/f0000.jpg\n'), WHERE, 'where')
    equal(ask(b'where\nclass 0/f0000.jpg'), WHERE, 'without a final newline')
    equal(ask(b'where\r\nclass 0/f0000.jpg\r\n'), WHERE, 'with CRLF')
    equal(ask(b'where sep=%6Cf\nclass 0/f0000.jpg\n'), WHERE, 'with a percent-coded value')
    for prefix in (SOURCE, MOUNT):
        name = f'{prefix}/class 0/f0000.jpg'.encode()
        equal(ask(b'where\n' + name), b'0\t-\t-\t' + name + b'\n', 'an absolute path')
    equal(ask(b'where sep=nul\nclass 1/new\nline.png\0nothing\0link\0class 0\0/etc/passwd').count(b'-\t-\t-\t'), 4,
          'unknown files have no fields')
    with open(os.path.join(MOUNT, 'class 0/f0000.jpg'), 'rb') as f:
        f.read()
    held = b'0\t0\tram\tclass 0/f0000.jpg\n'
    equal(wait_for(lambda: ask(b'where\nclass 0/f0000.jpg\n') == held) and held, held, 'a file that was read is held')
    global WHERE_HELD
    WHERE_HELD = held


def test_usage():
    text = read('control').decode()
    for verb in ('where', 'samples', 'stage', 'exchange', 'shuffle'):
        ok(re.search(rf'^  {verb} ', text, re.M), f'the usage names {verb}')
    example = '\n'.join(line.strip() for line in text.split('Example')[1].splitlines()[1:])
    equal(shell(example).encode(), WHERE_HELD, 'its example works as shown')


def test_shell():
    one = WHERE_HELD.decode()
    equal(shell('''exec 3<>"$c"; printf 'where\\nclass 0/f0000.jpg\\n' >&3; cat <&3'''), one, 'exec 3<>, printf, cat')
    equal(shell('''exec 3<>"$c"; for i in 1 2 3; do printf 'where\\nclass 0/f0000.jpg\\n' >&3; cat <&3; done'''),
          one * 3, 'three requests on one descriptor')
    many = "printf 'where\\nclass 0/f0000.jpg\\nclass 0/f0000.jpg\\nclass 0/f0000.jpg' >&3"
    equal(shell(f'''exec 3<>"$c"; {many}; while read -r line; do echo "$line"; done <&3'''), one * 3, 'while read')
    equal(shell(f'''exec 3<>"$c"; {many}; while read -r -u 3 line; do echo "$line"; done'''), one * 3, 'read -u')
    equal(shell(f'''exec 3<>"$c"; {many}; mapfile -u 3 all; echo ${{#all[@]}}'''), '3\n', 'mapfile')
    equal(shell(f'''exec 3<>"$c"; {many}; head -n 1 <&3; cat <&3'''), one * 3, 'head seeks back, cat goes on')
    equal(shell(f'''exec 3<>"$c"; {many}; head -n 1 <&3 >/dev/null; {many}; cat <&3'''), one * 3, 'a reply left unread')
    equal(shell(f'''exec 3<>"$c"; {many}; cp /dev/fd/3 /dev/stdout | wc -l''').strip().isdigit(), True, 'cp')
    pieces = "printf where >&3; printf '\\nclass 0/' >&3; printf f0000.jpg >&3"
    equal(shell(f'''exec 3<>"$c"; {pieces}; dd bs=1 status=none <&3'''), one,
          'written in pieces, read by dd a byte at a time')
    equal(shell('''exec 3<>"$c"; dd bs=7 status=none conv=notrunc <<<$'where\\nclass 0/f0000.jpg' >&3; cat <&3'''), one,
          'dd writes')
    said = shell('''exec 3<>"$c"; echo nonsense >&3; cat <&3; cat <&3
        echo stage action=look >&3; cat <&3''').split('\n')
    ok('Invalid argument' in '\n'.join(said) and any('unknown verb `nonsense`' in line for line in said)
       and any(line.startswith('{"state":') for line in said), 'refused, the reason, and the next request')


def test_python():
    request = b'where\nclass 0/f0000.jpg\n'
    with open(path(), 'r+b', buffering=0) as f:
        f.write(request)
        equal(f.read(), WHERE_HELD, 'unbuffered: write, read')
        f.write(request)
        equal(f.read(), WHERE_HELD, 'and again')
        f.write(request)
        equal(b''.join(iter(lambda: f.read(1), b'')), WHERE_HELD, 'a byte at a time')
    with open(path(), 'r+b') as f:
        for turn in range(3):
            f.write(request)
            f.flush()
            equal(f.read(), WHERE_HELD, f'buffered: write, flush, read, {turn}')
        f.write(request * 1)
        f.seek(0)
        equal(f.read(), WHERE_HELD, 'buffered: write, seek(0), read')
        f.seek(0)
        equal(f.readline(), WHERE_HELD, 'read again from its beginning')
    with open(path(), 'r+') as f:
        f.write(request.decode())
        f.flush()
        f.seek(0)
        equal(f.readlines(), [WHERE_HELD.decode()], 'as text')
    with open(path(), 'w+b', buffering=0) as f:
        f.write(request)
        equal(f.read(), WHERE_HELD, 'opened with truncation')
    fd = os.open(path(), os.O_RDWR)
    os.write(fd, request)
    equal(os.pread(fd, 1000, 0), WHERE_HELD, 'pread at 0')
    equal(os.pread(fd, 3, 2), WHERE_HELD[2:5], 'pread elsewhere')
    equal(os.lseek(fd, 0, os.SEEK_SET), 0, 'seek')
    equal(os.read(fd, 1000), WHERE_HELD, 'read from there')
    os.close(fd)


def test_refused():
    count = len(errors())
    before = sorted(os.listdir(path('samples.d')))
    for request, number, words in [
            (b'deal epoch=0\n', errno.EINVAL, 'unknown verb `deal`'),
            (b'where sap=nul\n', errno.EINVAL, 'Did you mean `sep`?'),
            (b'where\n', errno.EINVAL, 'needs paths'),
            (b'samples\nroot.txt\n', errno.EINVAL, '`samples` needs `name='),
            (b'samples name=.x\nroot.txt\n', errno.EINVAL, 'does not begin with a dot'),
            (b'samples name=all\nroot.txt\n', errno.EEXIST, 'cannot be replaced'),
            (b'samples name=x\nroot.txt\nnothing\n', errno.ENOENT, 'line 2'),
            (b'samples name=x\n', errno.EINVAL, 'needs paths'),
            (b'exchange epoch=1 fraction=1.5\n', errno.ERANGE, '0 to 1'),
            (b'shuffle\n', errno.EINVAL, 'needs `seed='),
            (b'stage\nnow', errno.EINVAL, 'takes nothing after'),
    ]:
        got, reason = ask(request)
        ok(got == number and words in reason and reason.endswith('\n') and reason.count('\n') == 1,
           f'refused: {request!r}: {reason.strip()}')
    equal(sorted(os.listdir(path('samples.d'))), before, 'nothing was changed')
    lines = errors()
    equal(len(lines) - count, 11, 'each has a line in errors')
    ok(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', lines[-1][0]) and lines[-1][1] == str(os.getuid())
       and lines[-1][2] == str(os.getpid()) and lines[-1][3] == 'stage' and len(lines[-1]) == 5,
       'time, uid, pid, request line, reason')
    fd = os.open(path(), os.O_RDWR)
    os.write(fd, b'samples name=unread\nroot.txt\n')
    os.close(fd)
    ok(wait_for(lambda: errors()[-1][3] == 'samples name=unread'), 'closed unread: noted')
    ok('unread' not in os.listdir(path('samples.d')), 'and not run')
    ask(b'bad\x1b[2J\n')
    ok('\\x1b' in errors()[-1][3], 'what users write cannot steer a terminal')


def test_alone():
    """Without another node nothing moves; and only the mount's owner may ask."""
    for request in (b'exchange epoch=1 fraction=0.5\n', b'shuffle seed=1'):
        equal(json.loads(ask(request)), {'nodes': 1, 'turn': 0, 'layout': None, 'samples': 0, 'bytes': 0},
              f'{request.split()[0].decode()} alone')
    root = os.open(CONTROL, os.O_PATH)
    child = os.fork()
    if child == 0:
        os.setuid(33)
        try:
            os.open('control', os.O_RDWR, dir_fd=root)
        except OSError as e:
            os._exit(e.errno)
        os._exit(0)
    os.close(root)
    equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), errno.EACCES, 'another user cannot ask')


def test_lists():
    reply = ask(b'samples name=mine\nroot.txt\nclass 0/f0002.jpg\n')
    ok(re.fullmatch(rb'2\t[0-9a-f]{32}\n', reply), 'a list is uploaded: its count and digest')
    equal(read('samples.d/mine'), b'root.txt\nclass 0/f0002.jpg\n', 'it is there')
    equal(os.stat(path('samples.d/mine')).st_size, 27, 'with its size')
    with open(path('samples.d/mine'), 'rb') as f:
        equal(f.read(8), b'root.txt', 'it is open')
        equal(ask(b'samples name=mine sep=nul\nclass 1/new\nline.png\0')[:2], b'1\t', 'and replaced')
        equal(read('samples.d/mine'), b'class 1/new\\nline.png\n', 'the new one is read at once, not the cached one')
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        equal(os.pread(f.fileno(), 100, 0), b'root.txt\nclass 0/f0002.jpg\n', 'who had the old one open still reads it')
    ok('mine' in status()['samples'], 'status names it')


def test_large():
    count = 200000
    fd = os.open(path(), os.O_RDWR)
    payload = b'where\n' + b'class 0/f0000.jpg\n' * count
    at = 0
    while at < len(payload):
        at += os.write(fd, payload[at:at + (8 << 20)])
    reply = b''
    while piece := os.read(fd, 3 << 20):
        reply += piece
    os.close(fd)
    ok(reply == WHERE_HELD * count, f'{len(payload)} bytes in, {len(reply)} bytes out')


def test_threads():
    """Readers of one handle while its request runs, and writers of it."""
    fd = begin(300000)
    got = []

    def reader():
        try:
            got.append(os.pread(fd, 100, 0))
        except OSError as e:
            got.append(e.errno)

    threads = [threading.Thread(target=reader) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(set(got), {(WHERE_HELD * 10)[:100]}, 'eight readers of one request get the same reply')
    os.close(fd)
    results = []

    def client(number):
        for turn in range(50):
            name = b'class 0/f%04d.jpg' % (2 * ((number + turn) % 100))
            results.append(ask(b'where\n' + name).split(b'\t')[3] == name + b'\n')

    threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal((len(results), all(results)), (400, True), 'eight clients at once')


def test_next_request():
    """Of several readers of one reply the first one to have it writes the next request: none may wait for ever."""
    fd = begin(1)
    request = b'where\n' + b'class 0/f0000.jpg\n' * 2000

    def reader():
        for action in (lambda: os.pread(fd, 1 << 16, 0), lambda: os.write(fd, request)):
            try:
                action()
            except OSError:
                pass

    stuck = False
    for _ in range(400):
        threads = [threading.Thread(target=reader, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        stuck = any(thread.is_alive() for thread in threads)
        if stuck:
            kill_server()
            break
    ok(not stuck, 'a request that is written as soon as a reply is there leaves nobody waiting')
    os.close(fd)


def begin(count):
    """A handle with a request of so many paths, that has not been read from."""
    payload = b'where\n' + b'class 0/f0000.jpg\n' * count
    fd = os.open(path(), os.O_RDWR)
    for at in range(0, len(payload), 1 << 20):
        os.write(fd, payload[at:at + (1 << 20)])
    return fd


def interrupt_one(count):
    """Ctrl-C for a process that waits for the reply to so many paths: how it ended."""
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fd = begin(count)
            os.write(say, b'.')
            os.read(fd, 100)
        finally:
            os._exit(0)
    os.read(ready, 1)
    os.close(ready)
    os.close(say)

    def waits():
        with open(f'/proc/{child}/stat') as f:
            return f.read().rsplit(')', 1)[1].split()[0] in 'SDZ'
    wait_for(waits, pause=0.0001)
    os.kill(child, signal.SIGINT)
    return os.waitpid(child, 0)[1]


def test_signals():
    """A timer does not stop a long request; Ctrl-C does."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    fd = begin(400000)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    first = os.read(fd, 100)
    signal.setitimer(signal.ITIMER_REAL, 0)
    equal(first, (WHERE_HELD * 10)[:100], 'a request runs to its end under a timer')
    os.close(fd)
    count, seen = 400000, len(errors())
    while (end := interrupt_one(count)) == 0:  # it was done before the signal came
        count = min(2 * count, 10000000)
    ok(os.WIFSIGNALED(end) and os.WTERMSIG(end) == signal.SIGINT, 'who waits for a reply can be interrupted')
    ok(wait_for(lambda: len(errors()) > seen) and 'not run' in errors()[-1][4], 'and the request is abandoned')
    equal(ask(b'where\nclass 0/f0000.jpg\n'), WHERE_HELD, 'the mount goes on')


def fork_reader(read):
    """A process that waits in a read of the mount."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            read()
        finally:
            os._exit(0)

    def reads():
        with open(f'/proc/{child}/syscall') as f:
            return f.read().split()[0] in {'x86_64': ('0', '17'), 'aarch64': ('63', '67')}[os.uname().machine]
    wait_for(reads, pause=0.001)
    return child


def test_interrupted_waiters():
    """Who waits for another one's request is let go, and the request goes on."""
    count, running = 1000000, False
    while not running:  # it was done before the waiter had ended
        count = min(2 * count, 10000000)
        fd = begin(count)
        runner = fork_reader(lambda: os.read(fd, 100))
        waiter = fork_reader(lambda: os.pread(fd, 100, 0))
        os.kill(waiter, signal.SIGINT)
        interrupted = os.WTERMSIG(os.waitpid(waiter, 0)[1]) == signal.SIGINT
        pid, end = os.waitpid(runner, os.WNOHANG)
        running = interrupted and pid == 0
        if pid == 0:
            end = os.waitpid(runner, 0)[1]
        os.close(fd)
    ok(running, 'who waits for another one\'s request is let go while that runs')
    equal(end, 0, 'to its end')


def open_all(held):
    """As many snapshots as there may be: the error that ends it."""
    try:
        while len(held) < 3000:
            held.append(os.open(path('status'), os.O_RDONLY))
    except OSError as e:
        return e.errno


def test_killed_openers():
    """Who is killed while it opens a file leaves no handle, and the server alive."""
    server = status()['pids']['server']
    for _ in range(200):
        child = os.fork()
        if child == 0:
            while True:
                os.close(os.open(path('status'), os.O_RDONLY))
        time.sleep(0.001 + 0.003 * random.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    equal(status()['pids']['server'], server, 'killed openers harm nobody')

    def all_free():
        held = []
        open_all(held)
        for fd in held:
            os.close(fd)
        return len(held) == SNAPSHOTS
    ok(wait_for(all_free), 'nor leave handles')


def status_between():
    """The status, while servers die: of an open file nothing is left then."""
    while True:
        try:
            return status()
        except OSError as e:
            if e.errno != errno.ESTALE:
                raise


def test_dying_servers():
    """Opens that a server answered just before its death are answered twice, and the second time to nobody."""
    over = threading.Event()

    def open_on():
        while not over.is_set():
            os.close(os.open(path('status'), os.O_RDONLY))
    openers = [threading.Thread(target=open_on, daemon=True) for _ in range(4)]
    first = status()['generation']
    for opener in openers:
        opener.start()
    for kills in range(1, 31):
        os.kill(status_between()['pids']['server'], signal.SIGKILL)
        wait_for(lambda: status_between()['generation'] >= first + kills)
    over.set()
    for opener in openers:
        opener.join(PATIENCE)
    equal(status()['generation'], first + 30, 'no server dies but those that are killed')


def test_handles():
    held = []
    equal(open_all(held), errno.ENFILE, 'open snapshots are bounded')
    equal(len(held), SNAPSHOTS, 'by a number')
    equal(read('samples.d/mine'), b'class 1/new\\nline.png\n', 'lists can be read nevertheless')
    for fd in held:
        os.close(fd)
    ok(wait_for(lambda: status()), 'and given back')


def test_crash():
    fd = os.open(path(), os.O_RDWR)
    os.write(fd, b'where\nclass 0/f0000.jpg\n')
    asked = os.open(path(), os.O_RDWR)
    os.write(asked, b'where\nclass 0/f0000.jpg\n')
    os.read(asked, 5)
    snapshot = os.open(path('status'), os.O_RDONLY)
    listing = os.open(path('samples.d/mine'), os.O_RDONLY)
    kill_server()
    fails(errno.ESTALE, 'a request that was written before is gone, and said so', lambda: os.read(fd, 100))
    fails(errno.ESTALE, 'also to who reads on', lambda: os.read(asked, 100))
    fails(errno.ESTALE, 'and to who writes', lambda: os.write(fd, b'where\n'))
    fails(errno.ESTALE, 'a snapshot as well', lambda: os.read(snapshot, 100))
    fails(errno.ESTALE, 'ftruncate', lambda: os.ftruncate(fd, 0))
    fails(errno.ESTALE, 'fsync', lambda: os.fsync(fd))
    os.posix_fadvise(listing, 0, 0, os.POSIX_FADV_DONTNEED)
    equal(os.read(listing, 100), b'class 1/new\\nline.png\n', 'a list stays readable')
    for each in (fd, asked, snapshot, listing):
        os.close(each)
    equal(read('samples.d/mine'), b'class 1/new\\nline.png\n', 'uploaded lists are still there')
    equal(ask(b'where\nclass 0/f0000.jpg\n').split(b'\t')[0], b'0', 'a new handle works')


def test_status():
    now = status()
    for key, kind in {'node': int, 'id': str, 'nodes': int, 'state': str, 'layout': type(None), 'pids': dict,
                      'catalog': dict, 'ram': dict, 'ssd': dict, 'reads': dict, 'bytes': dict, 'source': dict,
                      'version': str, 'uptime': int, 'mountpoint': str, 'stage': dict, 'health': list, 'errors': dict,
                      'memory': int, 'samples': list}.items():
        ok(isinstance(now.get(key), kind), f'status has {key}')
    equal((now['node'], now['nodes'], now['state']), (0, 1, 'alone'), 'one node')
    ok(set(processes()) >= {now['pids']['keeper'], now['pids']['server']} and now['pids']['courier'] is None, 'pids')
    equal(now['catalog']['files'], FILES + 4, 'files')
    equal(now['catalog']['links'], 1, 'links')
    ok(now['catalog']['age'] >= 0, 'age is sensible')
    # A sanitizer takes more than the server, and the more threads there are.
    limit = (256 if 'TEST_SANITIZER' in os.environ else 64) << 20
    ok(0 < now['memory'] < limit, f"memory is sensible: {now['memory']}")
    equal(set(now['reads']), {'ram', 'ssd', 'peer', 'source'}, 'places')
    equal(ask(b'stage\n')[:9], b'{"state":', 'stage starts')
    ok(wait_for(lambda: status()['stage']['state'] == 'done'), 'and is done')
    ok(status()['ram']['held'] > 0, 'and holds')
    equal(status()['stage']['kept'], status()['catalog']['bytes'], 'everything')


def test_metrics():
    def stable():
        before, text, now = status(), read('metrics').decode(), status()
        return all(before[key] == now[key] for key in ('reads', 'bytes', 'source', 'ram')) and (text, now)
    text, now = wait_for(stable)
    ok(text.endswith('\n'), 'metrics end with a newline')
    line = re.compile(r'# (HELP|TYPE) dealfs_\w+ .+|(dealfs_\w+)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.]+')
    equal([each for each in text.splitlines() if not line.fullmatch(each)], [], 'every line is in the format')
    typed = set(re.findall(r'^# TYPE (\w+) ', text, re.M))
    used = {re.sub(r'_(bucket|sum|count)$', '', name) for name in re.findall(r'^(dealfs_\w+)', text, re.M)}
    equal(used - typed, set(), 'every metric has a type')
    for name, value in {
            'dealfs_reads_total{from="source"}': now['reads']['source'],
            'dealfs_reads_total{from="ram"}': now['reads']['ram'],
            'dealfs_read_bytes_total{from="source"}': now['bytes']['source'],
            'dealfs_source_samples_total': now['source']['samples'],
            'dealfs_source_bytes_total': now['source']['bytes'],
            'dealfs_held_bytes{tier="ram"}': now['ram']['held'],
            'dealfs_capacity_bytes{tier="ram"}': now['ram']['capacity'],
            'dealfs_read_seconds_count{from="ram"}': now['reads']['ram'],
    }.items():
        ok(f'\n{name} {value}\n' in text, f'{name} is {value}, as in status')
    for place in ('ram', 'ssd', 'peer', 'source'):
        buckets = [(float(le), int(n)) for le, n in
                   re.findall(rf'dealfs_read_seconds_bucket{{from="{place}",le="([^"]+)"}} (\d+)', text)]
        ok(len(buckets) > 10 and buckets == sorted(buckets) and buckets[-1][0] == float('inf')
           and [n for _, n in buckets] == sorted(n for _, n in buckets), f'the histogram of {place} is cumulative')


if os.getuid() != 0 or not os.access('/dev/fuse', os.R_OK | os.W_OK):
    print('1..0 # SKIP needs root and /dev/fuse')
    raise SystemExit(0)

BASE = os.path.realpath(tempfile.mkdtemp(prefix='dealfs-control.', dir=os.environ.get('TEST_DIRECTORY')))
SOURCE, MOUNT, STATE = (os.path.join(BASE, name) for name in ('source', "it's mounted", 'state'))
CONTROL = os.path.join(STATE, 'control')
atexit.register(clean_up)
signal.signal(signal.SIGTERM, lambda *_: exit(1))
os.mkdir(MOUNT)
make_source(SOURCE)
bring_up()
test_tree()
test_samples()
test_where()
test_usage()
test_shell()
test_python()
test_refused()
test_alone()
test_copies()
test_crowd()
test_lists()
test_large()
test_threads()
test_next_request()
test_signals()
test_interrupted_waiters()
test_killed_openers()
test_handles()
test_crash()
test_plans()
test_dying_servers()
test_status()
test_metrics()
raise SystemExit(done_testing())
