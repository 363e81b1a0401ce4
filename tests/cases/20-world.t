#!/bin/bash
# Worlds of 1, 2, 3, 4 and 7 nodes: every byte from every node is the source's, and the source is read once for all.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

# A slow machine is no silent node.
world_default=ram=64M,peer_timeout=600
src=$tmp/src
make_source "$src"
make_files "$src" 60 90000
# An empty file is never opened: there is nothing to read. A large one may be opened for each of its pieces.
samples=$(find "$src" -type f -size +0 | wc -l)
bytes=$(find "$src" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')

for p in 1 2 3 4 7; do
    mapfile -t nodes < <(seq 0 $((p - 1)))
    rm -rf "$tmp"/state*
    ok "$p nodes: mount" world_mount $p
    for i in "${nodes[@]}"; do
        is "node $i knows its number" "$(cat "$tmp/node$i/.dealfs/node")" "$i"
        is 'and how many they are' "$(value "$tmp/node$i" nodes)" $p
        [ $p = 1 ] || is 'it has joined' "$(value "$tmp/node$i" state)" joined
    done
    is 'one layout' "$(for i in "${nodes[@]}"; do value "$tmp/node$i" layout; done | sort -u | wc -l)" 1
    for i in "${nodes[@]}"; do
        same "node $i of $p: every byte" "$src" "$tmp/node$i"
    done
    for i in "${nodes[@]}"; do
        reads "node $i of $p: again, with the page cache dropped" "$src" "$tmp/node$i"
    done
    is 'each byte was read from the source once in the world' "$(world_sum source.bytes "${nodes[@]}")" "$bytes"
    ok 'and its files were opened' test "$(world_sum source.samples "${nodes[@]}")" -ge "$samples"
    [ $p = 1 ] || isnt 'peers were asked' "$(world_sum bytes.peer "${nodes[@]}")" 0
    is 'nobody timed out' \
        "$(grep -h '^dealfs_.*timeouts' "$tmp"/node*/.dealfs/metrics | awk '{ n += $NF } END { print n + 0 }')" 0
    ok "$p nodes: umount --world" world_umount
done

# --- what is started by mpirun does not keep it, nor what reads its output ---
ok 'two nodes' world_mount 2
ok 'the keeper of node 1 is in a session of its own' \
    test "$(ps -o sess= -p "$(pid_of 1 keeper)")" != "$(ps -o sess= -p $$)"
# Also when this test may only use some of them.
every_processor=$(python3 -c '
import os
os.sched_setaffinity(0, range(os.cpu_count()))
print(*(line for line in open("/proc/self/status") if line.startswith("Cpus_allowed:")), end="")')
for process in keeper server; do
    pid=$(pid_of 0 $process)
    unlike "no variable of mpirun's in the $process" "$(tr '\0' ' ' <"/proc/$pid/environ")" 'OMPI_|PMIX_'
    unlike "nor a pipe of it" "$(readlink "/proc/$pid/fd/1" "/proc/$pid/fd/2")" pipe:
    is 'and every processor' "$(grep Cpus_allowed: "/proc/$pid/status")" "$every_processor"
done
ok 'SIGTERM ends mpirun' world_leave
for i in 0 1; do
    ok "node $i is mounted still" mounted "$tmp/node$i"
    wait_for state_is "$i" degraded
    is 'and says what has become of it' "$(value "$tmp/node$i" state)" degraded
    exits 3 'as does the status' dealfs status "$tmp/node$i"
    like 'with the way back' "$(dealfs status "$tmp/node$i")" 'dealfs join'
    reads "node $i alone reads all" "$src" "$tmp/node$i"
done
ok 'join' world_join 0 1
is 'joined' "$(value "$tmp/node0" state) $(value "$tmp/node1" state)" 'joined joined'

# --- mount where something is mounted joins that ---
ok 'leave' world_leave
ok 'one of two is unmounted' world_drop 1
id=$(value "$tmp/node0" id) wanted=$(value "$tmp/node0" source.bytes)
while IFS=$'\t' read -r _ _ tier path; do # what node 0 does not hold comes from the source, once
    [ "$tier" != - ] || wanted=$((wanted + $(stat -c %s "$src/$path")))
done < <(cd "$src" && find . -type f -printf '%P\0' | xargs -0 dealfs where "$tmp/node0")
ok 'mount both' world_mount 2
is 'joined' "$(value "$tmp/node0" state) $(value "$tmp/node1" state)" 'joined joined'
is 'the one that was up is the same' "$(value "$tmp/node0" id)" "$id"
reads 'node 0 reads all' "$src" "$tmp/node0"
reads 'node 1 reads all' "$src" "$tmp/node1"
is 'and has still what it held' "$(world_sum source.bytes 0 1)" "$wanted"
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
