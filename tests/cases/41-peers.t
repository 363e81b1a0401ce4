#!/bin/bash
# What nodes of a world may expect of each other: couriers that lie or fall silent, owners whose source is slow, one
# that asks for much beside one that asks for little, a world in which nothing happens, a group that has lost an owner.
# How fast they answer: make bench (remote, cut).
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 60 120000
all=(0 1 2)
mapfile -t paths < <(cd "$src" && find . -type f -printf '%P\n' | sort)
metric() { awk -v name="dealfs_$2" '$1 == name { n += $2 } END { print n + 0 }' "$tmp/node$1/.dealfs/metrics"; }
metrics_sum() { # name
    local i sum=0
    for i in "${all[@]}"; do sum=$((sum + $(metric "$i" "$1"))); done
    echo $sum
}
owned_by() { dealfs where "$tmp/node0" "${paths[@]}" | awk -F '\t' -v node="$1" '$2 == node { print $4 }'; }

compare_all() { # of a node, all files at once
    printf '%s\n' "${paths[@]}" | xargs -P 24 -I '{}' cmp "$src/{}" "$tmp/node$1/{}"
}
everybody() {
    local i status=0 pids=()
    for i in "${all[@]}"; do
        compare_all "$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || status=1; done
    return $status
}
drop_all() {
    local i
    for i in "${all[@]}"; do drop_cache "${paths[@]/#/$tmp/node$i/}"; done
}

# --- only the courier has to do with MPI ---
ok 'a mount by itself' mount_up -o ram=16M "$src" "$tmp/single"
mpi='libmpi|libopen-rte|libopen-pal|libpmix'
for process in keeper server; do
    isnt "the $process of one node has libraries" \
        "$(grep -c '\.so' "/proc/$(value "$tmp/single" pids.$process)/maps")" 0
    is 'and none of MPI' "$(grep -cE "$mpi" "/proc/$(value "$tmp/single" pids.$process)/maps")" 0
done
is 'nor has the command' "$(ldd "$top_builddir/dealfs" | grep -cE "$mpi")" 0
isnt 'the courier has' "$(ldd "$top_builddir/dealfs-courier" | grep -cE "$mpi")" 0
is 'and none runs' "$(processes dealfs-courier)" ''
ok 'unmount' dealfs umount "$tmp/single"

# --- couriers that damage, cut short, repeat and swallow answers ---
world_default=ram=32M,peer_timeout=2
export DEALFS_COURIER_FAULTS=damage:7,short:11,twice:5,never:41
ok 'mount, with couriers that cannot be trusted' world_mount 3
unset DEALFS_COURIER_FAULTS
ok 'stage' dealfs stage "$tmp/node0"
readers_start 0 1 2
enough() { # of each fault
    local i
    for i in "${all[@]}"; do
        [ "$(metric "$i" peer_bad_replies_total)" -ge 20 ] && [ "$(metric "$i" peer_timeouts_total)" -ge 2 ] || return
    done
}
ok 'each node has got bad answers, and none at all' wait_for enough
readers_end 'no reader saw it'
for i in "${all[@]}"; do
    is "node $i is in the world still" "$(value "$tmp/node$i" state)" joined
    isnt 'and reads from peers' "$(value "$tmp/node$i" reads.peer)" 0
done
drop_all
ok 'every byte is right everywhere' everybody # many at once: each answer that never comes takes its time
ok 'unmount' world_umount

# --- honest couriers; no answer is late, however slow the machine is, and no stopped server is replaced ---
rm -rf "$tmp"/state*
world_default=ram=32M,peer_timeout=600
export DEALFS_PATIENCE=600
ok 'mount, with honest couriers' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
source=$(world_sum source.samples 0 1 2) bad=0 late=0
for i in "${all[@]}"; do
    reads "node $i reads" "$src" "$tmp/node$i"
done
is 'none of it from the source' "$(world_sum source.samples 0 1 2)" "$source"
is 'no answer is bad' "$(metrics_sum peer_bad_replies_total)" "$bad"
is 'or late' "$(metrics_sum peer_timeouts_total)" "$late"

