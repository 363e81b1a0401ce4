#!/bin/bash
# Programs that ask for more ahead than the kernel sends at a time, of a source that hangs: what is held is read all the
# while, and who really wants what hangs gets its bytes in the end, in whatever way it reads, and no error.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
src=$tmp/user/src mnt=$tmp/user/mnt faults=$tmp/faults
make_files "$src" 16 100000
mkdir "$src/slow"
for i in 0 1 2 3 4 5 6 7; do head -c 1500000 /dev/urandom >"$src/slow/$i"; done
for ((i = 0; i < 200; i++)); do echo "$i" >"$src/slow/tiny$i"; done
truncate -s 2G "$src/slow/big"
mkdir "$mnt"
chown -R $mount_user:$mount_user "$tmp/user"
chmod 755 "$tmp/user"
export DEALFS_SOURCE_FAULTS="file=$faults"
at_exit set_faults ''

cat >"$tmp/wants.py" <<'END'
"""Processes that read slow/0…7 of a mount in many ways; exit status 0 when all had the source's bytes. (Of threads one
that waits in a page fault would stop all others: it holds the interpreter's lock.)"""
import ctypes, mmap, os, sys
src, mnt = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)

def plain(fd, n):
    return os.pread(fd, n, 0)
def pages(fd, n):
    return b''.join(os.pread(fd, 4096, at) for at in range(0, n, 4096))
def mapped(fd, n):
    with mmap.mmap(fd, n, prot=mmap.PROT_READ) as m:
        return m[:]
def at_random(fd, n):
    with mmap.mmap(fd, n, prot=mmap.PROT_READ) as m:
        m.madvise(mmap.MADV_RANDOM)
        return m[:]
def direct(path, n):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, (n + 4095) // 4096 * 4096)
    got = os.preadv(fd, [buffer], 0)
    os.close(fd)
    return buffer[:got]
def sent(fd, n):
    with open(f'{os.environ["TMPDIR"]}/sent.{os.getpid()}', 'w+b') as out:
        at = 0
        while at < n:
            at += os.sendfile(out.fileno(), fd, at, n - at)
        out.seek(0)
        return out.read()
def asked_ahead(fd, n):
    libc.readahead(fd, ctypes.c_long(0), ctypes.c_size_t(n))
    return os.pread(fd, n, 0)

def whole(how, fd, n):
    got = how(fd, n)
    while len(got) < n and how is plain:
        got += os.pread(fd, n - len(got), len(got))
    return got
def is_wrong(how, name):
    try:
        with open(f'{src}/{name}', 'rb') as f:
            want = f.read()
        if how is direct:
            got = direct(f'{mnt}/{name}', len(want))
        else:
            with open(f'{mnt}/{name}', 'rb', buffering=0) as f:
                got = whole(how, f.fileno(), len(want))
        if got == want:
            return False
        print(f'{how.__name__} {name}: {len(got)} bytes, not those of the source', flush=True)
    except Exception as error:
        print(f'{how.__name__} {name}: {error}', flush=True)
    return True

ways = [plain, pages, mapped, at_random, direct, sent, asked_ahead]
work = [(how, f'slow/{i}') for i, how in enumerate(ways)] + [(how, 'slow/7') for how in ways + [plain]]
readers = []
for how, name in work:
    readers.append(os.fork())
    if readers[-1] == 0:
        os._exit(is_wrong(how, name))
print('started', flush=True)
sys.exit(any([os.waitpid(reader, 0)[1] for reader in readers]))
END
cat >"$tmp/asks.py" <<'END'
"""Asks for slow/big ahead, in one thread and in 16 more, and for tiny files; says so when all was asked for."""
import os, sys, threading
mnt = sys.argv[1]
def ask(first, last):
    fd = os.open(f'{mnt}/slow/big', os.O_RDONLY)
    for at in range(first, last, 1 << 17):
        os.posix_fadvise(fd, at, 1 << 17, os.POSIX_FADV_WILLNEED)
    os.close(fd)
