#!/bin/bash
# Three nodes that feed themselves and read, all at the same time: every file is loaded once in the world, by its owner,
# and what a node asks ahead of a source that hangs keeps no other node's reader from what it wants.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root

src=$tmp/src faults=$tmp/faults files=150
make_files "$src" $files 60000
mkdir "$src/slow" "$src/other"
for ((i = 0; i < 60; i++)); do head -c 40000 /dev/urandom | tee "$src/slow/$i" >"$src/other/$i"; done
mapfile -t names < <(cd "$src" && find class* -type f | sort)
export DEALFS_SOURCE_FAULTS="file=$faults"
at_exit set_faults ''

feeders=()
feed() { # node, paths
    local node=$1 server
    server=$(pid_of "$node" server)
    shift
    : >"$tmp/asks$node.log"
    (cd "$tmp/node$node" && exec "$top_builddir/tests/fs/server/as-feeder" "$server" \
        python3 "$top_srcdir/tests/lib/asks.py" "$@") >"$tmp/asks$node.log" 2>&1 &
    feeders+=($!)
    tap_pids+=($!)
}
asked() { grep -q asked "$tmp/asks$1.log"; }
feeders_end() { kill "${feeders[@]}" && wait "${feeders[@]}"; } 2>/dev/null
fed_from() { world_sum "fed.$1" 0 1 2; }
nothing_waits() { [ "$(fed_from waits.source)$(fed_from waits.peer)$(fed_from waits.ssd)" = 000 ]; }
same_paths() { # node, paths
    local node=$1 path
    shift
    for path; do cmp "$src/$path" "$tmp/node$node/$path" || return 1; done
}

set_faults 'hang'
world_default+=,peer_timeout=3600 # a node that waits for long asks the source itself
ok 'three nodes' world_mount 3
pids=()
for i in 0 1 2; do
    # Each begins elsewhere.
    at=$((i * files / 3))
    feed $i "${names[@]:at}" "${names[@]:0:at}"
    same_paths $i "${names[@]}" >"$tmp/read$i.log" 2>&1 &
    pids+=($!)
done
for i in 0 1 2; do
    ok "node $i asks for all files ahead" wait_for asked $i
done
set_faults 'delay=2'
for i in 0 1 2; do
    ok "node $i: every byte is right while all nodes feed and read" wait "${pids[i]}"
done
ok 'all that is fed comes' wait_for nothing_waits
is 'each file was opened at the source once in the world' "$(world_sum source.samples 0 1 2)" $files
is 'and read once' "$(world_sum source.bytes 0 1 2)" $((files * 60000))
isnt 'some was fed from peers' "$(fed_from reads.peer)" 0
isnt 'some from the source' "$(fed_from reads.source)" 0
feeders_end

# --- a node feeds itself from a source that lets nothing of it through ---
feeders=()
set_faults 'hang=slow/*'
feed 0 slow/{0..59}
ok 'it asks' wait_for asked 0
waits_all() { [ $(($(value "$tmp/node0" fed.waits.source) + $(value "$tmp/node0" fed.waits.peer))) = 60 ]; }
ok 'all of it waits' wait_for waits_all
for i in 0 1 2; do
    ok "node $i reads other files of the source" same_paths $i other/{0..59}
done
ok 'while all of that waits' waits_all
set_faults ''
ok 'it comes' wait_for nothing_waits
ok 'and is right' same_paths 0 slow/{0..59}
is 'each was opened once' "$(world_sum source.samples 0 1 2)" $((files + 120))
feeders_end
is 'nobody timed out' \
    "$(grep -h '^dealfs_.*timeouts' "$tmp"/node*/.dealfs/metrics | awk '{ n += $NF } END { print n + 0 }')" 0
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
