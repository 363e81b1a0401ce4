#!/bin/bash
# A world of mounts with resize= whose shards lose images: disks with flipped bytes or cut files, answers of other nodes
# that are damaged, images on the move. They are made again; no read fails, and none shows an original.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
pictures=$top_builddir/tests/fs/image/pictures
src=$tmp/src
"$pictures" make "$src" 40 || bail_out 'no pictures'
settle "$src"
mkdir "$tmp/expected"
for file in "$src"/*; do
    name=${file##*/}
    "$pictures" shrink 64 80 "$file" >"$tmp/expected/$name" || cp "$file" "$tmp/expected/$name"
done
for i in 0 1; do
    mkdir "$tmp/ssd$i"
    world_options[i]=resize=64,quality=80,ram=0,ssd=$tmp/ssd$i
done
resized() {
    local node
    for node; do
        drop_cache "$tmp/node$node"/*
        diff -r -x .dealfs "$tmp/expected" "$tmp/node$node" || return
    done
}
remade() { world_sum resize.remade 0 1; }
files_of() { find "$tmp/ssd$1" -name '*.sst'; }

ok 'two nodes with disks' world_mount 2
ok 'all is right' resized 0 1
ok 'unmount all' world_umount

# --- bytes of the images are others, at either node ---
for i in 0 1; do
    files_of $i | xargs python3 -c '
import sys
for path in sys.argv[1:]:
    with open(path, "r+b") as f:
        length = len(f.read())
        for at in range(2000, length // 2, 1000):
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 16]))'
done
ok 'again, with damaged shards' world_mount 2
ok 'nothing is made before' made_nothing "$tmp/world.log"
ok 'all is right' resized 0 1
ok 'for some were made again' test "$(remade)" -gt 0
is 'and none failed' "$(world_sum resize.failed 0 1)" 0
ok 'stage' dealfs stage "$tmp/node0"
ok 'verify' dealfs verify "$tmp/node1"
before=$(remade)
ok 'again' resized 0 1
is 'what was made again is kept' "$(remade)" "$before"
ok 'unmount all' world_umount

# --- half of the files are gone ---
for file in $(files_of 1); do truncate -s "$(($(stat -c %s "$file") / 2))" "$file"; done
ok 'again, with a shard that is cut in half' world_mount 2
ok 'all is right' resized 0 1
is 'and none failed' "$(world_sum resize.failed 0 1)" 0
ok 'unmount all' world_umount
rm -rf "$tmp"/ssd1/*
ok 'again, with a shard that was removed' world_mount 2
ok 'all is right' resized 0 1
ok 'for its images were made again' test "$(remade)" -gt 0
is 'and none failed' "$(world_sum resize.failed 0 1)" 0

# --- images on the move ---
readers_compare() {
    local end=$tmp/end
    rm -f "$end"
    while [ ! -e "$end" ]; do resized "$1" || return; done
}
readers_compare 0 >"$tmp/reader0.log" 2>&1 &
reader=$!
tap_pids+=("$reader")
for seed in 1 2; do
    ok 'a shuffle' dealfs shuffle --wait "$tmp/node0" seed=$seed
done
: >"$tmp/end"
ok 'who read meanwhile saw nothing else' wait $reader
ok 'all is right' resized 0 1
ok 'verify' dealfs verify "$tmp/node0"
ok 'unmount all' world_umount

# --- answers of the other node are damaged, or do not come ---
export DEALFS_COURIER_FAULTS=damage:3,short:5
ok 'again, with couriers that spoil answers' world_mount 2
unset DEALFS_COURIER_FAULTS
ok 'all is right' resized 0 1
ok 'some answers were bad' test "$(($(value "$tmp/node0" peers.bad) + $(value "$tmp/node1" peers.bad)))" -gt 0
is 'and none failed' "$(world_sum resize.failed 0 1)" 0
ok 'unmount all' world_umount
done_testing
