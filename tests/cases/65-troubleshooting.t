#!/bin/bash
# etc/troubleshooting.md: each message that it quotes is one of the sources' or of the kernel's, each sentence on a
# mount's health is in it, and a test causes each of them: this one those that one node without faults can have.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

messages() { /usr/bin/python3 "$top_srcdir/tests/lib/messages.py" "$top_srcdir" "$1"; }
is 'each message that it quotes exists' "$(messages quoted)" True
is 'each sentence on health is explained' "$(messages health)" True
is 'each message is in a test' "$(messages tested)" True

require_fuse
user_setup
src=$tmp/src mnt=$tmp/mnt state=$tmp/state part=$tmp/part
make_files "$src" 20 1000
mkdir "$mnt" "$part" "$tmp/user/mnt" "$tmp/user/src"
cp "$src/class0"/* "$tmp/user/src"
chown $mount_user:$mount_user "$tmp"/user/{mnt,src}
says() { # 'message' COMMAND…: the command prints it
    local message=$1
    shift
    "$@" >"$tmp/said" 2>&1 </dev/null
    ok "$message" grep -qF -e "$message" "$tmp/said" || diag "$(head -5 "$tmp/said")"
}
healthy_but() { # 'message': a sentence of health, soon
    is_said() { dealfs status "$mnt" | grep -qF -e "$1"; }
    ok "$1" wait_for is_said "$1" || diag "$(dealfs status "$mnt")"
}
up() { dealfs mount -o "state=$state,$1" "$src" "$mnt" >"$tmp/up" 2>&1 || diag "$(cat "$tmp/up")"; }
down() { dealfs umount --lazy "$mnt" >"$tmp/down" 2>&1; }
at_exit down
kill_all() { # stopped before: each would start another one in the place of the one that dies first
    local pids
    for _ in 1 2; do
        mapfile -t pids < <(processes dealfs-keeper; processes dealfs-backup; processes dealfs-server)
        kill -STOP "${pids[@]}"
    done
    kill -9 "${pids[@]}"
}

# --- mounting ---
cp "$top_builddir/dealfs" "$part"
says 'neither beside dealfs nor in ../libexec/dealfs' "$part/dealfs" mount "$src" "$mnt"
cp "$top_builddir"/dealfs-{keeper,server} "$part"
says 'this dealfs was built without Open MPI, and can mount on one node only' \
    "$part/dealfs" launch --hosts a,b "$src" "$mnt" -- true
says 'fusermount3 is not installed: an ordinary user cannot mount' \
    as_user env PATH="$part" dealfs mount "$tmp/user/src" "$tmp/user/mnt"
[ ! -e /etc/fuse.conf ] || nsenter -t "$user_namespace" -m mount --bind /dev/null /etc/fuse.conf
says "only allowed if 'user_allow_other' is set in /etc/fuse.conf" \
    as_user dealfs mount -o allow_other "$tmp/user/src" "$tmp/user/mnt"
says ', and this user may not mount a tmpfs' as_user dealfs mount -o ram=900000G "$tmp/user/src" "$tmp/user/mnt"
says 'make a user namespace: ' as_user unshare -Ur \
    sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec dealfs run "$@"' - "$tmp/user/src" "$tmp/user/mnt" -- true
says 'the limit of open files (ulimit' bash -c 'ulimit -Hn 20; ulimit -n 20; dealfs mount "$@"' - "$src" "$mnt"
background dealfs mount -f -o "state=$state" "$src" "$mnt" >"$tmp/said" 2>&1
foreground=$!
ok 'a mount in the foreground' wait_for says_mounted "$tmp/said"
wait_for value "$mnt" pids.server >/dev/null
kill_all
ok 'it ends when all of its processes are killed' wait_for has_ended "$foreground"
ok 'the mount failed and was removed' grep -q 'the mount failed and was removed' "$tmp/said"

# --- many nodes ---
mkdir "$tmp/programs"
printf '#!/bin/sh\necho "ssh: connect: No route to host" >&2\nexit 255\n' >"$tmp/programs/ssh"
chmod +x "$tmp/programs/ssh"
says 'no agent could be started' \
    env PATH="$tmp/programs:$PATH" "$top_builddir/dealfs" launch --hosts a,b "$src" "$mnt" -- true
says 'it is not in $PATH, and is needed to join the nodes' \
    env PATH="$tmp/programs" "$top_builddir/dealfs" launch --hosts a,b "$src" "$mnt" -- true
says 'scontrol show hostnames: cannot list the nodes of this Slurm job' \
    env PATH="$tmp/programs:/bin" SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[1-2]' SLURM_NNODES=2 SLURM_JOB_NUM_NODES=2 \
    "$top_builddir/dealfs" launch "$src" "$mnt" -- true
up wait_join
says 'not live in time: ' dealfs wait --timeout 0.2 "$mnt"
says 'it waits for its first world' dealfs wait --timeout 0.2 "$mnt"
says 'there is no catalog yet: this node waits for its first world, which brings it' \
    dealfs plan "$mnt" epoch=0 ranks=1 batch=1
background cat "$mnt/class0/000.bin" >/dev/null 2>&1
healthy_but 'requests wait for the first join, the longest for'
down

# --- reads ---
DEALFS_PATIENCE=3600 up ram=16M # a server that is stopped is not replaced
says 'Read-only file system' touch "$mnt/new"
echo new >"$src/class0/later"
says 'No such file or directory' cat "$mnt/class0/later"
echo changed >"$src/class0/000.bin"
says 'Stale file handle' cat "$mnt/class0/000.bin"
healthy_but ' failed: Stale file handle'
server=$(value "$mnt" pids.server)
kill -STOP "$server"
says 'is stopped (by SIGSTOP or the like)' dealfs status "$mnt"
kill -CONT "$server"

# --- plans ---
says 'there is no sample list `none`' dealfs plan "$mnt" epoch=0 ranks=1 batch=1 samples=none
says ': the list has 20 samples' dealfs plan "$mnt" epoch=0 ranks=1 batch=1 count=19
says 'is not known here; the current one is' \
    dealfs plan "$mnt" epoch=0 ranks=1 batch=1 layout=0123456789abcdef0123456789abcdef

# More requests of other users than wait for a worker, while the source hangs.
down
faults=$tmp/faults
set_faults 'hang=*'
DEALFS_SOURCE_FAULTS="file=$faults" up allow_other
cat >"$tmp/crowd.py" <<'END'
import os, sys, threading
def look(path):
    try:
        os.stat(path)
    except OSError:
        pass
for place in range(80):
    threading.Thread(target=look, args=(f'{sys.argv[1]}/.dealfs/decoded/{place + 1}/class0/000.bin.npy',)).start()
END
chmod 755 "$tmp"
background setpriv --reuid=$mount_user --clear-groups python3 "$tmp/crowd.py" "$mnt"
crowded() { grep -qF 'too many requests are waiting: try again' "$mnt/.dealfs/errors"; }
ok 'too many requests are waiting: try again' wait_for crowded
set_faults ''
wait $!

# --- unmounting ---
(cd "$mnt/class0" && exec sleep infinity) &
inside=$!
tap_pids+=("$inside")
is_inside() { [ "$(readlink /proc/$inside/cwd)" = "$mnt/class0" ]; }
wait_for is_inside
says ': in use by sleep' dealfs umount "$mnt"
kill "$inside"
says 'it is the mount of another user (uid 0)' setpriv --reuid=$mount_user --clear-groups dealfs umount "$mnt"

# --- health ---
rm "$state/catalog"
healthy_but "was removed from the state directory $state: the mount works without it"
mv "$state" "$tmp/gone" && rm -r "$tmp/gone"
healthy_but "the state directory $state was removed: "
kill_all
is_dead() { [[ $(ls "$mnt" 2>&1) == *'Transport endpoint is not connected'* ]]; }
ok 'Transport endpoint is not connected' wait_for is_dead
down
PATH=$part:$PATH up ram=16M
dealfs plan "$mnt" epoch=0 ranks=1 batch=1 feed=yes >"$tmp/plan"
healthy_but 'dealfs-feeder is not installed: nothing is read ahead of loaders'
down
mkdir "$tmp/metrics"
up "metrics_file=$tmp/metrics/file"
rm -r "$tmp/metrics"
healthy_but 'the metrics file cannot be written: '
down
nothing_left
done_testing
