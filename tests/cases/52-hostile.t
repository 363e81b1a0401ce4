#!/bin/bash
# owner=USER: what the mount's user does with what is his never leads root anywhere.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
require python3 strace
src=$tmp/src mnt=$tmp/user/place/mnt victim=$tmp/victim state=$tmp/user/state
make_files "$src" 20 50000
chmod -R go+rX "$src"
mkdir "$victim" "$victim"/{control,mnt,ram}
echo precious | tee "$victim/file" "$victim/control/file" >"$victim/ram/file"
# The user's own: all but the mountpoint's own directory can be swapped at any time.
as_user mkdir "$tmp/user/place" "$mnt"

there() { nsenter -t "$user_namespace" -m env TMPDIR="$tmp" "$@"; }
mounts() { there cat /proc/self/mountinfo; }
precious() {
    [ "$(there cat "$victim/file" "$victim/control/file" "$victim/ram/file" | sort -u)" = precious ] && ! mounts |
        grep -F " $victim"
}
gone() { ! mounts | grep -F " $mnt "; }
up() { there dealfs mount -o "owner=$mount_user,state=$state" "$src" "$mnt"; }
down() { there dealfs umount "$mnt"; }
pid_of() { processes "dealfs-$1" | head -1; }
no_processes() { [ -z "$(processes dealfs-keeper)$(processes dealfs-server)" ]; }
serves() { as_user cmp "$src/class0/000.bin" "$mnt/class0/000.bin"; }
another() { local now; now=$(pid_of "$1"); [ -n "$now" ] && [ "$now" != "$2" ]; }

# --- the state directory is his ---

ROOTS_SECRET=x LC_TIME=C ok 'mount for a user' up
is 'no variable of root but those that it needs' "$(tr '\0' '\n' <"/proc/$(pid_of keeper)/environ" |
    grep -E '^(ROOTS_SECRET|HOME|LC_TIME)=' | sort)" "HOME=$(getent passwd $mount_user | cut -d: -f6)"$'\n'LC_TIME=C
ok 'the user reads' as_user diff -r -x .dealfs "$src" "$mnt"
is 'the keeper is the user' "$(stat -c %u "/proc/$(pid_of keeper)")" "$mount_user"
is 'one process is root' "$(stat -c %u "/proc/$(pid_of mounter)")" 0
is 'the server is the user' "$(stat -c %u "/proc/$(pid_of server)")" "$mount_user"
ids() { sed -nE 's/^(Uid|Gid|Groups):\s*//p' "/proc/$(pid_of "$1")/status" | tr -s '\t ' '\n' | sort -u; }
for process in keeper server; do is "no other id: $process" "$(ids $process)" "$mount_user"; done
old=$(pid_of keeper) server=$(pid_of server)
kill -9 "$old" && kill -9 "$server"
ok 'both are killed: others come' wait_for another keeper "$old"
ok 'the server, too' wait_for another server "$server"
ok 'and serve' wait_for serves
for process in keeper server; do is "no other id: $process" "$(ids $process)" "$mount_user"; done
as_user sh -c 'rm -rf "$1/control" && ln -s "$2" "$1/control"' - "$state" "$victim/control"
ok 'umount, where STATE/control has become a symlink to what is not his' down
ok 'nothing was mounted there' precious
as_user rm -f "$state/control"

as_user ln -s "$victim/control" "$state/control"
ok 'mount, where it is one from the beginning' up
ok 'nothing was mounted there' precious
ok 'umount' down
as_user rm -f "$state/control"

ok 'mount' up
as_user sh -c 'rm "$1/lock" && mkfifo "$1/lock"' - "$state"
ok 'umount does not wait for a pipe in the place of the lock' down
as_user sh -c 'rm "$1/lock" && : >"$1/lock"' - "$state"
as_user sh -c 'rm "$1/log" && mkfifo "$1/log"' - "$state"
one_line 'mount does not write into a pipe' 'log: is not a regular file' up
as_user rm -r "$state"

# What root makes for the user on an SSD it makes where the user can put no link: not in what is his and closed.
as_user mkdir -p "$tmp/user/closed" && as_user chmod 555 "$tmp/user/closed"
one_line 'an SSD directory of the user'\''s that he may not write to' 'Permission denied' \
    there dealfs mount -o "owner=$mount_user,state=$state,ssd=$tmp/user/closed" "$src" "$mnt"
is 'root made nothing in it' "$(ls -A "$tmp/user/closed")" ''
as_user chmod 755 "$tmp/user/closed"
mkdir -m 755 "$tmp/disk"
ok 'one of root'\''s' there dealfs mount -o "owner=$mount_user,state=$state,ssd=$tmp/disk" "$src" "$mnt"
is 'has the user'\''s folder' "$(stat -c %u "$tmp"/disk/dealfs-*)" "$mount_user"
ok 'umount' down

