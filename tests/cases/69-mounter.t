#!/bin/bash
# dealfs mounter: a process without rights, in another mount namespace and without /dev/fuse, mounts, reads, ends and is
# killed; and what its user may try against the process that has the rights.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
user_setup
require python3 setpriv nsenter unshare strace prlimit
[ -n "${TEST_NAMESPACE-}" ] || plan_skip 'a mount namespace of its own cannot be made'

src=$tmp/src share=$tmp/share mnt=$tmp/share/mnt sock=$tmp/user/sock state=$tmp/user/state
make_files "$src" 20 50000
chmod -R go+rX "$src"
mkdir -p "$mnt"
chmod 755 "$share" "$mnt"
mount --bind "$share" "$share" && mount --make-shared "$share" || plan_skip 'nothing can be bound'
at_exit umount -R -l "$share"

# The client: no device, no capability, no way to new rights; it sees what the mounter mounts.
# shellcheck disable=SC2016
background unshare -m --propagation slave bash -c ': >"$1/hidden" && chmod 0 "$1/hidden" &&
    mount --bind "$1/hidden" /dev/fuse && : >"$1/client.ready" && exec sleep infinity' client "$tmp"
client=$!
wait_for test -e "$tmp/client.ready" || plan_skip 'no mount namespace'
powerless() { # user, command…
    local id=$1
    shift
    nsenter -t "$client" -m -w/ "${pids[@]}" setpriv --reuid="$id" --regid="$id" --clear-groups --no-new-privs \
        --bounding-set=-all --inh-caps=-all env TMPDIR="$tmp/user" HOME="$tmp/user" "$@"
}
pids=()
as_client() { powerless $mount_user "$@"; }
up() { as_client dealfs mount -o "mounter=$sock,ram=16M,state=$state${1-}" "$src" "${2:-$mnt}"; }
down() { as_client dealfs umount "$@" "$mnt"; }
gone() { ! mounted "$mnt"; }
pid_of() { processes "dealfs-$1" | head -1; }
of_client() { processes "$state" | while read -r pid; do [ "$(stat -c %u "/proc/$pid")" = 0 ] || echo "$pid"; done; }
no_client() { [ -z "$(of_client)" ]; }
# shellcheck disable=SC2046
kill_client() { kill_at_once $(of_client); }
dead() { [[ $(as_client stat -f "$mnt" 2>&1) == *'not connected'* ]]; }
serves() { as_client cmp "$src/class0/000.bin" "$mnt/class0/000.bin"; }
mounter() { # options
    : >"$tmp/mounter.log" # the last one's words, else
    background dealfs mounter "$@" "$sock" "$mount_user" "$mnt" >"$tmp/mounter.log" 2>&1
    mounter=$!
    wait_for mounter_serves "$tmp/mounter.log"
}

ok 'a mounter' mounter
is 'its socket is its user'\''s alone' "$(stat -c '%F %u %a' "$sock")" "socket $mount_user 700"
fails 'a process without rights has no device' as_client sh -c ': <>/dev/fuse'
one_line 'and cannot mount by itself' . as_client dealfs mount -o "state=$state" "$src" "$mnt"
ok 'it mounts through the mounter' wait_for up
ok 'it reads all of it' as_client diff -r -x .dealfs "$src" "$mnt"
ok 'its control file answers' as_client grep -q . "$mnt/.dealfs/status"
ok 'the mount is seen where the mounter is' mounted "$mnt"
like 'read-only, without set-user-id programs and devices' "$(grep -F " $mnt " /proc/self/mountinfo)" \
    'ro,nosuid,nodev.* - fuse.dealfs .*default_permissions'
unlike 'only for its user' "$(grep -F " $mnt " /proc/self/mountinfo)" allow_other
rights() { sed -nE 's/^(CapPrm|CapEff|NoNewPrivs):\s*//p' "/proc/$(pid_of "$1")/status" | tr '\n' ' '; }
for process in keeper server; do
    is "$process: no rights" "$(rights $process)" '0000000000000000 0000000000000000 1 '
    is "$process: of the user" "$(stat -c %u "/proc/$(pid_of $process)")" $mount_user
