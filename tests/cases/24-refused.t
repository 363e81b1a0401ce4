#!/bin/bash
# Worlds that cannot be: each is refused with a line that names the node and what is wrong with it; waiting mounts.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 40 50000
mkdir "$tmp"/node{0,1,2}
world_count=3
two() { world_launch -n 1 dealfs "${@:1:$#/2}" : -n 1 dealfs "${@:$#/2+1}"; }

# --- by the command, before any MPI ---
one_line 'nodes without a launcher' 'nodes=4: the command runs on one node only' \
    dealfs mount -o nodes=4 "$src" "$tmp/node0"
one_line 'join without a launcher' 'mpirun' dealfs join "$tmp/node0"
one_line 'srun without MPI' 'srun --mpi=pmix' \
    env SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 dealfs mount "$src" "$tmp/node0"
one_line 'join under it' 'srun --mpi=pmix' \
    env SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 dealfs join "$tmp/node0"
one_line "another MPI's mpiexec" "Open MPI's mpirun" env PMI_SIZE=4 PMI_RANK=1 dealfs mount "$src" "$tmp/node0"
behind_nobody=(env PMIX_RANK=1 PMIX_NAMESPACE=nobody SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1
    dealfs mount -o "state=$tmp/state0,ram=8M" "$src" "$tmp/node0")
if [ "$mpi_major" = 4 ]; then
    one_line 'PMIx variables, but nobody behind them' 'dealfs' "${behind_nobody[@]}"
else # MPI_Init of 5.0 says it in a page, and ends the process
    fails 'PMIx variables, but nobody behind them' "${behind_nobody[@]}"
    like 'Open MPI says so' "$(cat "$tmp/.output")" MPI_INIT
fi
exits 2 'join of nothing' dealfs join
exits 2 'join of two' dealfs join a b
exits 2 'a world of no nodes' dealfs join --nodes 0 "$tmp/node0"
exits 2 'wait_join and nodes' dealfs mount -o wait_join,nodes=2 "$src" "$tmp/node0"
world_launch -n 2 dealfs mount -o nodes=3,ram=8M "$src" "$tmp/node%r"
world_refused 'nodes=3 for two' 'the world must have 3 nodes, but mpirun has started 2'
world_launch -n 2 dealfs join "$tmp/node%r"
world_refused 'join where nothing is mounted' 'node[01]: '
world_launch -n 2 dealfs mount -f -o ram=8M "$src" "$tmp/node%r"
world_refused '-f under mpirun' 'option -f'
is 'nothing was mounted' "$(sweep_mounts "$tmp")" ''

# --- by the couriers ---
mount_words() { echo mount -o "state=$tmp/state%r,ram=8M${2:+,$2}" "$1" "$tmp/node%r"; }
cp -r "$src" "$tmp/other"
mkdir "$tmp/other/more" && echo more >"$tmp/other/more/file"
# shellcheck disable=SC2046
two $(mount_words "$src") $(mount_words "$tmp/other")
world_refused 'another source at node 1' 'node 1.*(source|catalog|dataset)'
for i in 0 1; do fails "node $i is not mounted, nor still" mounted "$tmp/node$i"; done
nothing_left 'nor is anything left'

# --- other users may use only one of the mounts: its modes must respect ACLs ---
# shellcheck disable=SC2046
two $(mount_words "$src") $(mount_words "$src" allow_other)
world_refused 'allow_other at node 1 only' 'node 1.*allow_other'
nothing_left 'nothing is left of it'
# shellcheck disable=SC2046
two $(mount_words "$src" allow_other) $(mount_words "$src")
ok 'allow_other at node 0 only' world_await
ok 'unmount' world_umount
ok 'mount node 1 alone' dealfs mount -o "state=$tmp/state1,ram=8M" "$src" "$tmp/node1"
ok 'unmount' dealfs umount "$tmp/node1"
world_default=ram=8M,allow_other
ok 'allow_other at both: node 1 gets another catalog than its own, which ignores ACLs' world_mount 2
ok 'unmount' world_umount
ok 'mount node 0 without a scan' dealfs mount -o "state=$tmp/state0,ram=8M,wait_join" "$src" "$tmp/node0"
ok 'mount node 1 so' dealfs mount -o "state=$tmp/state1,ram=8M,wait_join,allow_other" "$src" "$tmp/node1"
world_launch -n 2 dealfs join "$tmp/node%r"
world_refused 'a catalog that node 1 must not show' 'allow_other'
ok 'unmount' world_drop 0 1
world_default=ram=64M world_count=3
rm -rf "$tmp"/state*

# --- a mount that fails on one node leaves none on the others, but those that were there before ---
ok 'a mount by itself' dealfs mount -o "state=$tmp/state0,ram=8M" "$src" "$tmp/node0"
rmdir "$tmp/node1"
world_launch -n 3 dealfs mount -o "state=$tmp/state%r,ram=8M" "$src" "$tmp/node%r"
world_refused 'a node without the mountpoint' 'node 1 .*node1: No such file'
fails 'node 2 is not mounted' mounted "$tmp/node2"
ok 'node 0 is, as before' cmp "$src/class1/001.bin" "$tmp/node0/class1/001.bin"
is 'and alone' "$(value "$tmp/node0" state)" alone
mkdir "$tmp/node1"
ok 'the same again goes on from there' world_mount 3
ok 'unmount' world_umount
world_count=3
rm -rf "$tmp"/state*