# A mount that is given up removes what it made, while the user puts a link in the way. Its words wait for a full pipe.
as_user mkdir "$tmp/user/way"
mkdir "$victim/state" && echo precious | tee "$victim/state/lock" >"$victim/state/file"
mkfifo "$tmp/words"
exec 5<>"$tmp/words"
python3 -c '
import os
os.set_blocking(5, False)
try:
    while True:
        os.write(5, b"\0")
except BlockingIOError:
    os.set_blocking(5, True)'
background there dealfs mount -o "owner=$mount_user,state=$tmp/user/way/state" "$src" "$mnt" >&5 2>&5
begun=$!
ok 'a mount begins' wait_for test -s "$tmp/user/way/state/catalog"
as_user sh -c 'mv "$1/way" "$1/away" && ln -s "$2" "$1/way"' - "$tmp/user" "$victim"
pkill -INT -f "dealfs mount .*$tmp/user/way/state"
cat <&5 >"$tmp/.output" &
drain=$!
tap_pids+=("$drain")
wait "$begun"
is 'and is interrupted' $? 1
kill "$drain"
is 'root has not followed a link to remove its state' \
    "$(cat "$victim/state/file" "$victim/state/lock")" $'precious\nprecious'
exec 5>&-
as_user sh -c 'rm "$1/way" && rm -r "$1/away"' - "$tmp/user"

# --- the configuration ---

as_user sed -e 's/^owner_uid=.*/owner_uid=0/' -e 's/^owner_gid=.*/owner_gid=0/' "$state/config" >"$tmp/evil"
echo "ram_path=$victim/ram" >>"$tmp/evil"
chmod 644 "$tmp/evil"
# The user puts his own in the place of every configuration, faster than a keeper can start.
background as_user python3 -c '
import os, sys
state, evil = sys.argv[1], open(sys.argv[2], "rb").read()
while True:
    with open(state + "/evil", "wb") as f:
        f.write(evil)
    os.rename(state + "/evil", state + "/config")' "$state" "$tmp/evil"
ok 'mount, while the user swaps the configuration' up
is 'the server is not root' "$(stat -c %u "/proc/$(pid_of server)")" "$mount_user"
server=$(pid_of server)
kill -9 "$server"
ok 'another comes' wait_for another server "$server"
ok 'and serves' wait_for serves
is 'it is not root' "$(stat -c %u "/proc/$(pid_of server)")" "$mount_user"
ok 'umount takes this mount away' down
ok 'its processes end' wait_for no_processes
ok 'root has removed nothing that the configuration named' precious
# shellcheck disable=SC2046
kill $(processes evil)
wait_for sh -c '! pgrep -f "$1/evil"' - "$tmp"
as_user rm -rf "$state"

# --- the shared memory ---

# Another mount, root's: its connection's number is what the user writes over the memory, over offsets and flags as
# well.
other=$tmp/other
mkdir "$other"
ok 'a mount of root' there dealfs mount "$src" "$other"
minor=$(mounts | awk -v path="$other" '$5 == path { split($3, n, ":"); print n[2] }')
ok 'mount' up
server=$(as_user pgrep -u $mount_user -f "dealfs-server $state")
ok 'the user writes over what his server shares with the keeper' as_user python3 -c '
import mmap, os, struct, sys
memory = mmap.mmap(os.open(f"/proc/{sys.argv[1]}/fd/5", os.O_RDWR), 4096)
for at in range(56, 68, 4): # offsets of the lanes; these numbers, once
    memory[at:at + 4] = struct.pack("<I", int(sys.argv[2]))
memory[28:32] = struct.pack("<I", 4) # flags: the server cannot run' "$server" "$minor"
as_user kill -9 "$server" 2>"$tmp/.output" # it may have died of that
ok 'his mount is taken away' wait_for gone
ok 'the other lives' there cmp "$src/class0/000.bin" "$other/class0/000.bin"
ok 'and answers' there dealfs verify "$other"
as_user ln -s "$other" "$tmp/user/link"
as_user ln -s "$tmp" "$tmp/user/up"
for link in link up/other; do
    one_line "root does not follow a link of the user's to another mount: $link" "symlink .* of user $mount_user" \
        there dealfs umount "$tmp/user/$link"
done
ok 'the other is still there' there cmp "$src/class0/000.bin" "$other/class0/000.bin"
ln -s user/../other "$tmp/roots"
ok 'root unmounts it through a link of its own' there dealfs umount "$tmp/roots"
ok 'all processes end' wait_for no_processes

# --- the way to the mountpoint ---

as_user sh -c 'mv "$1/place" "$1/away" && ln -s "$2" "$1/place"' - "$tmp/user" "$victim"
one_line 'mount does not follow a link of the user'\''s to what is not his' "$victim/mnt" there \
    dealfs mount -o "owner=$mount_user,state=$state" "$src" "$mnt"