# --- a courier answers from the RAM tier of its server, which need not run for that ---
owned_by 1 >"$tmp/of1"
read_of1() { # node 0 reads what node 1 owns, from there
    local path
    while read -r path; do
        drop_cache "$tmp/node0/$path" && cmp "$src/$path" "$tmp/node0/$path" || return
    done <"$tmp/of1"
}
before=$(value "$tmp/node0" reads.peer)
server=$(pid_of 1 server)
kill -STOP "$server"
ok 'the server of node 1 is stopped; node 0 reads all that node 1 owns' read_of1
ok 'it is stopped still' is_in "$server" T
kill -CONT "$server"
ok 'from there' test "$(value "$tmp/node0" reads.peer)" -ge $((before + $(wc -l <"$tmp/of1")))
is 'none of it from the source' "$(world_sum source.samples 0 1 2)" "$source"
is 'nothing was late' "$(metrics_sum peer_timeouts_total)" "$late"

# --- damaged values of the RAM tier: the asking node notices, the owner replaces them ---
damage_ram() { # node
    python3 - "/proc/$(pid_of "$1" server)" <<'END'
import os, sys
process, segments = sys.argv[1], {}
for line in open(process + '/maps'):
    if line.rstrip().endswith('.sst'):
        segments[line.split()[-1]] = line.split()[0].split('-')
for begin, end in segments.values():
    with open(f'{process}/map_files/{int(begin, 16):x}-{int(end, 16):x}', 'r+b', buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        for part in range(1, 10):
            at = size * part // 10
            byte = os.pread(f.fileno(), 1, at)[0]
            os.pwrite(f.fileno(), bytes([byte ^ 1]), at)
END
}
if [ "$(id -u)" = 0 ]; then
    ok 'bytes of the RAM tier of node 1 are changed' damage_ram 1
    reads 'node 0 reads' "$src" "$tmp/node0"
    ok 'it got bad answers' test "$(metrics_sum peer_bad_replies_total)" -gt "$bad"
    drops_bad() { [ "$(value "$tmp/node1" ram.bad_values)" -gt 0 ]; }
    ok 'node 1 has dropped bad values' wait_for drops_bad
    bad=$(metrics_sum peer_bad_replies_total) source=$(world_sum source.samples 0 1 2)
    ok 'all is stored again' dealfs stage "$tmp/node0"
    reads 'node 0 reads again' "$src" "$tmp/node0"
    is 'no answer is bad any more' "$(metrics_sum peer_bad_replies_total)" "$bad"
    is 'none of it is from the source' "$(world_sum source.samples 0 1 2)" "$source"
fi

# --- a world that does nothing; a request to one that sleeps ---
mapfile -t running < <(for i in "${all[@]}"; do for p in keeper server courier; do pid_of "$i" $p; done; done)
all_sleep() {
    local states
    states=$(for p in "${running[@]}"; do cat "/proc/$p/task/"*/status || exit; done | grep '^State:') &&
        ! grep -qv '^State:.S' <<<"$states"
}
is 'three processes of each node' "${#running[@]}" 9
ok 'in an idle world all threads sleep' wait_for all_sleep
ok 'it answers' read_of1

# --- one that asks for much does not keep others from being answered ---
cat >"$tmp/much.py" <<'END'
import os, sys, threading
mountpoint, stop = sys.argv[1:]
names = sys.stdin.read().split('\n')[:-1]
def read(i):
    while not os.path.exists(stop):
        i += 1
        with open(f'{mountpoint}/{names[i % len(names)]}', 'rb', buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            f.read()
threads = [threading.Thread(target=read, args=[i]) for i in range(64)]
for t in threads: t.start()
for t in threads: t.join()
END
owned_by 2 >"$tmp/of2"
python3 "$tmp/much.py" "$tmp/node0" "$tmp/much.stop" <"$tmp/of2" &
much=$!
tap_pids+=("$much")
asked=$(value "$tmp/node0" reads.peer)
asks() { [ "$(value "$tmp/node0" reads.peer)" -gt $((asked + 500)) ]; }
ok 'node 0 asks node 2 by 64 threads' wait_for asks
read_of2() { # by node 1
    local path
    for _ in 1 2 3; do
        while read -r path; do
            drop_cache "$tmp/node1/$path" && cmp "$src/$path" "$tmp/node1/$path" || return
        done <"$tmp/of2"
    done
}
before=$(value "$tmp/node1" reads.peer)
ok 'node 1 is answered meanwhile' read_of2
ok 'from there' test "$(value "$tmp/node1" reads.peer)" -ge $((before + 3 * $(wc -l <"$tmp/of2")))
asked=$(value "$tmp/node0" reads.peer)
ok 'and node 0 still asks' wait_for asks
: >"$tmp/much.stop"
ok 'all 64 end well' wait "$much"
is 'none of it from the source' "$(world_sum source.samples 0 1 2)" "$source"
is 'nothing was late' "$(metrics_sum peer_timeouts_total)" "$late"
ok 'unmount' world_umount

# --- a source so slow that owners say WAIT for twice the timeout ---
rm -rf "$tmp"/state*
for path in "${paths[@]:24}"; do rm "$src/$path"; done
paths=("${paths[@]:0:24}")
faults=$tmp/faults timeout=6
set_faults hang
world_default=ram=32M,peer_timeout=$timeout,source_threads=32
export DEALFS_SOURCE_FAULTS=file=$faults
ok 'mount over a source that hangs' world_mount 3
unset DEALFS_SOURCE_FAULTS
everybody >"$tmp/everybody.log" 2>&1 &
reading=$!
all_park() { # of each node a READ of each file
    local i
    for i in "${all[@]}"; do [ "$(value "$tmp/node$i" parked)" -ge 24 ] || return; done
}
ok 'everybody reads everything at once' wait_for all_park
began=$(value "$tmp/node0" uptime)
is_later() { [ "$(value "$tmp/node0" uptime)" -gt $((began + 2 * timeout)) ]; } # by more, as it is rounded
ok 'all have been waiting for longer than twice the timeout' wait_for is_later
is 'no read has ended' "$(named cmp | wc -l)" 72
set_faults ''
ok 'when the source answers all reads end well' wait $reading || diag "$(<"$tmp/everybody.log")"
drop_all
ok 'and again' everybody
is 'each file was opened once in the world' "$(world_sum source.samples 0 1 2)" 24
for i in "${all[@]}"; do
    is "node $i has opened what it owns" "$(value "$tmp/node$i" source.samples)" "$(owned_by "$i" | wc -l)"
done
is 'busy is not gone: nobody timed out' "$(metrics_sum peer_timeouts_total)" 0
ok 'unmount' world_umount

# --- two groups, one of which loses an owner ---
rm -rf "$tmp"/state*
all=(0 1 2 3)
world_default=ram=32M,peer_timeout=600,groups=2
ok 'two groups of two' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
source=$(world_sum source.samples 0 2 3)
other=$(($(value "$tmp/node2" bytes.ram) + $(value "$tmp/node3" bytes.ram)))
reads 'node 0 reads' "$src" "$tmp/node0"
is 'of its own group alone' "$(($(value "$tmp/node2" bytes.ram) + $(value "$tmp/node3" bytes.ram)))" "$other"
served() { value "$tmp/node0" bytes.peer; }
before=$(served)
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"
reads 'node 0 reads' "$src" "$tmp/node0"
ok 'what node 1 had comes from a peer' test "$(served)" -gt "$before"
is 'of the other group, and not from the source' "$(world_sum source.samples 0 2 3)" "$source"
ok 'the world has lost a node' wait_for state_is 0 degraded
ok 'and lives: all others are unmounted' world_umount
nothing_left 'nothing is left'
done_testing
