#!/bin/bash
# Hundreds of readers blocked on a slow source do not hold up who reads what is kept. By how much: make bench (hangs).
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
make_files "$src" 300 200000
mkdir "$src/slow"
for ((i = 0; i < 256; i++)); do head -c 200000 "$src/class0/000.bin" >"$src/slow/$i"; done
: >"$faults"
export DEALFS_SOURCE_FAULTS="file=$faults"
ok 'mount' mount_up -o ram=256M "$src" "$mnt"
find "$mnt" -path "$mnt/class*" -type f -exec cat {} + >/dev/null
set_faults 'hang=slow/*'

cat >"$tmp/read.py" <<'END'
import json, os, random, sys
import tap
from crowd import Crowd
mnt, src, blocked = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = [f'{d}/{f}' for d in sorted(os.listdir(src)) if d.startswith('class') for f in os.listdir(f'{src}/{d}')]
want = {n: open(f'{src}/{n}', 'rb').read() for n in names}

def once():
    random.Random(1).shuffle(names)
    for n in names:
        fd = os.open(f'{mnt}/{n}', os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert os.read(fd, 1 << 20) == want[n], n
        os.close(fd)

def fail(*error):
    sys.__excepthook__(*error)
    sys.stderr.flush()
    os._exit(1)  # the crowd would keep the process

sys.excepthook = fail
crowd = Crowd(src, mnt, blocked)
def all_wait():
    return all(thread.is_alive() for thread in crowd.threads)
def parked():
    return json.load(open(f'{mnt}/.dealfs/status'))['parked']
assert tap.wait_for(lambda: parked() >= blocked, pause=0.05), f'{parked()} parked'
assert all_wait(), 'a reader is not blocked'
for _ in range(5):
    once()
os.listdir(mnt)
os.stat(f'{mnt}/slow/0')
assert parked() >= blocked and all_wait(), 'a reader is no longer blocked'
open(sys.argv[4] + '.new', 'w').close()
os.rename(sys.argv[4] + '.new', sys.argv[4])
for thread in crowd.threads:
    thread.join()
assert not crowd.wrong, crowd.wrong
END
ok '256 readers are blocked, and others go on' \
    env PYTHONPATH="$top_srcdir/tests/lib" PYTHONDONTWRITEBYTECODE=1 \
    python3 "$tmp/read.py" "$mnt" "$src" 256 "$faults"
reads 'all is read' "$src" "$mnt"

# Asynchronous direct I/O: what it asks of the source hangs, and is no readahead that could be given back.
cat >"$tmp/aio.py" <<'END'
"""Threads that each submit many asynchronous direct reads of a file, all of which hang; until killed."""
import ctypes, mmap, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
IO_SETUP, IO_SUBMIT, THREADS, EACH = 206, 209, 8, 425
class Iocb(ctypes.Structure):
    _fields_ = [('data', ctypes.c_uint64), ('key', ctypes.c_uint32), ('flags', ctypes.c_int), ('op', ctypes.c_uint16),
                ('priority', ctypes.c_int16), ('fd', ctypes.c_uint32), ('buffer', ctypes.c_uint64),
                ('bytes', ctypes.c_uint64), ('offset', ctypes.c_int64), ('more', ctypes.c_uint64 * 2)]
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
memory = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def submit(first):
    context = ctypes.c_ulong(0)
    assert libc.syscall(IO_SETUP, EACH, ctypes.byref(context)) == 0
    for i in range(first, first + EACH):
        one = Iocb(op=0, fd=fd, buffer=at, bytes=4096, offset=i * 4096)
        libc.syscall(IO_SUBMIT, context, ctypes.c_long(1), ctypes.byref(ctypes.pointer(one)))
threads = [threading.Thread(target=submit, args=(i * EACH,)) for i in range(THREADS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
threading.Event().wait()
END
truncate -s 20M "$src/slow/large"
ok 'unmount' dealfs umount "$mnt"
ok 'mount again' mount_up -o ram=256M "$src" "$mnt"
find "$mnt" -path "$mnt/class*" -type f -exec cat {} + >/dev/null
set_faults 'hang=slow/*'
if [ "$(uname -m)" = x86_64 ]; then
    background python3 "$tmp/aio.py" "$mnt/slow/large"
    aio=$!
    eight() { [ "$(value "$mnt" parked)" -ge 8 ]; }
    ok '3,400 asynchronous direct reads hang' wait_for eight
    held() {
        local file
        for file in "$mnt"/class0/*; do
            drop_cache "$file"
            cmp "$file" "$src/${file#"$mnt"/}" || return
        done
    }
    ok 'what is kept is read' held
    ok 'again' held
    kill -9 "$aio"
    ok 'they can be killed' wait_for has_ended "$aio"
else
    skip 4 'the numbers of system calls are those of x86_64'
fi
set_faults ''

# Slow, not hanging: the others go on, and each file is read once.
ok 'unmount' dealfs umount "$mnt"
set_faults 'delay=30,delay_match=slow/*'
ok 'mount with a slow source' dealfs mount -o ram=256M "$src" "$mnt"
cats=()
for i in 1 2 3 4; do
    cat "$mnt"/slow/1? >"$tmp/slow.$i" &
    cats+=("$!")
done
wait "${cats[@]}"
is 'four readers of the same slow files read them once from the source' "$(value "$mnt" source.samples)" 10
for i in 1 2 3 4; do ok 'the right bytes' cmp "$tmp/slow.$i" <(cat "$src"/slow/1?); done

# A source that fails.
set_faults 'errno=EIO,match=class0/*'
fails 'EIO of the source is the reader'\''s' cat "$mnt/class0/004.bin"
like 'it is EIO' "$(cat "$mnt/class0/004.bin" 2>&1 >/dev/null)" 'Input/output error'
ok 'what is not concerned is read' cmp "$src/class1/001.bin" "$mnt/class1/001.bin"
is_fault() { # a failure counts as one for a minute
    cat "$mnt/class0/004.bin" >/dev/null
    dealfs status "$mnt"
    [ $? = 4 ]
}
ok 'status is degraded' wait_for is_fault
set_faults ''
ok 'when the source is well again it is read' cmp "$src/class0/004.bin" "$mnt/class0/004.bin"

# A lazy unmount while readers hang.
set_faults 'hang=class3/*'
cat "$mnt/class3/003.bin" >/dev/null 2>&1 &
reader=$!
tap_pids+=("$reader")
parked() { [ "$(value "$mnt" parked)" -ge 1 ]; }
ok 'a reader hangs' wait_for parked
like 'status does not hang' "$(dealfs status "$mnt")" 'health '
ok 'umount --lazy does not hang' dealfs umount --lazy "$mnt"
fails 'it is gone' mounted "$mnt"
ok 'who was inside still waits for the source' kill -0 $reader
set_faults ''
ok 'and ends when it answers' wait_for has_ended "$reader"
nothing_left
done_testing
