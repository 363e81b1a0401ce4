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
    size=$(stat -c %s "$src/$file")
    for ((at = 0; at < size; at += 1 << 16)); do
        printf '%s\t%d\t%d\n' $file $at $((1 << 16))
    done
done >"$tmp/list"
settle "$src"
set_faults ''
DEALFS_SOURCE_FAULTS=file=$faults ok 'a mount' mount_up -o ram=100M "$src" "$mnt"
# The list is uploaded, because `dealfs index` would read the beginning of `b`.
upload() { request_at "$mnt" "$tmp/list" samples form=records name=list >/dev/null; }
upload
cat "$mnt/a" "$mnt/c" >/dev/null
# In the order of the list the stream is the three files.
stream() { echo "$mnt/.dealfs/plan/epoch=$1,ranks=1,batch=8,order=natural,samples=list,rank=0,reply=bytes"; }

server() { value "$mnt" pids.server; }
waits() { [ "$(value "$mnt" parked)" -ge 1 ] && is_in $reader D; } # the read is in the server, and the page is locked
drops() { ps -L -o stat=,comm= -p "$1" | grep -q '^D.* stream'; }

# One reader waits for a page of `b`. Another one reads the other files, and the pages behind it are to be dropped.
begin() { # epoch
    set_faults 'hang=b'
    old=$(server)
    dd if="$(stream "$1")" bs=4096 skip=512 count=1 of="$tmp/page" 2>"$tmp/dd" &
    reader=$!
    ok 'a reader waits for the source' wait_for waits
    ok 'another one reads what is cached' python3 -c '
import os, sys
stream, MiB = os.open(sys.argv[1], os.O_RDONLY), 1 << 20
os.posix_fadvise(stream, 0, 0, os.POSIX_FADV_RANDOM)
for at in (0, 1, *range(3, 40)):
    assert len(os.pread(stream, MiB, at * MiB)) == MiB' "$(stream "$1")"
    ok 'the server waits for pages that are dropped' wait_for drops "$old"
}

# --- it is killed: the next server answers the first reader, and only then this one can end ---
begin 1
kill -9 "$old"
ok 'a server that is killed meanwhile is replaced' wait_for replaced "$mnt" server "$old"
ok 'the next one reads the stream' cmp -n 1000000 "$tmp/whole" "$(stream 2)"
set_faults ''
ok 'the reader gets its page' wait $reader
ok 'which is right' cmp "$tmp/page" <(head -c 4096 "$src/b")
ok 'and the killed server is gone' wait_for has_ended "$old"

# --- the mount ends ---
ok 'umount' dealfs umount "$mnt"
nothing_left
DEALFS_SOURCE_FAULTS=file=$faults ok 'which has cached nothing' mount_up -o ram=100M "$src" "$mnt"
upload
cat "$mnt/a" "$mnt/c" >/dev/null
begin 3
ok 'it is unmounted' dealfs umount --lazy "$mnt"
ok 'the server ends, although the source still hangs' wait_for has_ended "$old"
wait $reader
isnt 'the reader gets an error' $? 0
nothing_left 'nothing is left'
done_testing