ok 'nothing was mounted there' precious
as_user sh -c 'rm "$1/place" && mv "$1/away" "$1/place"' - "$tmp/user"

# --- a keeper of his own making ---

ok 'mount' up
own=$tmp/user/own # has no mounter: root reads the memory of all that may be its keeper
ok 'a mount by the user' as_user sh -c 'mkdir "$1" && dealfs mount -o "state=$1.state" "$2" "$1"' - "$own" "$src"
as_user mkdir "$tmp/user/fake"
as_user mkfifo "$tmp/user/fake/config"
cp "$(command -v tail)" "$tmp/user/fake/dealfs-keeper"
# shellcheck disable=SC2016
background as_user bash -c 'exec 13<>"$1/config" && exec "$1/dealfs-keeper" /dev/null -f' - "$tmp/user/fake"
fake() { grep -qx dealfs-keeper "/proc/$(processes user/fake/dealfs-keeper)/comm"; } # it runs, and has its descriptors
ok 'a process that looks like a keeper' wait_for fake
ok 'and has a pipe for a configuration stops nobody' there dealfs status "$mnt"
there dealfs status "$own" >"$tmp/.output" 2>&1
like 'nor root, who looks at both' $? '^[0-4]$'
pipe=$(processes user/fake)
kill "$pipe"
wait_for has_ended "$pipe"
background as_user python3 -c '
import fcntl, os, sys
memory = os.memfd_create("config", os.MFD_ALLOW_SEALING)
os.truncate(memory, 1 << 30)
fcntl.fcntl(memory, 1033, 15) # F_ADD_SEALS: all
os.dup2(memory, 13)
os.execv(sys.argv[1], [sys.argv[1], "/dev/null", "-f"])' "$tmp/user/fake/dealfs-keeper"
ok 'one that has a GiB of sealed memory, all of it a hole' wait_for fake
ok 'does not make root fill it' there dealfs status "$mnt"
there dealfs status "$own" >/dev/null 2>&1
is 'it has no memory still' "$(stat -L -c '%s %b' "/proc/$(processes user/fake/dealfs-keeper)/fd/13")" "$((1 << 30)) 0"
kill "$(processes user/fake)"
ok 'umount' as_user dealfs umount "$own"
ok 'umount' down

# --- his mounter ---

# A descriptor whose close() waits for a server that is stopped.
ok 'mount, without a feeder, which closes files' \
    there dealfs mount -o "owner=$mount_user,state=$state,feed=off" "$src" "$mnt"
ok 'a descriptor that cannot be closed does not stop the mounter' as_user python3 -c '
import ctypes, os, signal, socket, struct, sys
keeper, server, mnt = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
pidfd_getfd, libc = 438, ctypes.CDLL(None)
mounter = socket.socket(fileno=libc.syscall(pidfd_getfd, os.pidfd_open(keeper), 19, 0))
def ask(*fds):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(mounter, [struct.pack("IIQ4096x", 0, 0, 0)], [theirs.fileno(), *fds])
    assert ours.recv(4096)
file = os.open(mnt + "/class0/000.bin", os.O_RDONLY) # the first one to be closed, which FLUSH is for
os.kill(server, signal.SIGSTOP)
try:
    ask(file)
    ask() # it is there for the next one
finally:
    os.kill(server, signal.SIGCONT)
' "$(pid_of keeper)" "$(pid_of server)" "$mnt"

mapfile -t all < <(processes dealfs- | while read -r pid; do [ "$(stat -c %u "/proc/$pid")" = 0 ] || echo "$pid"; done)
kill_at_once "${all[@]}"
ok 'all processes of the user are killed at once: the mount goes' wait_for gone
mounter_is_gone() { [ -z "$(pid_of mounter)" ]; }
ok 'and so does the mounter' wait_for mounter_is_gone

background there dealfs mount -f -o "owner=$mount_user,state=$state" "$src" "$mnt" >"$tmp/.output" 2>&1
ok 'a mount in the foreground' wait_for serves
background strace -q -p "$(pid_of mounter)" -e inject=umount2:error=EPERM -o "$tmp/trace" 2>"$tmp/.attached"
ok 'whose mounter may not unmount' wait_for grep -q 'TracerPid:.[1-9]' "/proc/$(pid_of mounter)/status"
pkill -INT -f "dealfs mount -f .*$state"
ok 'its user unmounts it' wait_for gone
ok 'the mounter had failed' grep -q 'umount2.*EPERM.*INJECTED' "$tmp/trace"
ok 'all processes end' wait_for no_processes

# --- what his mounter gives him ---