def tiny():
    for i in range(200):
        fd = os.open(f'{mnt}/slow/tiny{i}', os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
        os.close(fd)
G = 1 << 29
threads = [threading.Thread(target=ask, args=(0, 2 * G)), threading.Thread(target=tiny)]
threads += [threading.Thread(target=ask, args=(2 * G + i * G // 8, 2 * G + (i + 1) * G // 8)) for i in range(16)]
for t in threads:
    t.start()
for t in threads:
    t.join()
END
cat >"$tmp/held.py" <<'END'
"""Reads what is held, past the page cache, as long as the process lives, and again then; prints how often."""
import os, sys
src, mnt, pid = sys.argv[1:4]
names = [f'{d}/{f}' for d in sorted(os.listdir(src)) if d.startswith('class') for f in os.listdir(f'{src}/{d}')]
want = {n: open(f'{src}/{n}', 'rb').read() for n in names}
rounds, last = 0, False
while not last:
    last = not os.path.exists(f'/proc/{pid}')
    for n in names:
        fd = os.open(f'{mnt}/{n}', os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert os.pread(fd, 1 << 20, 0) == want[n], n
        os.close(fd)
    rounds += 1
print(rounds)
END

ends_well() { wait_for has_ended "$1" && wait "$1"; }
# As whom the mount is: a word before each command that uses it.
asked_ahead() { # description, mountpoint, prefix…
    local what=$1 mnt=$2 hog wants
    shift 2
    set_faults 'hang=slow/*'
    : >"$tmp/wants.log" # it has the last one's word
    background "$@" python3 "$tmp/wants.py" "$src" "$mnt" >"$tmp/wants.log" 2>&1
    wants=$!
    wait_for grep -q started "$tmp/wants.log"
    background "$@" python3 "$tmp/asks.py" "$mnt" >"$tmp/asks.log" 2>&1
    hog=$!
    ok "$what: what is held is read all the while" "$@" python3 "$tmp/held.py" "$src" "$mnt" $hog
    diag "$what: $(cat "$tmp/.output") times"
    ok "$what: all was asked for" ends_well $hog
    fails "$what: who wants what hangs still waits" has_ended $wants
    set_faults ''
    ok "$what: and gets its bytes in the end" ends_well $wants
    diag "$(grep -v started "$tmp/wants.log" | head -20)"
    like "$what: the server says so" "$(cat "$log")" 'the oldest are returned to the kernel'
}

newest_log() { find "$tmp"/{user,root}/dealfs-*/log -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-; }
hold() { find "$mnt" -path "$mnt/class*" -type f -exec cat {} +; } >/dev/null
set_faults ''

# Of background requests an ordinary user's mount has as many as the kernel's administrator grants. The kernel has that
# number once.
granted=/sys/module/fuse/parameters/max_user_bgreq
exec {lock}>>/run/lock/dealfs-test.max_user_bgreq && flock "$lock" || bail_out 'no lock'
before=$(cat $granted)
grant() { echo "$1" >$granted; }
at_exit grant "$before"
for who in 'as_id 0' as_user; do
    [ "$who" = as_user ] && grant 200
    ok "$who: mount" $who dealfs mount -o ram=64M "$src" "$mnt"
    grant "$before"
    log=$(newest_log)
    ok "$who: what is held" $who bash -c "mnt='$mnt'; $(declare -f hold); hold"
    asked_ahead "$who" "$mnt" $who
    like "$who: no read has failed" "$($who dealfs status --json "$mnt")" '"errors": *\{\}'
    ok "$who: unmount" $who dealfs umount "$mnt"
    nothing_left "$who: nothing is left"
done

as_user unshare -Ur true || plan_skip 'no user namespaces'
mkfifo -m 666 "$tmp/user/hold"
grant 200
background as_user dealfs run -o ram=64M "$src" "$mnt" -- sh -c 'read -r line <"$1"' sh "$tmp/user/hold" \
    2>"$tmp/run.log"
run=$!
ok 'run comes up' wait_for as_user dealfs wait --timeout 5 "$mnt"
grant "$before"
log=$(newest_log)
inside() { as_user dealfs enter "$mnt" -- "$@"; }
ok 'run: what is held' inside bash -c "mnt='$mnt'; $(declare -f hold); hold"
asked_ahead run "$mnt" inside
echo go >"$tmp/user/hold"
ok 'run ends' ends_well $run
nothing_left
done_testing
