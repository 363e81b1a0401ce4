#!/bin/bash
# What looks after mounts: doctor, clean and demo; and dead and hung mounts, which no command waits for.
#
# `clean` cleans the whole machine: it gets a mount namespace in which /var/tmp and /dev/shm are empty.
if [ -z "${CARE_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
    case ${TMPDIR-} in /var/tmp* | /dev/shm*) export TMPDIR=/tmp ;; esac
    CARE_NAMESPACE=1 exec unshare -m bash "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
[ -n "${CARE_NAMESPACE-}" ] && mount -t tmpfs tmpfs /var/tmp && mount -t tmpfs tmpfs /dev/shm ||
    plan_skip 'no mount namespace'
# Copies of other mounts are dead here as soon as they are unmounted where they belong.
findmnt -rno TARGET -t fuse.dealfs,fuse.dealfs-ctl | tac | while read -r copy; do umount -l "$(printf %b "$copy")"; done
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 20 100000
mkdir "$mnt"
servers() { processes dealfs-server; processes dealfs-keeper; processes dealfs-backup; }
quiet() { [ -z "$(servers)" ]; }

# --- doctor ---
like 'doctor looks at /dev/fuse' "$(dealfs doctor 2>&1)" '/dev/fuse'
like 'and at an SSD directory' "$(dealfs doctor "$tmp" 2>&1)" "$tmp has"
exits 1 'one that is not there is a problem' dealfs doctor "$tmp/absent"
like 'with what to do' "$(dealfs doctor "$tmp/absent" 2>/dev/null)" 'to do: '
unlike 'no colours where there is no terminal' "$(dealfs doctor 2>&1)" $'\033'
like 'it looks at the limits of inotify' "$(dealfs doctor 2>&1)" 'inotify'
echo 1 >"$tmp/one"
ok 'where a user may watch one directory' mount --bind "$tmp/one" /proc/sys/fs/inotify/max_user_watches
like 'it warns, and says what to do' "$(dealfs doctor 2>&1)" \
    $'warning  fs.inotify.max_user_watches is 1: [^\n]*\n *to do: set it to 8192'
ok 'take that back' umount /proc/sys/fs/inotify/max_user_watches
# A limit of a user namespace's own: the machine's stay as they are.
without_inotify() { unshare -U -r sh -c 'echo 0 >/proc/sys/user/max_inotify_instances && exec dealfs doctor' 2>&1; }
like 'it warns where no instance can be had' "$(without_inotify)" \
    'warning  make an inotify instance: Too many open files'

