#!/bin/bash
# owner=USER in a world: whatever USER puts into the directories that are USER's, no process of root's opens it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require strace python3
user_setup
cp "$top_builddir"/dealfs-{courier,resizer,lab} "$tmp/bin"
src=$tmp/src own=$tmp/user/own
make_files "$src" 40 20000
chmod -R go+rX "$src"
settle "$src"
world_count=2
echo 'of root alone' >"$tmp/secret"
chmod 600 "$tmp/secret"
as_user mkdir "$own"
for i in 0 1; do
    as_user mkdir "$own/node$i"
    ln -s "$own/node$i" "$tmp/node$i" # where the library takes them away in the end
done

# What runs is traced until all of it has ended, each command into a file of its own: lines of two could mix.
# Each is noted, because no subcommand may be forgotten.
trace() {
    echo "$*" >>"$tmp/traced"
    ${in_place:+exec} strace -D -f -y -o "$tmp/trace.$SRANDOM" -e 'trace=/open,/set.*uid,/clone,/fork' "$@"
}
traced() { grep -oE '(^| )dealfs [a-z]+' "$tmp/traced" | sed 's/.* //' | sort -u; }
subcommands() { dealfs help all | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort -u; }
trace_ended() { ! pgrep -f "strace -D -f -y -o $tmp/trace" >"$tmp/.output"; }
opened() {
    grep '' "$tmp"/trace.* /dev/null | python3 "$top_srcdir/tests/lib/traced.py" "$1" "$own"/{node0,node1,link/mnt}
}
launch() { # words of dealfs
    : >"$tmp/world.log"
    in_place=1 trace mpirun --oversubscribe --bind-to none -n 2 dealfs "$@" >"$tmp/world.log" 2>&1 </dev/null &
    world_pid=$!
    world_await
}
unmount() {
    local i
    for i in 0 1; do trace dealfs umount "$own/node$i" || return; done
    wait_for world_gone
}
leave() {
    [ -z "$world_pid" ] || world_gone || world_leave
    world_pid=''
}
user() { setpriv --reuid=$mount_user --regid=$mount_user --clear-groups "$@"; } # in the namespace of the mounts
of_root() { find "$own" -user 0 2>"$tmp/.output"; }
users() { # whose processes of a kind are
    local pid
    for pid in $(processes "dealfs-$1" | grep -v strace); do stat -c %u "/proc/$pid"; done | sort -u
}

# --- a world, and a second one over the mounts ---