# --- the same with the states that dealfs chooses ---
rmdir "$tmp/node1"
world_launch -n 2 dealfs mount -o ram=8M "$src" "$tmp/node%r"
world_refused 'a node without the mountpoint again' 'node 1 .*node1: No such file'
unlike 'the other one is unmounted' "$(cat "$tmp/world.log")" 'stays mounted'
nothing_left 'with all its processes'
mkdir "$tmp/node1"
rm -rf "$tmp"/dealfs-*

# --- mpirun is ended while a node mounts ---
for options in "state=$tmp/state%r,ram=8M" ram=8M; do
    DEALFS_START_FAULT=-12 world_launch -n 2 dealfs mount -o "$options" "$src" "$tmp/node%r"
    ok "a mount command is stopped half way: $options" wait_for mount_stopped
    ok 'mpirun is ended' world_leave
    ok 'the node is mounted' mounted "$tmp/node0"
    kill -CONT "$stopped"
    nothing_left 'its mount command undoes it'
    is 'and its state' "$(find "$tmp" -maxdepth 1 -name state0 -o -maxdepth 1 -name 'dealfs-*.0')" ''
    rm -rf "$tmp"/{state,dealfs-}*
done
DEALFS_START_FAULT=-12 world_launch -n 2 dealfs mount -o "state=$tmp/state%r,ram=8M" "$src" "$tmp/node%r"
ok 'the first mount command is stopped' wait_for mount_stopped
first=$stopped
kill -CONT "$first"
other_stopped() { mount_stopped && [ "$stopped" != "$first" ]; }
ok 'then the one of the other node' wait_for other_stopped
ok 'mpirun is ended' world_leave
helper=$(sed -n 's/^PPid:\t//p' "/proc/$stopped/status")
ok 'its helper waits' wait_for is_in "$helper" S
kill -CONT "$stopped"
is_unmounted() { ! mounted "$tmp/node1"; }
ok 'the mount command undoes its mount' wait_for is_unmounted
ok 'the other mount stays: unmount' dealfs umount "$tmp/node0"
nothing_left 'nothing is left'
rm -rf "$tmp"/state*

ok 'a mount by itself' dealfs mount -o "state=$tmp/state0,ram=8M" "$src" "$tmp/node0"
ok 'and one of another source' dealfs mount -o "state=$tmp/state1,ram=8M" "$tmp/other" "$tmp/node1"
two join "$tmp/node0" join "$tmp/node1"
world_refused 'live mounts of different catalogs' 'node 1.*catalog'
ok 'unmount' dealfs umount "$tmp/node1"
file=$(cd "$src" && find . -type f -print -quit)
cp -p "$src/$file" "$tmp/first"
head -c "$(stat -c %s "$tmp/first")" /dev/urandom | dd of="$src/$file" conv=notrunc status=none
touch -r "$tmp/first" "$src/$file"
ok 'a mount after a file was rewritten and its mtime put back' \
    dealfs mount -o "state=$tmp/state1,ram=8M,rescan=always" "$src" "$tmp/node1"
two join "$tmp/node0" join "$tmp/node1"
world_refused 'live mounts of different versions of a file' 'node 1.*other versions of some files'
reads 'which are served by each as it was mounted' "$src" "$tmp/node1"
cat "$tmp/first" >"$src/$file" && touch -r "$tmp/first" "$src/$file"
ok 'unmount' dealfs umount "$tmp/node0"
ok 'a mount by itself again' dealfs mount -o "state=$tmp/state0,ram=8M" "$src" "$tmp/node0"
two join "$tmp/node0" join "$tmp/node0"
world_refused 'the same mount twice' 'node [01].*(same|twice|already|another world)'
for i in 0 1; do
    ok "node $i is up" mounted "$tmp/node$i"
    is 'and alone' "$(value "$tmp/node$i" state)" alone
done
reads 'and reads' "$src" "$tmp/node0"
ok 'unmount' dealfs umount "$tmp/node1"
mkdir "$tmp/state2"
cp "$tmp/state0/id" "$tmp/state2/id"
touch "$tmp/state2/lock"
ok 'a mount with the id of another' dealfs mount -o "state=$tmp/state2,ram=8M" "$src" "$tmp/node2"
is 'has it' "$(value "$tmp/node2" id)" "$(value "$tmp/node0" id)"
two join "$tmp/node0" join "$tmp/node2"
world_refused 'the same id twice' 'node [01].*id'
ok 'unmount' dealfs umount "$tmp/node2"
for option in peer_timeout=7 exchange; do # it waits for others for another time, it deals by another rule
    ok "a mount with $option" dealfs mount -o "state=$tmp/state1,ram=8M,$option" "$src" "$tmp/node1"
    two join "$tmp/node0" join "$tmp/node1"
    world_refused 'options that differ' 'node 1.*node 0'
    ok 'unmount' dealfs umount "$tmp/node1"
