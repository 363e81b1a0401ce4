#!/bin/bash
# Two versions of dealfs in one world: refused with a line that names the node and both. The other version is the same
# programs, built with another text (tests/other).
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src
make_files "$src" 40 50000
mkdir "$tmp"/node{0,1} "$tmp/upgraded"
world_default=ram=8M
host=$(uname -n)
others=$top_builddir/tests/other other=$top_builddir/tests/other/dealfs

ours=$(dealfs --version) ours=${ours#dealfs }
theirs=$("$other" --version) theirs=${theirs#dealfs }
isnt 'there is another version' "$theirs" "$ours"

pair() { # program of node 0, of node 1, what of each
    world_launch -n 1 "$1" "${@:3}" "$tmp/node0" : -n 1 "$2" "${@:3}" "$tmp/node1"
}
mount_words=(mount -o "state=$tmp/state%r,$world_default" "$src")
are_alone() {
    local i
    for i in 0 1; do
        is "node $i: $1" "$(value "$tmp/node$i" state)" alone
    done
    reads 'and reads' "$src" "$tmp/node1"
}

# --- nodes that mount ---
pair dealfs "$other" "${mount_words[@]}"
world_refused 'another version at node 1' "node 1 \\($host\\) runs dealfs $theirs, node 0 \\($host\\) runs $ours:"
is 'one line says so' "$(grep -c . "$tmp/world.log")" 1
is 'nothing was mounted' "$(sweep_mounts "$tmp")" ''
pair "$other" dealfs "${mount_words[@]}"
world_refused 'another version at node 0' "node 1 \\($host\\) runs dealfs $ours, node 0 \\($host\\) runs $theirs:"
is 'nothing was mounted' "$(sweep_mounts "$tmp")" ''

# --- nodes that join ---
world_count=2
for i in 0 1; do
    ok "node $i is mounted" dealfs mount -o "state=$tmp/state$i,$world_default" "$src" "$tmp/node$i"
done
pair dealfs "$other" join
world_refused 'a join by two versions' "node 1 \\($host\\) runs dealfs $theirs, node 0 \\($host\\) runs $ours:"
are_alone 'the mount does not mind'
pair "$other" "$other" join
world_refused 'couriers of another version than their mounts' \
    "node 0 \\($host\\): .*by dealfs $ours, its courier is of dealfs $theirs:"
like 'of each node' "$(cat "$tmp/world.log")" "node 1 \\($host\\): .*by dealfs $ours, its courier is of dealfs $theirs:"
are_alone 'the mount does not mind'

# --- a mount that is of another version than all couriers ---
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"
ok 'and mounted by the other version' "$other" mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
pair dealfs dealfs join
world_refused 'a mount of another version than its courier' \
    "node 1 \\($host\\): .*by dealfs $theirs, its courier is of dealfs $ours:"
unlike 'of that node alone' "$(cat "$tmp/world.log")" 'node 0 .*its courier is'
are_alone 'the mount does not mind'
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"

# --- an upgrade beneath a world ---
cp "$top_builddir"/dealfs{,-keeper,-server} "$tmp/upgraded"
ok 'node 1 is mounted by programs that are about to change' \
    "$tmp/upgraded/dealfs" mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
ok 'a world of one version' world_join 0 1
same 'every byte of node 1' "$src" "$tmp/node1"
readers_start 0 1
cp "$others/dealfs-server" "$tmp/upgraded/new" && mv "$tmp/upgraded/new" "$tmp/upgraded/dealfs-server"
server=$(pid_of 1 server)
kill -9 "$server"
other_server() { now=$(pid_of 1 server) && [ "$now" != "$server" ]; }
ok 'the next server is the other version' wait_for 20 other_server
like 'as it says' "$(cat "$tmp/node1/.dealfs/metrics")" "dealfs_info\\{.*version=\"$theirs\""
ok 'it is out of the world' wait_for 20 state_is 1 degraded
like 'and its courier says so' "$(cat "$tmp/world.log")" '1: .*out of the world: the next server is another version'
readers_end 'no reader saw it'
reads 'node 0 reads' "$src" "$tmp/node0"
reads 'node 1 reads' "$src" "$tmp/node1"
ok 'the world ends' world_leave
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"
ok 'and mounted by the version of all' dealfs mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
ok 'then they join' world_join 0 1
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
