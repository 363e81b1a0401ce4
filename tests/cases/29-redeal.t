#!/bin/bash
# What has no owner because the dataset, as it is, does not fit, and finds room when the shards have been filled and
# compressed: it is dealt, on all nodes alike, and staged as well. Servers that die meanwhile: 40-loss.t.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src nodes=(0 1 2) files=90
make_compressible "$src" $files 400000
world_default=ram=8M,peer_timeout=600
owners() { # node, as it sees it: `-` or a number for each file
    (cd "$src" && find . -type f -printf '%P\n' | sort) | xargs dealfs where "$tmp/node$1" | cut -f 2
}
without_owner() { owners "$1" | grep -c -- - || :; }
layout() { value "$tmp/node$1" layout; }
fresh() { rm -rf "$tmp"/state*; }

# --- staging deals ---
ok 'mount' world_mount 3
none=$(without_owner 0) before=$(layout 0)
ok "of $files files $none have no owner" test "$none" -gt 20
ok 'stage at node 1' dealfs stage "$tmp/node1"
diag "$(cat "$tmp/.output")"
unlike 'nothing is left without an owner' "$(cat "$tmp/.output")" 'no owner|no room'
is 'so say the owners' "$(without_owner 0)" 0
ok 'on all nodes alike' all_alike owners "${nodes[@]}"
ok 'the layout is the same everywhere' all_alike layout "${nodes[@]}"
isnt 'and another one than before' "$(layout 0)" "$before"
ok 'which is still answered' dealfs plan "$tmp/node1" epoch=1 ranks=3 batch=4 layout="$before"
is 'each file was read once' "$(world_sum source.samples "${nodes[@]}")" $files
everywhere 'staged' "${nodes[@]}"
is 'nothing more comes from the source' "$(world_sum source.samples "${nodes[@]}")" $files
ok 'staging again' dealfs stage "$tmp/node2"
is 'is done at once' "$(world_sum source.samples "${nodes[@]}")" $files
ok 'verify' dealfs verify "$tmp/node2"
like 'a plan is made from the new layout' "$(dealfs plan "$tmp/node2" epoch=1 ranks=3 batch=4 reply=summary)" \
    "\"layout\": *\"$(layout 0)\""
ok 'leave' world_leave

# --- it stays so ---
after=$(owners 0)
ok 'join' world_join 0 1 2
is 'owners stay as they were' "$(owners 2)" "$after"
everywhere 'joined again' "${nodes[@]}"
is 'nothing comes from the source' "$(world_sum source.samples "${nodes[@]}")" $files
ok 'leave' world_leave
ok 'join without node 1' world_join 0 2
none=$(without_owner 0)
ok 'stage' dealfs stage "$tmp/node0"
ok "what node 1 held is dealt: $(without_owner 0) of $none have no owner" test "$(without_owner 0)" -lt $((files / 3))
nodes=(0 2)
everywhere 'without node 1' "${nodes[@]}"
ok 'the layout is the same everywhere' all_alike layout "${nodes[@]}"
ok 'leave' world_leave
nodes=(0 1 2)
world_drop 0 1 2

# --- a node leaves ---
fresh
ok 'mount' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
ok 'node 2 is unmounted' dealfs umount "$tmp/node2"
ok 'staging without it ends' dealfs stage "$tmp/node0"
ok 'unmount' world_umount

# --- what does not fit stays without an owner ---
fresh
world_default=ram=2M,peer_timeout=600
ok 'mount with little room' world_mount 3
ok 'stage' dealfs stage "$tmp/node2"
like 'says what has no owner' "$(cat "$tmp/.output")" 'have no owner, because no node has room'
none=$(without_owner 0)
ok "$none files have none" test "$none" -gt 5
ok 'on all nodes alike' all_alike owners "${nodes[@]}"
before=$(world_sum source.samples "${nodes[@]}")
everywhere 'little room' "${nodes[@]}"
is 'these come from the source at each reader, the others do not' \
    $(($(world_sum source.samples "${nodes[@]}") - before)) $((3 * none))
unmount_amid() {
    dealfs stage "$tmp/node0" >"$tmp/stage.log" 2>&1 &
    world_umount || return
    wait $!
    [ $? -le 1 ]
}
ok 'unmount in the middle of it' unmount_amid
nothing_left 'nothing is left'
done_testing