# --- a mount that hangs ---
ok 'mount' dealfs mount "$src" "$mnt"
pids=$(servers)
all_stopped() { ! for p in $pids; do cat /proc/"$p"/task/*/status; done | grep '^State:' | grep -qv 'T (stopped)'; }
kill -STOP $pids
at_exit kill -CONT $pids
wait_for all_stopped
# Each waits for some seconds: all of them at once.
ask() { # name, command…
    "${@:2}" >"$tmp/$1.out" 2>"$tmp/$1.err" </dev/null
    echo $? >"$tmp/$1.status"
}
asked=()
ask status dealfs status "$mnt" & asked+=($!)
ask all dealfs status & asked+=($!)
ask wait dealfs wait --timeout 1 "$mnt" & asked+=($!)
ask stage dealfs stage "$mnt" & asked+=($!)
ask verify dealfs verify "$mnt" & asked+=($!)
ask doctor dealfs doctor & asked+=($!)
ask clean dealfs clean -n & asked+=($!)
wait "${asked[@]}"
ok 'no command waits until the mount goes on' all_stopped
refused() { # what, name, regex: it has failed with one line on stderr
    like "$1" "$(cat "$tmp/$2.status" "$tmp/$2.err")" $'^'"${4-1}"$'\n[^\n]*'"$3"$'[^\n]*$'
}
refused 'status of a mount that hangs' status \
    'hangs: its server .* is stopped .*: `kill -CONT [0-9]+ [0-9]+` continues them' 4
is 'status of all' "$(cat "$tmp/all.status")" 4
refused 'wait for it' wait 'hangs'
refused 'stage it' stage "$mnt"
refused 'verify it' verify "$mnt"
like 'doctor finds it' "$(cat "$tmp/doctor.out" "$tmp/doctor.err")" "problem .*$mnt: hangs"
is 'clean leaves it alone' "$(grep -c "would remove $mnt" "$tmp/clean.out")" 0
is 'and ends well' "$(cat "$tmp/clean.status")" 0
kill -CONT $pids
ok 'it goes on' wait_for dealfs status "$mnt"

# --- a mount that is dead ---
pids=$(servers)
kill -STOP $pids # so that neither replaces the other
kill -9 $pids
ok 'all processes are gone' wait_for quiet
like 'the mount is dead' "$(cat "$mnt/class0/000.bin" 2>&1)" 'not connected'
one_line 'status says so' 'dead' dealfs status "$mnt"
exits 4 'which is a fault' dealfs status "$mnt"
like 'doctor finds it' "$(dealfs doctor 2>&1)" "problem .*$mnt: dead"
like 'clean -n says what it would remove' "$(dealfs clean -n)" "would remove $mnt: a mount whose processes had ended"
ok 'and removes nothing' mounted "$mnt"
like 'clean removes it' "$(dealfs clean)" "removed $mnt: "
fails 'it is gone' mounted "$mnt"
ok 'its state, which has a catalog, stays' test -e "$tmp"/dealfs-*/catalog
like 'then there is nothing' "$(dealfs clean | grep -v "^kept")" 'nothing to remove'
nothing_left

# --- demo ---
mkdir "$tmp/it's here"
ok 'demo' env TMPDIR="$tmp/it's here" dealfs demo --keep
if [ -x "$top_builddir/dealfs-courier" ] && command -v mpirun >/dev/null; then
    like 'it does with four nodes' "$(cat "$tmp/.output")" '4 nodes hold'
    like 'the source, read by itself, is slow' "$(cat "$tmp/.output")" 'the source itself .* 100% +0% +0% +0%'
    like 'of a random order each node holds a quarter' \
        "$(cat "$tmp/.output")" 'random order .* 0% +[123][0-9]% +[678][0-9]% +0%'
    like 'of the dealt one nearly all' "$(cat "$tmp/.output")" 'dealt order .* 0% +(100|9[0-9])% +[0-9]% +0%'
    like 'a list is printed where it is announced' "$(cat "$tmp/.output")" $'head -n 5\n\n([0-9]+\n){5}'
    like 'the last lines are the next step' "$(tail -n 8 "$tmp/.output")" \
        'with your own data:.*  dealfs mount /path/to/your'
    # All commands that it shows, in another shell, below a folder whose name needs quotes.
    dir=$(find "$tmp/it's here" -mindepth 1 -maxdepth 1)
    sed -n '/^  export/,/ &$/p' "$tmp/.output" >"$tmp/paste"
    sed -n '/^  dealfs \(stage\|plan\|where\) /p; /^  exec 3<>/p; /^  printf /p' "$tmp/.output" >"$tmp/paste2"
    sed -n '/^  dealfs umount/p; s/^  rm -r .*/  wait; &/p' "$tmp/.output" >"$tmp/paste3"
    is 'it shows each command' "$(cat "$tmp"/paste* | grep -cE '^  (dealfs|mpirun|exec|printf|wait; *rm)')" 8
    # shellcheck disable=SC2016
    ok 'what it shows can be pasted' bash -euc '
        . "$1"; dealfs wait --nodes 4 "$2/node0"; bash -euc ". \"$3\" & wait \$!"; . "$4"' - \
        "$tmp/paste" "$dir" "$tmp/paste2" "$tmp/paste3"
    like 'and the control file answers' "$(tail -n 2 "$tmp/.output")" $'0\t[0-9]\t[a-z-]*\tdisc/0000.jpg'
    ok 'the last one removes the images' test ! -e "$dir"
    rm -rf "$dir"
else
    like 'it says why it does with one node' "$(cat "$tmp/.output")" 'One node only'
    skip 5 'no Open MPI'
fi
mkdir "$tmp/alone" && cp "$top_builddir"/dealfs{,-keeper,-lab,-server} "$tmp/alone"
ok 'demo without Open MPI' "$tmp/alone/dealfs" demo
like 'it says why it does with one node' "$(cat "$tmp/.output")" 'One node only, for .* without Open MPI'
like 'it tells what came from where' "$(cat "$tmp/.output")" 'first epoch .*100%'
like 'then from RAM' "$(cat "$tmp/.output")" 'page cache dropped .* 0% +100%'
is 'nothing of it stays' "$(find "$tmp" -mindepth 1 -maxdepth 1 -name 'dealfs-demo*')" ''
nothing_left 'nothing is left by demo'
ok 'demo --keep' "$tmp/alone/dealfs" demo --keep
kept=$(sed -n 's/^  rm -r //p' "$tmp/.output")
is 'the images stay' "$(find "$kept/pictures" -name '*.jpg' | wc -l)" 600
rm -rf "$kept"
nothing_left 'nothing else is left by demo --keep'
# Without /dev/fuse it ends before it has made anything.
one_line 'demo without /dev/fuse' '/dev/fuse.*To do:' \
    unshare -m sh -c 'mknod "$2" c 10 999 && mount --bind "$2" /dev/fuse && exec "$1" demo' sh "$tmp/alone/dealfs" \
    "$tmp/no-fuse"
is 'it has made nothing' "$(find "$tmp" -mindepth 1 -maxdepth 1 -name 'dealfs-demo*')" ''
makes_images() { compgen -G "$tmp/dealfs-demo*/pictures/*/0050.jpg"; }
is_mounted() { sweep_mounts "$tmp" | grep -q /dealfs-demo; }
mkfifo "$tmp/full"
exec 9<>"$tmp/full"
python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
try:
    while os.write(fd, bytes(4096)):
        pass
except BlockingIOError:
    pass' "$tmp/full"
for when in makes_images is_mounted; do
    # It waits for its reader before it can end.
    env --default-signal=INT dealfs demo >"$tmp/full" 2>"$tmp/demo.log" &
    demo=$!
    tap_pids+=("$demo")
    ok "demo: $when" wait_for $when
    kill -INT $demo
    exec 8<"$tmp/full"
    cat <&8 >/dev/null &
    drain=$!
    wait $demo
    isnt 'Ctrl-C ends it' $? 0
    kill $drain
    wait $drain 2>/dev/null
    exec 8<&-
    is 'nothing of it stays' "$(find "$tmp" -mindepth 1 -maxdepth 1 -name 'dealfs-demo*')" ''
    nothing_left "nothing is left by demo after Ctrl-C: $when"
done
# It waits for a mount command that mpirun has left, one that has mounted and one that has not.
no_mpirun() { ! pgrep -f "^mpirun .*$tmp/dealfs-demo"; }
looks() { [ "$(grep -c /proc/self/mountinfo "$tmp/looks.$step")" -gt 20 ] || has_ended "$demo"; }
if [ -x "$top_builddir/dealfs-courier" ] && command -v mpirun >/dev/null && command -v strace >/dev/null; then
    for step in 12 10; do
        background env --default-signal=INT DEALFS_START_FAULT=-$step dealfs demo >"$tmp/demo.log" 2>&1
        demo=$!
        ok "demo, one mount command of which is stopped after step $step" wait_for mount_stopped
        kill -INT "$demo"
        ok 'mpirun has ended before it' wait_for no_mpirun
        mounts=$(sweep_mounts "$tmp" | grep -c /dealfs-demo)
        ok "that command has made $mounts mounts" test $((mounts > 0)) = $((step > 10))
        background strace -qq -o "$tmp/looks.$step" -e trace=openat -p "$demo"
        ok 'demo looks for mounts' wait_for looks
        ok 'and waits' kill -0 "$demo"
        kill -CONT "$stopped"
        wait "$demo"
        is 'nothing of it stays' "$(find "$tmp" -mindepth 1 -maxdepth 1 -name 'dealfs-demo*')" ''
        nothing_left 'nothing is left by demo whose mount command ended late'
    done
else
    skip 14 'no Open MPI, or no strace'
fi

# --- stage is stopped by Ctrl-C, and goes on from there ---
echo 'hang=class3/*' >"$tmp/faults" # a quarter
make_files "$src" 400 100000
ok 'mount a source that hangs' env DEALFS_SOURCE_FAULTS="file=$tmp/faults" DEALFS_STAGE_PATIENCE=3600 \
    dealfs mount -o ram=128M,source_threads=1 "$src" "$mnt"
env --default-signal=INT dealfs stage "$mnt" >"$tmp/stage.log" 2>&1 &
stage=$!
tap_pids+=("$stage")
some() { [ "$(value "$mnt" stage.files)" -gt 20 ]; }
ok 'staging has begun' wait_for some
kill -INT $stage
wait $stage
is 'Ctrl-C ends it' $? 1
like 'and it says that it can go on' "$(cat "$tmp/stage.log")" 'resumes it'
like 'it is stopped' "$(value "$mnt" stage.state)" 'stopped'
kept=$(value "$mnt" source.samples)
ok "some files are kept: $kept" test "$kept" -lt 400
: >"$tmp/faults.new" && mv "$tmp/faults.new" "$tmp/faults"
ok 'stage again' dealfs stage "$mnt"
is 'every file was read once in all' "$(value "$mnt" source.samples)" 400
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
