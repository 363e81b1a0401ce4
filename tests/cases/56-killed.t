#!/bin/bash
# Readers that wait can be killed, whatever they wait for, and signals that kill nobody change nothing for them. A mount
# that is taken away while they wait lets them go after a while.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
make_files "$src" 40 300000
export DEALFS_SOURCE_FAULTS="file=$faults"

# Without libc's and Python's repetition of what was interrupted.
cat >"$tmp/read.py" <<'END'
import ctypes, mmap, os, signal, sys
how, path, ticks = sys.argv[1], sys.argv[2], 0
libc = ctypes.CDLL(None, use_errno=True)

def ticked(*_):
    global ticks
    ticks += 1

def pread(fd, buffer, n, at):
    got = libc.pread(fd, ctypes.c_void_p(buffer), ctypes.c_size_t(n), ctypes.c_long(at))
    if got < 0:
        sys.exit(f'{how}: {os.strerror(ctypes.get_errno())}')
    return got

def read(path):
    print('reads', flush=True)
    if how == 'stat':
        return os.stat(path)
    fd = os.open(path, os.O_RDONLY | (os.O_DIRECT if how == 'direct' else 0))
    size = os.fstat(fd).st_size
    memory = mmap.mmap(-1, size + 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if how == 'mmap':
        return mmap.mmap(fd, size, prot=mmap.PROT_READ)[:]
    if how == 'random':
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    step = 4096 if how == 'random' else size + 4096
    for at in range(0, min(size, 20 * step), step):
        pread(fd, address + at, step, at)
    return memory[:size]

if len(sys.argv) == 3:
    signal.signal(signal.SIGALRM, ticked)
    read(path)
else:
    signal.signal(signal.SIGALRM, ticked)
    signal.signal(signal.SIGPROF, ticked)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    for name in os.listdir(path):
        if read(f'{path}/{name}')[:20000] != open(f'{sys.argv[3]}/{name}', 'rb').read(20000):
            sys.exit('wrong bytes')
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    if ticks < 5:
        sys.exit(f'only {ticks} signals')
END
waits() { grep -q reads "$tmp/reader" && grep -Eq 'fuse|folio|request_wait' "/proc/$1/wchan"; }
start_reader() { # how, file
    : >"$tmp/reader" # it has the last one's word
    background python3 "$tmp/read.py" "$1" "$mnt/$2" >"$tmp/reader" 2>&1
    reader=$!
    wait_for waits $reader
}
dies() { kill -9 $reader && wait_for has_ended $reader; }

set_faults 'hang=*'
ok 'mount' mount_up "$src" "$mnt"
n=0
for how in read direct mmap random; do
    ok "$how: a reader waits for a source that hangs" start_reader $how "$(printf class0/%03d.bin "$n")"
    ok "$how: it can be killed" dies
    n=$((n + 4))
done

# As many as a job has.
cat >"$tmp/crowd.py" <<'END'
import mmap, os, sys, threading
def read(path, offset):
    os.preadv(os.open(path, os.O_RDONLY | os.O_DIRECT), [mmap.mmap(-1, 4096)], offset)
paths = [os.path.join(top, name) for top, _, names in os.walk(sys.argv[1]) for name in names if name.endswith('.bin')]
for i in range(300):
    threading.Thread(target=read, args=(paths[i % len(paths)], i // len(paths) * 4096)).start()
END
waiting() { [ "$(value "$mnt" parked)" -eq "$1" ]; }
# What a killed reader had asked for is given back a moment later.
before='' same=0
calm() { # ten times the same number
    local now
    now=$(value "$mnt" parked)
    [ "$now" = "$before" ] || same=0
    before=$now
    [ $((same += 1)) -ge 10 ]
}
wait_for calm
background python3 "$tmp/crowd.py" "$mnt"
reader=$!
ok 'three hundred threads wait' wait_for waiting $((before + 300))
ok 'all can be killed' dies
ok 'and none is left to wait for, though the source hangs' wait_for waiting "$before"
ok 'a reader waits' start_reader direct class1/001.bin
server=$(value "$mnt" pids.server)
kill -9 "$server"
other_server() { [ "$(value "$mnt" pids.server)" != "$server" ] && [ "$(value "$mnt" parked)" -ge 1 ]; }
ok 'it waits in the next server' wait_for other_server
ok 'and can be killed' dies
ok 'a reader waits' start_reader direct class1/001.bin
kill -TERM $reader
ok 'a signal that ends it by default does it, too' wait_for has_ended $reader

# Others that wait for the same bytes get them.
ok 'one reader waits' start_reader random class2/002.bin
first=$reader
ok 'another waits for the same' start_reader random class2/002.bin
second=$reader reader=$first
ok 'one is killed' dies
fails 'the other waits still' has_ended "$second"
set_faults ''
ok 'and gets the bytes' wait "$second"

# Signals that kill nobody.
set_faults 'delay=60'
for how in read direct mmap random; do
    class=class3
    ok "$how: a profiler's signals are not seen" python3 "$tmp/read.py" $how "$mnt/$class" "$src/$class"
    drop_cache "$mnt/$class"/*
    dealfs umount "$mnt" && dealfs mount "$src" "$mnt"
done
ok 'unmount' dealfs umount "$mnt"

# Before the first join.
set_faults ''
ok 'mount and wait for a world' mount_up -o wait_join "$src" "$mnt"
ok 'stat waits for it' start_reader stat class0/000.bin
ok 'it can be killed' dies
ok 'stat waits for it' start_reader stat class0/000.bin
kill -ALRM $reader
ok 'a signal that it handles is the only one that the kernel tells of' wait_for is_in $reader D
ok 'it can be killed all the same' dies
ok 'unmount' dealfs umount "$mnt"

# Taken away: one that waits for its first join, one of a source that hangs, and one whose server asks its own mount:
# that server cannot end before its connection has.
mkdir "$tmp/other"
cp -r "$src/class0" "$tmp/other/class0"
set_faults 'hang=*'
ok 'mount and wait for a world' mount_up -o wait_join "$src" "$mnt"
ok 'a reader waits' start_reader stat class0/000.bin
first=$reader
ok 'another mount' mount_up "$tmp/other" "$tmp/mnt2"
mnt=$tmp/mnt2
ok 'a reader waits there' start_reader direct class0/000.bin
DEALFS_SOURCE_FAULTS='' DEALFS_FAULTS='stuck_lookup=stuck' mount_up "$src" "$tmp/mnt3"
server=$(value "$tmp/mnt3" pids.server)
cat "$tmp/mnt3/stuck" 2>"$tmp/stuck" &
stuck=$!
ok 'a server asks its own mount' wait_for asks_itself "$server"
kill -KILL "$server"
cannot_end() { value "$tmp/mnt3" health | grep -q 'killed server cannot end: a disk or the source hangs'; }
ok 'it is killed and cannot end: status says so' wait_for cannot_end
kill -KILL "$stuck"
ok 'umount -l of that' umount -l "$tmp/mnt3"
ok 'dealfs umount --lazy' dealfs umount --lazy "$tmp/mnt"
ok 'umount -l' umount -l "$tmp/mnt2"
ok 'those inside do not wait for ever' wait_for has_ended "$first"
ok 'in both' wait_for has_ended $reader
waited=$(grep -l 'a read has waited for .* since the mount was unmounted' "$tmp"/dealfs-*/log | wc -l)
ok 'but they do at first, and perhaps the one of the third mount' test "$waited" -ge 2
ok 'the server that asks itself has ended' wait_for no_thread_left "$server"
like 'they are told' "$(cat "$tmp/reader")" 'shutdown|connected|aborted'
nothing_left
done_testing
