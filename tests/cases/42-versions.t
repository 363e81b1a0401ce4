#!/bin/bash
# Two versions of dealfs in one world: a patch release is accepted, a minor release is refused with a line that names
# the node and both versions. They are the same programs with another version (tests/patch, tests/minor).
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 40 50000
mkdir "$tmp"/node{0,1} "$tmp/upgraded"
world_default=ram=8M
host=$(uname -n)
others=$top_builddir/tests/minor other=$others/dealfs patched=$top_builddir/tests/patch

ours=$(dealfs --version) ours=${ours#dealfs }
theirs=$("$other" --version) theirs=${theirs#dealfs }
patch=$("$patched/dealfs" --version) patch=${patch#dealfs }
like 'a version has three numbers' "$ours" '^[0-9]+\.[0-9]+\.[0-9]+$'
is 'the next patch release' "${patch%.*} $((${patch##*.} - 1))" "${ours%.*} ${ours##*.}"
isnt 'the next minor release' "${theirs%.*}" "${ours%.*}"

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
# mpirun of Open MPI 5 adds between lines of dashes that a process has failed.
is 'one line says so' "$(sed '/^-----/,$d' "$tmp/world.log" | grep -c .)" 1
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
    "node 0 \\($host\\): .*runs dealfs $ours, its courier dealfs $theirs:"
like 'of each node' "$(cat "$tmp/world.log")" "node 1 \\($host\\): .*runs dealfs $ours, its courier dealfs $theirs:"
are_alone 'the mount does not mind'

# --- a mount that is of another version than all couriers ---
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"
ok 'and mounted by the other version' "$other" mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
pair dealfs dealfs join
world_refused 'a mount of another version than its courier' \
    "node 1 \\($host\\): .*runs dealfs $theirs, its courier dealfs $ours:"
unlike 'of that node alone' "$(cat "$tmp/world.log")" 'node 0 .*its courier dealfs'
are_alone 'the mount does not mind'
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"

# --- a patch release in a world ---
ok 'node 1 is mounted by the patch release' \
    "$patched/dealfs" mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
is 'as its status says' "$(value "$tmp/node1" version)" "$patch"
like 'also in words' "$(dealfs status "$tmp/node1")" "dealfs ${patch//./\\.}, server [0-9]"
pair dealfs "$patched/dealfs" join
ok 'both form a world' world_await
same 'every byte of node 1' "$src" "$tmp/node1"
ok 'it ends' world_leave
pair "$patched/dealfs" dealfs join
ok 'couriers of the other version than their mounts' world_await
same 'every byte of node 0' "$src" "$tmp/node0"
ok 'it ends' world_leave
ok 'node 1 is unmounted' dealfs umount "$tmp/node1"

# --- an upgrade beneath a world ---
cp "$top_builddir"/dealfs{,-keeper,-server} "$tmp/upgraded"
ok 'node 1 is mounted by programs that are about to change' \
    "$tmp/upgraded/dealfs" mount -o "state=$tmp/state1,$world_default" "$src" "$tmp/node1"
ok 'a world of one version' world_join 0 1
same 'every byte of node 1' "$src" "$tmp/node1"
readers_start 0 1
version_is() { [ "$(value "$tmp/node$1" version)" = "$2" ]; }
replace_by() { # folder: the next server of node 1 is its program
    cp "$1/dealfs-server" "$tmp/upgraded/new" && mv "$tmp/upgraded/new" "$tmp/upgraded/dealfs-server" &&
        restart "$tmp/node1" server
}
ok 'the next server is the patch release' replace_by "$patched"
ok 'which says so' wait_for version_is 1 "$patch"
ok 'the node is in the world again' wait_for state_is 1 joined
ok 'the next server is the minor release' replace_by "$others"
like 'as it says' "$(cat "$tmp/node1/.dealfs/metrics")" "dealfs_info\\{.*version=\"$theirs\""
ok 'it is out of the world' wait_for state_is 1 degraded
no_part='no longer takes part in the world: the next server runs another version'
ok 'and its courier says so' wait_for grep -q "1: .*$no_part" "$tmp/world.log"
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