done
is 'the RAM tier is on no file system that others see' "$(find /dev/shm -name '*dealfs*' -user $mount_user)" ''
server=$(pid_of server)
kill -9 "$server"
another() { server_now=$(pid_of server) && [ -n "$server_now" ] && [ "$server_now" != "$server" ]; }
ok 'a server that is killed is replaced' wait_for another
ok 'and reads go on' as_client diff -r -x .dealfs "$src" "$mnt"

# --- who may use it, and for what ---
one_line 'one mount at a time' 'another `dealfs mount` uses it' up ",state=$tmp/user/second"
one_line 'no other user' 'connect|Permission denied' powerless $mount_other dealfs mount \
    -o "mounter=$sock,state=$tmp/other" "$src" "$mnt"
one_line 'not root either' "serves user $mount_user.*not user 0" nsenter -t "$client" -m dealfs mount \
    -o "mounter=$sock,state=$tmp/other" "$src" "$mnt"
ok 'it unmounts' down
ok 'the mount is gone everywhere' gone
ok 'its processes end' wait_for no_client
one_line 'no other mountpoint' "mounts only on $mnt" up '' "$tmp/user"
one_line 'allow_other is for the mounter to decide' 'was started without it' up ,allow_other
pids=(unshare -p -f --mount-proc)
as_client_init() { powerless $mount_user dealfs mount -f -o "mounter=$sock,ram=16M,state=$state" "$src" "$mnt"; }
background as_client_init >"$tmp/init.log" 2>&1
pids=()
ok 'from another namespace of process ids' wait_for serves
like 'there is no prefetch' "$(cat "$tmp/init.log")" 'warning: no prefetch: .*PID namespace'
as_client sh -c 'exec 3<>"$1" && echo nonsense >&3 && cat <&3' - "$mnt/.dealfs/control" >"$tmp/.output" 2>&1
like 'readers have no numbers there' "$(as_client cat "$mnt/.dealfs/errors")" $'\t'$mount_user$'\t0\tnonsense'
ok 'all of it is read' as_client diff -r -x .dealfs "$src" "$mnt"
pkill -TERM -f "^dealfs mount -f .*$state"
ok 'it is unmounted' wait_for gone
ok 'its processes end' wait_for no_client
one_line 'no other place for the control files' 'cannot be combined' up ",control=$tmp/user"
one_line 'run' 'dealfs run' as_client dealfs run -o "mounter=$sock" "$src" "$mnt" -- true
exits 2 'mpirun' as_client env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 \
    dealfs mount -o "mounter=$sock" "$src" "$mnt"
like 'which says what to do' "$(cat "$tmp/.output")" 'option mounter: under mpirun, mount with wait_join, then run'
background as_client python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
s.accept()' "$tmp/user/fake" >"$tmp/fake"
wait_for grep -q ready "$tmp/fake"
one_line 'one that is not root is not trusted' 'is not root' as_client dealfs mount \
    -o "mounter=$tmp/user/fake,state=$state" "$src" "$mnt"

# --- the client ends, or is killed ---
background as_client dealfs mount -f -o "mounter=$sock,ram=16M,state=$state" "$src" "$mnt" >"$tmp/front.log" 2>&1
front=$!
ok 'in the foreground' wait_for says_mounted "$tmp/front.log" # a signal before that ends it otherwise
ok 'it serves' serves
pkill -TERM -f "^dealfs mount -f .*$state"
ok 'it ends in order' wait "$front"
ok 'and unmounts' gone
ok 'its processes end' wait_for no_client
ok 'again' wait_for up
background as_client tail -f "$mnt/class0/000.bin" >/dev/null 2>&1
inside() { find /proc/"$(pgrep -f "^tail -f $mnt")"/fd -lname '*/000.bin' | grep -q .; }
wait_for inside
one_line 'it does not unmount what is in use' 'in use by' down
ok 'except lazily' down --lazy
ok 'it is gone' wait_for gone
pkill -f "^tail -f $mnt"
ok 'its processes end' wait_for no_client
ok 'again' wait_for up
kill_client
ok 'all its processes are killed: the mounter unmounts' wait_for gone
ok 'and serves the next' wait_for up

