#!/bin/bash
# A world of 16 nodes on this machine; and joins and leaves again and again ($JOINS, 12), which leave nothing behind: no
# descriptor, no shared memory, no process, no folder of MPI's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse
exclusive world

src=$tmp/src
make_files "$src" 64 30000
world_default=ram=16M
joins=${JOINS:-12}

degraded() { [ "$(value "$tmp/node$1" state)" = degraded ]; }

ok '16 nodes' world_mount 16
is 'all in one world' "$(value "$tmp/node15" nodes)" 16
ok 'stage from the last one' timeout 200 dealfs stage "$tmp/node15"
mapfile -t all < <(seq 0 15)
is 'each file was read once' "$(world_sum source.samples "${all[@]}")" 64
for i in 0 7 15; do
    ok "node $i verifies" timeout 120 dealfs verify "$tmp/node$i"
done
ok 'they leave' world_leave
is 'and stand alone' "$(for i in 0 7 15; do wait_for 20 degraded $i; value "$tmp/node$i" state; done | sort -u)" degraded
ok 'and are unmounted' world_drop "${all[@]}"
world_count=0

ok 'two nodes' world_mount 2
ok 'leave' world_leave
# What a server may keep of a world that is over. Threads of a pool and of RocksDB come and go; descriptors do not.
held() {
    local i
    for i in 0 1; do
        wait_for 20 degraded $i
        find "/proc/$(pid_of $i server)/fd" "/proc/$(pid_of $i keeper)/fd" -type l | wc -l
    done
    find /dev/shm -maxdepth 1 -name 'vader_segment*' -newer "$tmp/begin" | wc -l
    find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'ompi.*' -newer "$tmp/begin" -exec find {} -mindepth 2 -type d \; | wc -l
}
memory() { awk '/RssAnon/ { print $2 }' "/proc/$(pid_of 0 server)/status"; }
: >"$tmp/begin"
ok 'join' world_join 0 1
ok 'leave' world_leave
before=$(held) memory=$(memory)
failed=0
for ((n = 0; n < joins; n++)); do
    { world_join 0 1 && world_leave TERM; } || failed=$((failed + 1))
done
is "$joins joins and leaves" $failed 0
is 'hold on to nothing' "$(held)" "$before"
ok 'nor to memory' test "$(memory)" -lt $((memory + 4096))
is 'no courier is left' "$(processes dealfs-courier)" ''
ok 'umount' world_drop 0 1
nothing_left 'nothing is left'
done_testing