ok 'mount without RAM' there dealfs mount -o "owner=$mount_user,state=$state,ram=0" "$src" "$mnt"
is 'the user gets no tmpfs, and no protection for a process that is no keeper' "$(as_user python3 -c '
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None)
mounter = socket.socket(fileno=libc.syscall(438, os.pidfd_open(int(sys.argv[1])), 19, 0)) # pidfd_getfd
def ask(verb, number):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(mounter, [struct.pack("IIQ4096x", verb, 0, number)], [theirs.fileno()])
    return struct.unpack("i", ours.recv(4096)[:4])[0]
print(ask(2, 1 << 50))
print(ask(5, 0))
mounter.send(b"kk") # as a keeper announces itself
print(ask(5, 0))
print(ask(0, 0))
print(open("/proc/self/oom_score_adj").read())' "$(pid_of keeper)" 2>&1 | tr '\n' ' ')" \
    "-22 -1 -1 0 $(cat /proc/self/oom_score_adj)  "
if sh -c 'echo -500 >/proc/self/oom_score_adj' 2>"$tmp/.output"; then
    score() { cat "/proc/$(pid_of keeper)/oom_score_adj"; }
    is 'a keeper is protected' "$(score)" -500
    before=$(pid_of keeper)
    kill -9 "$before"
    follows() { keeper=$(pid_of keeper) && [ -n "$keeper" ] && [ "$keeper" != "$before" ]; }
    ok 'it is killed: another one follows' wait_for follows
    is 'which is protected' "$(score)" -500
else
    skip 3 'root may not protect processes in this container'
fi
ok 'umount' down

# Processes with a keeper's name and, in the place of its configuration, a file whose close() waits for a server that is
# stopped.
ok 'mount' up
as_user mkdir "$tmp/user/hung" "$tmp/user/fakes"
cp "$(command -v tail)" "$tmp/user/fakes/dealfs-keeper"
DEALFS_PATIENCE=3600 ok 'the user mounts' \
    as_user dealfs mount -o "state=$tmp/user/hung.state,ram=8M" "$src" "$tmp/user/hung"
server=$(as_user pgrep -u $mount_user -f "dealfs-server $tmp/user/hung.state")
background as_user python3 -c '
import os, subprocess, sys
at = 0
while at < 12:
    at = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(os.open(sys.argv[2], os.O_RDONLY), True) # 13, and never closed before
words = [sys.argv[1] + "/dealfs-keeper", sys.argv[1], "-f", "/dev/null"]
fakes = [subprocess.Popen(words, close_fds=False, stderr=subprocess.DEVNULL) for i in range(4)]
for fake in fakes:
    fake.wait()' "$tmp/user/fakes" "$tmp/user/hung/class0/000.bin"
all_ready() {
    [ "$(processes user/fakes/dealfs-keeper | while read -r pid; do cat "/proc/$pid/comm"; done |
        grep -cx dealfs-keeper)" = 4 ]
}
ok 'four fakes' wait_for all_ready
kill -STOP "$server"
ok 'they do not hold up root' there dealfs status "$mnt"
ok 'the server for which their close() waits is stopped still' is_in "$server" T
kill -CONT "$server"
# shellcheck disable=SC2046
kill $(processes user/fakes/dealfs-keeper)
ok 'umount' down
ok 'and that of the user' as_user dealfs umount "$tmp/user/hung"

# --- pictures, which root verifies ---

cp "$top_builddir/dealfs-resizer" "$tmp/bin"
images=$tmp/images
"$top_builddir/tests/fs/image/pictures" make "$images" 3
chmod -R go+rX "$images"
ok 'mount pictures' there dealfs mount -o "owner=$mount_user,state=$tmp/user/images,resize=64,ram=8M" "$images" "$mnt"
ok 'root verifies them' there dealfs verify "$mnt"
export DEALFS_IMAGE_PATIENCE=3600
DEALFS_IMAGE_FAULT="hang=$(stat -c %s "$images/good001.jpg")" background there dealfs verify "$mnt" 2>"$tmp/verify.said"
ok 'one hangs in a decoder' wait_for grep -q 'it hangs' "$tmp/verify.said"
verify=$(processes 'dealfs verify' |
    while read -r pid; do ! pgrep -P "$pid" dealfs-resizer >/dev/null || echo "$pid"; done)
of_workers() { pgrep -P "$verify" dealfs-resizer | while read -r pid; do grep "^$1:" "/proc/$pid/status"; done; }
is 'whose process is the user' "$(of_workers Uid | tr -s '\t' ' ' | sort -u)" \
    "Uid: $mount_user $mount_user $mount_user $mount_user"
kill "$verify"
ok 'root gives it up' wait_for test ! -e "/proc/$verify"
like 'and says so' "$(cat "$tmp/verify.said")" 'verify .*: interrupted'
ok 'umount' down
nothing_left
done_testing