kill_client
ok 'which is killed, too' wait_for gone
background as_client strace -f -qq -o /dev/null -e trace=execveat -e inject=execveat:delay_enter=3600000000 \
    dealfs mount -o "mounter=$sock,ram=16M,state=$state" "$src" "$mnt" >/dev/null 2>&1
stands_by() { [ -n "$(pid_of backup)" ]; }
ok 'a mount whose server starts slowly' wait_for stands_by
keeper_itself() { # not its child that starts as the server
    named dealfs-keeper | while read -r pid; do
        grep -qx dealfs-keeper "/proc/$(awk '/^PPid/ { print $2 }' "/proc/$pid/status")/comm" || echo "$pid"
    done
}
kill -9 "$(keeper_itself)" "$(named dealfs)"
kill -9 "$(pgrep -f "^strace .*$state")" # the server starts now
ok 'keeper and command are killed: the next keeper ends it' wait_for no_client
ok 'and never mounts' gone
ok 'the mounter serves the next' wait_for up

# --- a folder that is renamed where it is no mountpoint ---
ok 'unmount' down
ok 'its processes end' wait_for no_client
ok 'again' wait_for up
ok 'its mountpoint is renamed from another namespace' \
    unshare -m --propagation private sh -c 'umount -l "$1" && mv "$1" "$1.moved"' - "$mnt"
ok 'the mount is there now' mounted "$mnt.moved"
kill_client
gone_there() { ! mounted "$mnt.moved"; }
ok 'its processes are killed: the mounter unmounts it there' wait_for gone_there
mv "$mnt.moved" "$mnt"
ok 'and serves the next' wait_for up

