#!/bin/bash
# A server is killed, or ends with its mount, while it waits for the kernel to drop pages of a stream. The kernel waits
# for one of these pages, which is being read from a source that hangs.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
mkdir -p "$src"
head -c 2M /dev/urandom >"$src/a"
head -c 1M /dev/urandom >"$src/b"
head -c 40M /dev/urandom >"$src/c"
cat "$src"/[abc] >"$tmp/whole"
for file in a b c; do
    for ((at = 0; at < $(stat -c %s "$src/$file"); at += 1 << 16)); do
        printf '%s\t%d\t%d\n' $file $at $((1 << 16))
    done
done >"$tmp/list"
settle "$src"
set_faults ''
DEALFS_SOURCE_FAULTS=file=$faults ok 'a mount' mount_up -o ram=100M "$src" "$mnt"
# The list is uploaded, because `dealfs index` would read the beginning of `b`.
upload() {
    exec 3<>"$mnt/.dealfs/control"
    { echo 'samples form=records name=list'; cat "$tmp/list"; } >&3
    cat <&3 >/dev/null
    exec 3>&-
}
upload
cat "$mnt/a" "$mnt/c" >/dev/null
# In the order of the list the stream is the three files.
stream() { echo "$mnt/.dealfs/plan/epoch=$1,ranks=1,batch=8,order=natural,samples=list,rank=0,reply=bytes"; }

server() { value "$mnt" pids.server; }
state() { ps -o stat= -p "$1" 2>/dev/null; }
waits() { [[ $(state "$1") == D* ]]; }
drops() { ps -L -o stat=,comm= -p "$1" | grep -q '^D.* stream'; }
gone() { [[ $(state "$1") == '' ]]; }

# One reader waits for a page of `b`. Another one reads the other files, and the pages behind it are to be dropped.
begin() { # epoch
    set_faults 'hang=b'
    old=$(server)
    dd if="$(stream "$1")" bs=4096 skip=512 count=1 of="$tmp/page" 2>"$tmp/dd" &
    reader=$!
    ok 'a reader waits for the source' wait_for 30 waits $reader
    ok 'another one reads what is cached' timeout 60 python3 -c '
import os, sys
stream, MiB = os.open(sys.argv[1], os.O_RDONLY), 1 << 20
os.posix_fadvise(stream, 0, 0, os.POSIX_FADV_RANDOM)
for at in (0, 1, *range(3, 40)):
    assert len(os.pread(stream, MiB, at * MiB)) == MiB' "$(stream "$1")"
    ok 'the server waits for pages that are dropped' wait_for 30 drops "$old"
}
another() { local now; now=$(server 2>/dev/null) && [ "$now" != "$old" ]; }

# --- it is killed: the next server answers the first reader, and only then this one can end ---
begin 1
kill -9 "$old"
ok 'a server that is killed meanwhile is replaced' wait_for 30 another
ok 'the next one reads the stream' cmp -n 1000000 "$tmp/whole" "$(stream 2)"
set_faults ''
ok 'the reader gets its page' wait $reader
ok 'which is right' cmp "$tmp/page" <(head -c 4096 "$src/b")
ok 'and the killed server is gone' wait_for 30 gone "$old"

# --- the mount ends ---
ok 'umount' dealfs umount "$mnt"
nothing_left
DEALFS_SOURCE_FAULTS=file=$faults ok 'which has cached nothing' mount_up -o ram=100M "$src" "$mnt"
upload
cat "$mnt/a" "$mnt/c" >/dev/null
begin 3
ok 'it is unmounted' timeout 60 dealfs umount --lazy "$mnt"
ok 'the server ends, although the source still hangs' wait_for 30 gone "$old"
wait $reader
isnt 'the reader gets an error' $? 0
nothing_left 'nothing is left'
done_testing