done
ok 'another mount' dealfs mount -o "state=$tmp/state1,ram=8M,groups=2" "$src" "$tmp/node1"
two join --groups 1 "$tmp/node0" join --groups 2 "$tmp/node1"
world_refused 'groups that differ' 'node [01].*group'
two join --groups 2 "$tmp/node0" join --groups 2 "$tmp/node1"
ok 'as many groups as nodes' world_await
ok 'leave' world_leave
two join --groups 3 "$tmp/node0" join --groups 3 "$tmp/node1"
world_refused 'more groups than nodes' 'group'
two join --nodes 2 "$tmp/node0" join --nodes 3 "$tmp/node1"
world_refused 'nodes that differ' 'the world must have 3 nodes'
ok 'a world that can be' world_join 0 1
join_pid=$world_pid
cp "$tmp/world.log" "$tmp/first.log"
two join "$tmp/node0" join "$tmp/node1"
world_refused 'a node of a living world' 'node [01].*(world|busy)'
world_pid=$join_pid
is 'which lives on' "$(value "$tmp/node0" state)" joined
ok 'it is in the world still' kill -0 "$world_pid"
world_count=2
ok 'unmount' world_umount

# --- waiting for the first join ---
world_count=3
for i in 0 1; do
    ok "mount node $i without a scan" \
        dealfs mount -o "state=$tmp/state$i,ram=8M,wait_join,peer_timeout=600" "$src" "$tmp/node$i"
done
cat "$tmp/node0/class0/000.bin" >"$tmp/waited" 2>"$tmp/waited.err" &
reader=$!
tap_pids+=("$reader")
reader_waits() { grep -qx cat "/proc/$reader/comm" && is_in "$reader" SD; }
ok 'a read' wait_for reader_waits
exits 3 'status answers meanwhile' dealfs status "$tmp/node1"
ok 'the first read waits' kill -0 $reader
ok 'join' world_join 0 1
ok 'the read comes back' wait $reader
ok 'with the right bytes' cmp "$tmp/waited" "$src/class0/000.bin"
same 'every byte of node 0' "$src" "$tmp/node0"
same 'every byte of node 1' "$src" "$tmp/node1"
is 'each file was opened once' "$(world_sum source.samples 0 1)" 40
world_count=2
ok 'unmount' world_umount
ok 'one that waits can be unmounted' dealfs mount -o "state=$tmp/state0,ram=8M,wait_join" "$src" "$tmp/node0"
ok 'without a join' dealfs umount "$tmp/node0"
ok 'a mount under a launcher without MPI, to join later' \
    env SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 \
    dealfs mount -o "state=$tmp/state%r,ram=8M,wait_join" "$src" "$tmp/node%r"
ok 'has its number in the path' mounted "$tmp/node2"
ok 'unmount' dealfs umount "$tmp/node2"

# --- mounts that root makes for a user, as a prolog does ---
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
    skip 1 'needs root'
    nothing_left 'nothing is left'
    done_testing
fi
mkdir "$tmp/bin" "$tmp/user"
cp "$top_builddir"/dealfs{,-keeper,-mounter,-server,-courier} "$tmp/bin"
chown $mount_user "$tmp/user"
chmod 755 "$tmp"
as() { # in `way`: the words that make a command this user's
    mkdir -p "$tmp/user/$1" && chown "$1" "$tmp/user/$1"
    way=(setpriv --reuid="$1" --regid="$1" --clear-groups env TMPDIR="$tmp/user/$1" HOME="$tmp/user/$1")
}
join_as() { # user
    as "$1"
    : >"$tmp/world.log"
    "${way[@]}" mpirun "${world_mpirun[@]}" -n 2 "$tmp/bin/dealfs" join "$tmp/node%r" \
        >"$tmp/world.log" 2>&1 </dev/null &
    world_pid=$!
}
chmod 711 "$tmp/user"
as $mount_user
if ! "${way[@]}" test -x "$tmp/bin/dealfs"; then # the build may stand where an ordinary user cannot go
    skip 1 "an ordinary user may not enter $tmp"
    nothing_left 'nothing is left'
    done_testing
fi
world_count=2
for i in 0 1; do
    ok "root mounts node $i for a user" \
        "$tmp/bin/dealfs" mount -o "state=$tmp/user/state$i,ram=8M,wait_join,owner=$mount_user" "$src" "$tmp/node$i"
done
join_as $mount_other
world_refused 'another user cannot join them' "join .*/node[01]: it is dead, or belongs to another user"
join_as $mount_user
ok 'the user can' world_await
ok 'and reads' "${way[@]}" cmp "$src/class1/001.bin" "$tmp/node1/class1/001.bin"
ok 'leave' world_leave
ok 'so can root' world_join 0 1
ok 'leave' world_leave
ok 'unmount' world_drop 0 1
nothing_left 'nothing is left'
done_testing
