#!/bin/bash
# Worlds of mounts with resize=: each node makes its part of the images smaller, and all show the same.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
export DEALFS_IMAGE_PATIENCE=3600 # an image that hangs does so as long as it is looked at
pictures=$top_builddir/tests/fs/image/pictures
src=$tmp/src
count=30
"$pictures" make "$src" $count || bail_out 'no pictures'
settle "$src"
good=$((count + 4)) files=$(find "$src" -type f | wc -l)
world_default=resize=64,quality=80,ram=16M

mkdir "$tmp/expected"
for file in "$src"/*; do
    name=${file##*/}
    "$pictures" shrink 64 80 "$file" >"$tmp/expected/$name" || cp "$file" "$tmp/expected/$name"
    touch -r "$file" "$tmp/expected/$name"
done
# Bytes, names, sizes and times are to be the same at each of these nodes; what the kernel has of them is dropped.
resized() {
    local node
    for node; do
        drop_cache "$tmp/node$node"/*
        diff -r -x .dealfs "$tmp/expected" "$tmp/node$node" || return
        diff <(list_tree "$tmp/expected" '') <(list_tree "$tmp/node$node" '') || return
    done
}
digests_of() { echo "$(value "$tmp/node$1" catalog.digest) $(value "$tmp/node$1" resize.digest)"; }
length() { stat -c %s "$1"; }
new_files() { sed -n 's/.* \([0-9]*\) files were new.*/\1/p' "$tmp/world.log"; }
deadly=$src/good007.jpg
none_left() { # processes of a mount or a join
    ! processes | grep -q . && ! sweep_mounts "$tmp" | grep -q .
}

# --- as many nodes as there may be: the same of everything ---
for nodes in 1 2 4; do
    rm -rf "$tmp"/state*
    all=$(seq 0 $((nodes - 1)))
    ok "$nodes nodes: a world" world_mount $nodes
    like 'it says what was made' "$(cat "$tmp/world.log")" \
        "$good images are resized to 64 pixels, .*; $files files were new"
    # shellcheck disable=SC2086
    ok 'all is right at each node' resized $all
    # shellcheck disable=SC2086
    is 'and was made once' "$(world_sum resize.remade $all)" 0
    digests+=("$(digests_of $((nodes - 1)))")
    [ $nodes = 4 ] || ok 'unmount all' world_umount
done
is 'two nodes have the catalog of one' "${digests[1]}" "${digests[0]}"
is 'and four' "${digests[2]}" "${digests[0]}"
made=$(du -bc "$tmp"/expected/* | tail -1 | cut -f 1)
ok 'they hold it, each a part' test "$(value "$tmp/node3" ram.held)" -lt $((made * 6 / 10))
ok 'verify' dealfs verify "$tmp/node2"
for i in 0 1 2 3; do
    kill -9 "$(pid_of $i server)"
done
ok 'the next servers have it, too' resized 0 1 2 3

# --- a node is lost: its images are made again, wherever they are read ---
kill_whole 3
ok 'the world ends' wait_for world_gone
world_pid=''
ok 'the images of a lost node are right' resized 0 1 2
ok 'for they were made again' test "$(world_sum resize.remade 0 1 2)" -gt 0
is 'none of them failed' "$(world_sum resize.failed 0 1 2)" 0
ok 'verify' dealfs verify "$tmp/node0"
dealfs umount --lazy "$tmp/node3" >/dev/null 2>&1

# --- a node that comes to mounts which have it: nothing is made, and the same is shown ---
rm -rf "$tmp/state3"
ok 'one of four comes again' world_mount 4
ok 'and has the catalog of the others' test "$(digests_of 3)" = "${digests[0]}"
ok 'and their bytes' resized 3
ok 'unmount all' world_umount

# --- on disks: the next world has it at once, whatever its size ---
rm -rf "$tmp"/state*
for i in 0 1 2; do
    mkdir -p "$tmp/ssd$i"
    world_options[i]=resize=64,quality=80,ram=0,ssd=$tmp/ssd$i
done
ok 'two nodes with disks' world_mount 2
ok 'unmount all' world_umount
ok 'again' world_mount 2
ok 'nothing is made' made_nothing "$tmp/world.log" "$good" 64
ok 'all is right' resized 0 1
is 'and from the shards' "$(world_sum resize.remade 0 1)" 0
ok 'unmount all' world_umount
ok 'with a third node' world_mount 3
ok 'nothing is made' made_nothing "$tmp/world.log"
ok 'all is right' resized 0 1 2
is 'and from the shards' "$(world_sum resize.remade 0 1 2)" 0
ok 'unmount all' world_umount
cp "$src/good003.jpg" "$src/new.jpg"
cp "$src/good004.jpg" "$src/good005.jpg"
settle "$src"
for name in new.jpg good005.jpg; do
    "$pictures" shrink 64 80 "$src/$name" >"$tmp/expected/$name"
    touch -r "$src/$name" "$tmp/expected/$name"
done
ok 'the source changes' world_mount 2
like 'only what is new is made' "$(cat "$tmp/world.log")" '; 2 files were new'
ok 'all is right' resized 0 1
is 'and from the shards' "$(world_sum resize.remade 0 1)" 0
ok 'unmount all' world_umount
files=$((files + 1))
digests=()

# --- what dies meanwhile: nothing is left, and the next one goes on ---
hangs_at() { grep -qs 'it hangs' "$tmp"/state?/log; }
pid_at() { # the process of this name with that in its command line
    local pid
    for pid in $(processes "$2"); do
        [ "$(cat "/proc/$pid/comm")" != "dealfs-$1" ] || echo "$pid"
    done
}
begins_to_hang() {
    rm -rf "$tmp"/state? "$tmp"/ssd?/*
    DEALFS_IMAGE_FAULT=hang=$(length "$deadly")
    export DEALFS_IMAGE_FAULT
    world_launch -n 1 dealfs mount -o "state=$tmp/state%r,${world_options[0]}" "$src" "$tmp/node0" : \
        -n 1 dealfs mount -o "state=$tmp/state%r,${world_options[1]}" "$src" "$tmp/node1"
    ok "an image that hangs: the world waits" wait_for hangs_at
    unset DEALFS_IMAGE_FAULT
}
begins_to_hang
kill -9 "$(pid_at courier "dealfs-courier --state $tmp/state1")"
ok 'a courier dies: mpirun ends' wait_for world_gone
world_pid=''
ok 'nothing is left' wait_for none_left
ok 'the next one mounts' world_mount 2
ok 'and goes on with what was made' test "$(new_files)" -lt "$files"
ok 'all is right' resized 0 1
is 'and from the shards' "$(world_sum resize.remade 0 1)" 0
ok 'unmount all' world_umount
begins_to_hang
sits() { [ "$(grep -cs 'it hangs' "$tmp"/state?/log | awk -F: '{ n += $2 } END { print n }')" = "$1" ]; }
at=$(grep -ls 'it hangs' "$tmp"/state?/log | sed 's|.*/state\(.\)/log|\1|')
kill -9 "$(pid_at resizer "$tmp/ssd$at")"
ok 'a resizer dies: another one takes over' wait_for sits 2
kill -9 "$(pid_at resizer "$tmp/ssd$((1 - at))")"
resizer_is_back() { grep -q 'previous dealfs-resizer died' "$tmp/state$((1 - at))/log"; }
ok 'as at the node that has made its part, or makes it' wait_for resizer_is_back
pkill -9 -P "$(pid_at resizer "$tmp/ssd$at")" -f 'dealfs-resizer --worker' # the one that hangs
ok 'the world is there' world_await
rm "$tmp/expected/${deadly##*/}"
cp -p "$deadly" "$tmp/expected/"
ok 'all is right; the image that hung is as it was' resized 0 1
is 'and from the shards' "$(world_sum resize.remade 0 1)" 0
ok 'unmount all' world_umount
"$pictures" shrink 64 80 "$deadly" >"$tmp/expected/${deadly##*/}"
touch -r "$deadly" "$tmp/expected/${deadly##*/}"
ok 'the next one mounts' world_mount 2
is 'and resizes it' "$(new_files)" 1
ok 'all is right' resized 0 1
digests+=("$(digests_of 1)")

# --- who does not fit ---
world_leave -TERM
ok 'the world has ended' wait_for state_is 0 degraded
dealfs umount "$tmp/node1"
for with in 'resize=50,quality=80' 'resize=64,quality=70' 'ram=16M'; do
    dealfs mount -o "state=$tmp/other,$with" "$src" "$tmp/node1" >/dev/null
    world_launch -n 1 dealfs join "$tmp/node0" : -n 1 dealfs join "$tmp/node1"
    shown=with\ $with
    [ "$with" != ram=16M ] || shown=without\ resize=
    world_refused "a mount $shown" \
        "node 1 .*: its mount is $shown, that of node 0 .* with resize=64,quality=80: unmount one"
    dealfs umount "$tmp/node1"
    rm -rf "$tmp/other"
done
one_line 'a mount with other images there' 'node0: it is mounted there with resize=64,quality=80' \
    mpirun "${world_mpirun[@]}" -n 1 dealfs mount -o resize=65 "$src" "$tmp/node0"
ok 'unmount' dealfs umount "$tmp/node0"
mkdir "$tmp/bin"
cp "$top_builddir"/dealfs{,-courier,-keeper,-server} "$tmp/bin"
sed 's/libjpeg-turbo/libjpeg-other/g' "$top_builddir/dealfs-resizer" >"$tmp/bin/dealfs-resizer"
chmod +x "$tmp/bin/dealfs-resizer"
world_options=() words=(mount -o "state=$tmp/other%r,$world_default" "$src" "$tmp/node%r")
world_launch -n 1 dealfs "${words[@]}" : -n 1 "$tmp/bin/dealfs" "${words[@]}"
world_refused 'another library' 'node 1 .*: it resizes images with libjpeg-other .*, node 0 .* with libjpeg-turbo .*:'
ok 'leaves nothing' wait_for none_left

# --- mounts that wait for their first join ---
for i in 0 1; do
    ok "node $i waits" env DEALFS_IMAGE_FAULT="hang=$(length "$deadly")" dealfs mount -o \
        "state=$tmp/wait$i,wait_join,ram=16M,resize=64,quality=80" "$src" "$tmp/node$i"
done
joining() {
    : >"$tmp/wait0/log"
    : >"$tmp/wait1/log"
    world_launch -n 1 dealfs join "$tmp/node0" : -n 1 dealfs join "$tmp/node1"
    ok 'an image that hangs: the join waits' wait_for grep -qs 'it hangs' "$tmp/wait0/log" "$tmp/wait1/log"
    ok 'each node has a resizer' wait_for two_resize
}
two_resize() {
    mapfile -t resizers < <(pgrep -P "$(pid_of 0 server),$(pid_of 1 server)" dealfs-resizer)
    [ ${#resizers[@]} = 2 ]
}
none_lives() { # of the resizers; their servers may not have looked yet
    local pid
    for pid in "${resizers[@]}"; do
        ! ps -o stat= -p "$pid" | grep -qv Z || return
    done
}
joining
ok 'a join that is ended' world_leave
ok 'leaves no resizer' wait_for none_lives
unlike 'and mounts that wait still' "$(cat "$tmp/node1/.dealfs/status")" '"catalog"'
joining
kill -9 "$(pid_of 1 server)" "${resizers[1]}"
world_refused 'a server and its resizer die: the join fails' 'node . .*: dealfs-resizer died'
ok 'no resizer is left' wait_for none_lives
for i in 0 1; do
    ok "node $i is unmounted" dealfs umount "$tmp/node$i"
    rm -r "$tmp/wait$i"
    ok "and waits again" dealfs mount -o "state=$tmp/wait$i,wait_join,ram=16M,resize=64,quality=80" "$src" "$tmp/node$i"
done
ok 'they join' world_join 0 1
like 'it says what was made' "$(cat "$tmp/world.log")" "images of $files files are resized"
ok 'all is right' resized 0 1
is 'and was made once' "$(world_sum resize.remade 0 1)" 0
is 'with the same catalog' "$(digests_of 1)" "${digests[0]}"
ok 'verify' dealfs verify "$tmp/node1"
kill -9 "$(pid_of 1 server)"
ok 'the next server has it, too' resized 1
ok 'a mount that waits comes to them' dealfs mount -o \
    "state=$tmp/wait2,wait_join,ram=16M,resize=64,quality=80" "$src" "$tmp/node2"
world_count=3
world_leave -TERM
ok 'they join' world_join 0 1 2
ok 'and all have the same' resized 0 2
is 'with the same catalog' "$(digests_of 2)" "${digests[0]}"
ok 'unmount all' world_umount
ok 'one waits' dealfs mount -o "state=$tmp/state1,wait_join,$world_default" "$src" "$tmp/node1"
ok 'one is mounted with it' world_mount 2
ok 'and both have the same' resized 0 1
is 'with the same catalog' "$(digests_of 1)" "${digests[0]}"
ok 'unmount all' world_umount

# --- groups: each makes all ---
rm -rf "$tmp"/state*
world_default+=,groups=2
ok 'two groups' world_mount 4
is 'each node has what its group makes of it' "$(world_sum resize.remade 0 1 2 3)" 0
ok 'all is right' resized 0 3
is 'nothing had to be made again' "$(world_sum resize.remade 0 1 2 3)" 0
is 'with the same catalog' "$(digests_of 2)" "${digests[0]}"
ok 'unmount all' world_umount
done_testing
