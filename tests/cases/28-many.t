#!/bin/bash
# A world of 16 nodes on this machine; and joins and leaves repeatedly ($JOINS, 60), which leave nothing behind: no
# descriptor, no mapping, no shared memory, no file, no mount, no process, no folder of MPI's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 64 30000
world_default=ram=16M,peer_timeout=600
joins=${JOINS:-60}

degraded() { [ "$(value "$tmp/node$1" state)" = degraded ]; }

ok '16 nodes' world_mount 16
is 'all in one world' "$(value "$tmp/node15" nodes)" 16
ok 'stage from the last one' dealfs stage "$tmp/node15"
mapfile -t all < <(seq 0 15)
is 'each file was read once' "$(world_sum source.samples "${all[@]}")" 64
for i in 0 7 15; do
    ok "node $i verifies" dealfs verify "$tmp/node$i"
done
ok 'they leave' world_leave
is 'and stand alone' \
    "$(for i in 0 7 15; do wait_for degraded $i; value "$tmp/node$i" state; done | sort -u)" degraded
ok 'and are unmounted' world_drop "${all[@]}"
world_count=0

ok 'two nodes' world_mount 2
ok 'leave' world_leave
# What of a world that is over may be kept: nothing. Threads of a pool and of RocksDB come and go; the rest does not.
held() {
    local i pid
    for i in 0 1; do
        wait_for degraded $i
        for pid in "$(pid_of $i server)" "$(pid_of $i keeper)"; do
            find "/proc/$pid/fd" -type l | wc -l
            grep -c 'memfd:\|/dev/shm' "/proc/$pid/maps"
        done
    done
    find /dev/shm -mindepth 1 | wc -l
    find "$TMPDIR" -maxdepth 1 -name 'ompi.*' -newer "$tmp/begin" -exec find {} -mindepth 2 -type d \; | wc -l
    find "$tmp"/state? | wc -l
    sweep_mounts "$tmp" | wc -l
    processes | wc -l
}
memory() { awk '/^RssAnon|^VmSwap/ { n += $2 } END { print n }' "/proc/$(pid_of 0 server)/status"; }
: >"$tmp/begin"
ok 'join' world_join 0 1
ok 'leave' world_leave
calm() { local last=$now; now=$(held) && [ "$now" = "$last" ]; } # a server drops things a moment later
now='' && wait_for calm
before=$now memory=$(memory)
# By a signal to a courier, and each tenth time to mpirun, which takes its time.
leave() {
    [ $((n % 10)) != 9 ] || { world_leave; return; }
    kill "$(pid_of $((n % 2)) courier)" && wait_for world_gone && wait "$world_pid" && world_pid=''
}
failed=0
for ((n = 0; n < joins; n++)); do
    { world_join 0 1 && leave; } || failed=$((failed + 1))
done
is "$joins joins and leaves" $failed 0
as_before() { [ "$(held)" = "$before" ]; }
ok 'hold on to nothing' wait_for as_before || is 'the same' "$(held)" "$before"
ok 'nor to memory' test "$(memory)" -lt $((memory + 4096))
ok 'umount' world_drop 0 1
nothing_left 'nothing is left'
done_testing