# --- the mounter is killed, with the child that serves the mount ---
again_and_kill_mounter() {
    ok 'it is gone' gone
    ok 'its processes end' wait_for no_client
    ok 'again' wait_for up
    mapfile -t all < <(processes dealfs-mounter)
    kill -9 "${all[@]}"
    wait "$mounter"
}
two_mounters() { mapfile -t all < <(processes dealfs-mounter) && [ ${#all[@]} = 2 ]; }
ok 'there are two' wait_for two_mounters
kill -9 "${all[@]}"
wait "$mounter"
ok 'a mount outlives its mounter' serves
ok 'another mounter takes the same socket' mounter
one_line 'which refuses a second mount' 'a dealfs mount is there' up ",state=$tmp/user/second"
ok 'and unmounts the first one for its user' down
again_and_kill_mounter
one_line 'without a mounter nothing is unmounted, and this is reported' 'dealfs-mounter has not unmounted it' down
ok 'the mount still serves' serves
ok 'the next mounter' mounter
ok 'unmounts it' down
again_and_kill_mounter
ok 'another mounter' mounter
kill_client
ok 'the client dies: its mount is dead' wait_for dead
ok 'the next one replaces it' wait_for up
ok 'and serves' serves

# --- the mounter is told to end ---
kill -TERM "$mounter"
socket_is_gone() { [ ! -e "$sock" ]; }
ok 'SIGTERM: its socket goes' wait_for socket_is_gone
one_line 'nobody is let in' 'No such file' up ",state=$tmp/user/second"
ok 'the mount stays' serves
ok 'until it is unmounted' down
ok 'then the mounter ends' wait "$mounter"
ok 'another one' mounter
ok 'a mount' wait_for up
kill -TERM "$mounter"
wait_for socket_is_gone
kill -TERM "$mounter"
ok 'SIGTERM again: it ends now' wait "$mounter"
ok 'and has unmounted' gone
ok 'the processes of the mount end' wait_for no_client

# --- a client that is stopped before its mount is up ---
traced_mount() { # strace's rule: a mount, in the background; its messages
    background as_client strace -f -qq -o /dev/null -e "trace=${1%%:*}" -e "inject=$1" dealfs mount \
        -o "mounter=$sock,ram=16M,state=$tmp/user/other" "$src" "$mnt" >"$tmp/traced.log" 2>&1
    traced=$!
}
stopped() { stopped_one=$(pgrep -f "^dealfs mount .*$tmp/user/other") && is_in "$stopped_one" Tt; }
patient() { # seconds that the mounter waits for a silent client
    DEALFS_MOUNTER_PATIENCE=$1 mounter "${@:2}"
}
ok 'a mounter that waits for long for a silent client' patient 3600
traced_mount recvmsg:signal=SIGSTOP:when=1
ok 'a client stops when it has connected' wait_for stopped
one_line 'another one is refused' 'another `dealfs mount` uses it' up
kill -KILL "$stopped_one"
wait "$traced"
kill -TERM "$mounter"
wait "$mounter"
ok 'one that waits for some seconds' patient 4
traced_mount recvmsg:signal=SIGSTOP:when=1
ok 'a client stops' wait_for stopped
ok 'after that time another one is served' wait_for up
ok 'and reads' serves
ok 'unmount' down
kill -CONT "$stopped_one"
wait "$traced"
is 'the stopped one continues: it fails' $? 1
like 'and says why' "$(cat "$tmp/traced.log")" 'dealfs-mounter: it has ended, or has ended the connection'
# It says so each second. On a machine where it does not get to that it is tried again.
slowly_up() {
    ! serves || return 0
    ! has_ended "$traced" || traced_mount getdents64:delay_enter=5000000:when=1
    return 1
}
ok 'one whose scan takes longer than that is not silent' wait_for slowly_up
ok 'unmount' down

# --- all its processes are killed, and a thread of the server cannot end ---
ok 'its processes end' wait_for no_client
export DEALFS_FAULTS=stuck_lookup=stuck
ok 'a mount whose server may ask its own mount' wait_for up
unset DEALFS_FAULTS
server=$(pid_of server)
background as_client stat "$mnt/stuck" >/dev/null 2>&1
ok 'it does' wait_for asks_itself "$server"
mapfile -t all < <(of_client)
kill -STOP "${all[@]}"
# Each time that nobody has asked it something for four seconds, it looks for the processes of its client.
child=$(pgrep -P "$mounter")
wakes() { awk '/^voluntary/ { print $2 }' "/proc/$child/task/$child/status"; }
woken=$(wakes)
has_looked() { [ "$(wakes)" -ge $((woken + 2)) ]; }
wait_for has_looked
ok 'while all are only stopped, as in a suspended job, the mount stays' mounted "$mnt"
fails 'and the mounter serves it' has_ended "$child"
kill -KILL "${all[@]}"
ok 'all are killed: the mounter unmounts' wait_for gone
ok 'and no thread of the server is left' wait_for no_thread_left "$server"
ok 'it serves the next' wait_for up
ok 'unmount' down
kill -TERM "$mounter"
wait "$mounter"

# --- what is not there yet, or does not answer ---
# The containers of a pod start together. The client waits for some seconds, which may be too short for this machine:
# then all is done again.
trying() { [ -n "$(of_client)" ] || has_ended "$early"; }
early_client() {
    background up ''
    early=$!
    wait_for trying && mounter && wait "$early" && return
    kill -TERM "$mounter"
    wait "$mounter"
    return 1
}
ok 'a client that starts before its mounter waits for it' wait_for early_client
ok 'and serves' serves
ok 'unmount' down
rests() { [ "$(processes dealfs-mounter)" = "$mounter" ]; }
ok 'its child ends' wait_for rests
highest=$(find "/proc/$mounter/fd" -mindepth 1 -printf '%f\n' | sort -n | tail -1)
prlimit --pid "$mounter" --nofile=$((highest + 2)):1024 # room for the connection, not for a look at its child
one_line 'a child that cannot be watched does not serve' 'Too many open files' up
ok 'nothing of it is mounted' gone
is 'no child is left' "$(processes dealfs-mounter)" "$mounter"
prlimit --pid "$mounter" --nofile=1024
ok 'with room again it serves' wait_for up
ok 'unmount' down
kill -TERM "$mounter"
wait "$mounter"
slow=$tmp/slow
mkdir -p "$tmp/slow" "$tmp/tree/place"
ok 'a file system' dealfs mount -o "allow_other,ram=0,state=$tmp/slow-state" "$tmp/tree" "$slow"
mapfile -t hung < <(processes "$tmp/slow-state")
kill -STOP "${hung[@]}"
exits 1 'a mountpoint below one that hangs: it gives up' dealfs mounter "$sock" "$mount_user" "$slow/place"
like 'and says so' "$(cat "$tmp/.output")" "$slow/place: Connection timed out"
background dealfs mounter "$sock" "$mount_user" "$slow/place" 2>"$tmp/mounter.log"
mounter=$!
looks() { [ -n "$(processes dealfs-mounter)" ]; }
wait_for looks
kill -TERM "$mounter"
kill -CONT "${hung[@]}"
ok 'a signal that comes while it starts is not lost' wait_for has_ended "$mounter"
ok 'unmount' dealfs umount "$slow"

# --- hostile clients ---
ok 'a mounter that gives no RAM' mounter -o ram=0
attacks=$tmp/mounter.py
cp "$top_srcdir/tests/lib/mounter.py" "$attacks"
hostile() { as_client python3 "$attacks" "$1" "$sock" "${@:2}"; }
before=$(find "/proc/$mounter/fd" -mindepth 1 | wc -l)
ok 'garbage, silence and descriptors' hostile garbage
ok 'many connections' hostile crowd
background python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
s.listen()
print("ready", flush=True)
print(len(s.accept()[0].recv(8192)), "bytes", flush=True)' "$tmp/trusting" >"$tmp/trusting.got"
trusting=$!
wait_for grep -q ready "$tmp/trusting.got"
ok 'descriptors on which it must not answer' hostile answers "$tmp/trusting"
ok 'a program that trusts root' wait "$trusting"
is 'got nothing from it' "$(tail -n 1 "$tmp/trusting.got")" '0 bytes'
is 'no protection, no tmpfs, and each step once' "$(hostile steps)" \
    'protect EPERM, tmpfs EINVAL, put EINVAL, make 0, make EALREADY, config EPERM'
ok 'nothing of it is mounted' gone
ok 'a mount' wait_for up
ok 'whose user asks that it is never taken away' hostile keep "$(pid_of keeper)"
kill_client
ok 'it is removed with its last process' wait_for gone
one_mounter() { [ "$(processes dealfs-mounter | wc -l)" = 1 ]; }
ok 'no child is left' wait_for one_mounter
is 'the mounter has kept nothing that it was sent' "$(find "/proc/$mounter/fd" -mindepth 1 | wc -l)" "$before"
ok 'it still serves' wait_for up
ok 'unmount' down
kill -TERM "$mounter"
wait "$mounter"

# A mountpoint and a socket on ways that their user can change.
as_client mkdir "$tmp/user/way" "$tmp/user/way/mnt"
mkdir -m 700 "$tmp/victim"
echo precious >"$tmp/victim/file"
mnt=$tmp/user/way/mnt
ok 'a mounter for a folder of its user' mounter
ok 'which leads elsewhere between two steps' hostile elsewhere "$mnt" "$tmp/victim"
unlike 'nothing is mounted there' "$(cat /proc/self/mountinfo)" " $tmp/victim "
kill -TERM "$mounter"
wait "$mounter"
rm "$tmp/user/way/mnt"
mkdir "$tmp/user/way/mnt"
for target in file new; do
    as_client ln -sfn "$tmp/victim/$target" "$sock"
    exits 1 "a socket that is a link to a $target" dealfs mounter "$sock" "$mount_user" "$mnt"
done
as_client rm "$sock"
as_client ln -sfn "$tmp/victim" "$tmp/user/folder"
exits 1 'a socket in a folder that is root'\''s' dealfs mounter "$tmp/user/folder/sock" "$mount_user" "$mnt"
is 'nothing has changed there' "$(ls "$tmp/victim"; cat "$tmp/victim/file")" $'file\nprecious'

# --- usage ---
exits 2 'an option that is another program'\''s' dealfs mounter -o ssd=/tmp "$sock" "$mount_user" "$mnt"
one_line 'root needs no mounter' "root's rights" dealfs mounter "$sock" root "$mnt"
one_line 'an ordinary user may not' 'only root' as_client dealfs mounter "$sock" "$mount_user" "$mnt"
umount -R -l "$share"
nothing_left
done_testing