# While it waits for the lock, the user writes to where the command of his that mounts says what there is to say.
as_user python3 -c '
import fcntl, os, sys
state = sys.argv[1]
os.mkdir(state, 0o700)
lock = open(state + "/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
open(state + "/ready", "w")
written = set()
while len(written) < 2:
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{process}/cmdline", "rb").read().split(b"\0")
            if os.stat("/proc/" + process).st_uid != os.getuid() or words[1:2] != [b"mount"]:
                continue
            for number in 1, 2:
                open(f"/proc/{process}/fd/{number}", "w").write("\33]0;evil\7\n")
                written.add(number)
        except OSError:
            pass' "$own/state0" &
tap_pids+=($!)
wait_for test -e "$own/state0/ready"
options=owner=$mount_user,ram=16M,state=$own/state%r
ok 'root mounts two nodes for a user' launch mount -o "$options" "$src" "$own/node%r"
# mpirun may pass on node 0's "ready" before what node 1 has said.
ok 'his escapes get to the terminal as text' wait_for grep -q 'x1b]0;evil' "$tmp/world.log"
is 'and as nothing else' "$(tr -cd '\33' <"$tmp/world.log")" ''
for process in keeper server courier; do
    is "the user's: $process" "$(users $process)" $mount_user
done
given_mountpoints() {
    local pid
    for pid in $(processes dealfs-courier | grep -v strace); do
        tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--mountpoint$/{n;p}'
    done | sort -u
}
is 'the couriers have been given the mountpoints' "$(given_mountpoints)" "$own/node0"$'\n'"$own/node1"
is "root's: the mounter alone" "$(users mounter)" 0
ok 'the user reads all of it' user diff -r -x .dealfs "$src" "$own/node1"
is 'nothing below is of root' "$(of_root)" ''
ok 'the world is ended' world_leave
is 'the mounts stay' "$(mounted "$own/node0" && mounted "$own/node1" && echo both)" both
for i in 0 1; do
    as_user sed -i -e 's/^owner_uid=.*/owner_uid=0/' -e 's/^owner_gid=.*/owner_gid=0/' "$own/state$i/config"
done
ok 'root joins them again, where STATE/config says that they are of root' launch join "$own/node%r"
is 'and becomes the user all the same' "$(users courier)" "$mount_user"
ok 'root takes them away' unmount
is 'nothing below is of root' "$(of_root)" ''

# --- mounts that wait, with files that lead elsewhere ---

for i in 0 1; do
    ok "node $i waits for a world" trace dealfs mount \
        -o "wait_join,owner=$mount_user,ram=16M,state=$own/state$i" "$src" "$own/node$i"
    as_user ln -sf "$tmp/secret" "$own/state$i/catalog"
    as_user ln -sf "$tmp/secret" "$own/state$i/resized"
done
as_user sh -c 'rm "$1/config" && mkfifo "$1/config"' - "$own/state1"
as_user sed -i -e 's/^owner_uid=.*/owner_uid=0/' -e 's/^owner_gid=.*/owner_gid=0/' \
    -e "s|^source=.*|source=/etc|" "$own/state0/config"
launch join "$own/node%r" # it fails, or the world is up: the user has made it so
is 'nothing below is of root after a join' "$(of_root)" ''
is 'nothing has got to the user that is of root alone' "$(user grep -rls 'of root alone' "$own" 2>"$tmp/.output")" ''
leave
ok 'root takes them away' unmount

as_user sh -c 'for i in 0 1; do rm -f "$1$i/catalog" && mkfifo "$1$i/catalog"; done' - "$own/state"
launch mount -o "$options" "$src" "$own/node%r"
ok 'a pipe in place of a catalog makes nobody wait' world_settled
leave
for i in 0 1; do ! mounted "$own/node$i" || dealfs umount "$own/node$i"; done
is 'nothing below is of root' "$(of_root)" ''

# --- what else root does ---

as_user rm -rf "$own/state0" "$own/state1"
as_user sh -c 'mkdir "$1" "$1/mnt" && ln -s "$1" "$2"' - "$own/real" "$own/link"
one_line 'a mountpoint behind a link' 'symlink' trace dealfs mount -o "$options" "$src" "$own/link/mnt"
mkdir -m 1777 "$tmp/var"
alone() { TMPDIR=$tmp/var trace dealfs "$@"; }
ok 'mount, with the state where it is by default' alone mount -o "owner=$mount_user,ram=16M,resize=64" \
    "$src" "$own/node0"
state=$(echo "$tmp"/var/dealfs-*)
for command in 'status MNT' 'wait MNT' 'top --once MNT' 'log MNT' 'stage MNT' 'where MNT class0/000.bin' 'verify MNT' \
    'plan MNT epoch=1 ranks=1 batch=2' 'index --format lines MNT lines' 'exchange MNT epoch=1 fraction=0.1' \
    'shuffle MNT seed=1' 'upgrade MNT' 'enter MNT -- true' 'doctor /tmp' 'demo' \
    'simulate imbalance --nodes 2 --samples 100 --steps 2 --batch 2' \
    'model --calibrate MNT --samples 100 --nodes 2 --train-rate 1 --storage-rate 1 --cache-rate 1'; do
    # shellcheck disable=SC2086
    ok "$command" alone ${command//MNT/$own/node0}
done
as_user sh -c 'rm "$1/resized" && truncate -s 3G "$1/resized"' - "$state"
one_line 'a list of resized images that is much longer than it can be is not read' 'File too large' \
    alone verify "$own/node0"
as_user sh -c 'rm "$1/resized" "$1/log" && mkfifo "$1/resized" && ln -s "$2" "$1/log"' - "$state" "$tmp/secret"
one_line 'a pipe in its place makes nobody wait' 'Operation not permitted' alone verify "$own/node0"
fails 'a link in the place of the log is not followed' alone log "$own/node0"
unlike 'whose file stays unread' "$(cat "$tmp/.output")" 'of root alone'
ok 'umount' alone umount "$own/node0"
mkdir "$tmp/mnt"
ok 'run' alone run -o "ram=16M,state=$tmp/run" "$src" "$tmp/mnt" -- cmp "$src/class0/000.bin" "$tmp/mnt/class0/000.bin"
ok 'launch' alone launch -o ram=16M "$src" "$tmp/mnt" -- cmp "$src/class0/000.bin" "$tmp/mnt/class0/000.bin"
trace dealfs mounter "$own/socket" $mount_user "$own/node0" >"$tmp/mounter.log" 2>&1 </dev/null &
ok 'mounter' wait_for mounter_serves "$tmp/mounter.log"
mounter=$(processes "dealfs-mounter $own/node0" | grep -v strace)
ok 'it ends' kill "$mounter"
ok 'with its socket' wait_for is_absent "$own/socket"
as_user sh -c 'rm "$1/config" && ln -s "$2" "$1/config" && mkfifo "$1/pipe"' - "$state" "$tmp/secret"
ok 'clean' alone clean -y --caches
fails 'the state is gone' test -e "$state"
is 'but not what a link in it named' "$(cat "$tmp/secret")" 'of root alone'
is 'each subcommand was traced' "$(comm -23 <(subcommands) <(traced))" ''
ok 'all that was traced has ended' wait_for trace_ended
is 'root has opened nothing of the user'\''s but mountpoints' "$(opened "$own")" ''
is 'nor anything in the state' "$(opened "$state")" ''
nothing_left
done_testing
