#!/bin/bash
# The ways to take a mount away, with readers inside, and that none of them leaves anything.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require strace
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 40 200000
mkdir "$mnt"

# Readers that go round until the mount is gone from under them.
cat >"$tmp/reader.py" <<'END'
import glob, os, sys
names = [os.path.relpath(p, sys.argv[1]) for p in glob.glob(sys.argv[1] + '/*/*.bin')]
root = os.open(sys.argv[2], os.O_RDONLY)
want = {n: open(f'{sys.argv[1]}/{n}', 'rb').read() for n in names}
open(sys.argv[3], 'w').close()
while True:
    for n in names:
        try:
            fd = os.open(n, os.O_RDONLY, dir_fd=root)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            got = b''
            while chunk := os.read(fd, 1 << 20):
                got += chunk
            os.close(fd)
        except OSError:
            sys.exit(0)
        if got != want[n]:
            sys.exit(3)
END
readers=()
start_readers() {
    local i
    readers=()
    rm -f "$tmp"/ready.*
    for i in 1 2; do
        background python3 "$tmp/reader.py" "$src" "$mnt" "$tmp/ready.$i"
        readers+=($!)
    done
    wait_for test -e "$tmp/ready.1" -a -e "$tmp/ready.2"
}
end_readers() { # a reader that saw a wrong byte has ended with 3
    local pid wrong=0
    for pid in "${readers[@]}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        [ $? != 3 ] || wrong=1
    done
    return $wrong
}

variant() { # name, whether readers keep it busy, command
    local name=$1 busy=$2
    shift 2
    ok "$name: mount" dealfs mount "$src" "$mnt"
    ok "$name: readers are inside" start_readers
    if [ "$busy" = busy ]; then
        fails "$name: busy while they are" "$@"
        ok "$name: still mounted" mounted "$mnt"
        ok "$name: still working" cmp "$src/class1/001.bin" "$mnt/class1/001.bin"
        # umount -R has taken the inner mount away before it saw that the outer one is busy.
        [ "$name" = 'umount -R' ] || ok "$name: its control mount, too" cat "$mnt/.dealfs/status"
        ok "$name: no wrong byte" end_readers
        ok "$name: then it goes" "$@"
    else
        ok "$name: goes at once" "$@"
        fails "$name: not mounted any more" mounted "$mnt"
        ok "$name: no wrong byte" end_readers
    fi
    fails "$name: no mount" mounted "$mnt"
    nothing_left "$name: nothing is left"
    ok "$name: nor a note of mount(8)'s" no_notes
}
variant 'dealfs umount' busy dealfs umount "$mnt"
variant 'dealfs umount --lazy' lazy dealfs umount --lazy "$mnt"
variant 'umount -R' busy umount -R "$mnt"
variant 'umount -l' lazy umount -l "$mnt"
variant 'fusermount3 -uz' lazy fusermount3 -uz "$mnt"

# A busy unmount names who is inside.
ok 'mount' dealfs mount "$src" "$mnt"
(cd "$mnt" && exec sleep infinity) &
inside=$!
tap_pids+=("$inside")
is_inside() { [ "$(readlink "/proc/$inside/cwd")" = "$mnt" ]; }
wait_for is_inside
one_line 'a busy unmount says who is inside' "in use by .*$inside" dealfs umount "$mnt"
kill $inside
wait $inside 2>/dev/null
ok 'and works when he has left' dealfs umount "$mnt"

# A file that is on its way in a socket is in no process: it keeps the mount busy, and nobody can say who.
cat >"$tmp/sender.py" <<'END'
import array, os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
one, other = socket.socketpair()
file = os.open(sys.argv[1], os.O_RDONLY)
one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file]))])
os.close(file)
print('sent', flush=True)
signal.sigwait([signal.SIGTERM])
END
sent() {
    : >"$tmp/sent" # it has the last one's word
    background python3 "$tmp/sender.py" "$mnt/class1/001.bin" >"$tmp/sent"
    sender=$!
    wait_for grep -q sent "$tmp/sent"
}
ok 'mount' dealfs mount "$src" "$mnt"
ok 'a file in a socket' sent
one_line 'busy, and nobody is seen' 'in use by a process that is not visible: try again' dealfs umount "$mnt"
kill "$sender"
wait "$sender"
ok "and it goes when the socket is gone" dealfs umount "$mnt"
nothing_left
ok 'mount' dealfs mount "$src" "$mnt"
# The sender is killed as soon as umount2 has failed: strace passes each line on. dealfs tries again for one second. A
# machine may need longer for that, so this is repeated.
unmounts_later() {
    sent || return
    strace -f -qq -o "|grep --line-buffered -m 1 EBUSY && kill -9 $sender" -e trace=umount2 dealfs umount "$mnt"
    set -- $?
    kill -9 "$sender"
    wait "$sender" 2>/dev/null
    return "$1"
}
ok 'the first attempt finds it busy; a later one succeeds when the socket is gone' wait_for unmounts_later
nothing_left

# The control file held open by somebody.
ok 'mount' dealfs mount "$src" "$mnt"
exec 7<>"$mnt/.dealfs/control"
ok 'a lazy unmount with the control file open' dealfs umount --lazy "$mnt"
fails 'it is gone' mounted "$mnt"
exec 7>&-
nothing_left

# Another mount takes the place, and the device numbers, of one whose server is still storing what it held.
make_files "$tmp/other" 1 1000
mkdir "$tmp/ssd" "$tmp/ssd-other"
ok 'mount' dealfs mount -o "ram=0,ssd=$tmp/ssd,ssd_size=64M" "$src" "$mnt"
before=$(stat -c %d "$mnt")
slow=$(value "$mnt" pids.server)
keeper=$(value "$mnt" pids.keeper)
kill -STOP "$slow"
ok 'unmounted, while the server is slow' umount -l "$mnt"
ok 'another source is mounted there' dealfs mount -o "ram=0,ssd=$tmp/ssd-other,ssd_size=64M" "$tmp/other" "$mnt"
[ "$(stat -c %d "$mnt")" = "$before" ] || diag 'it has another device number: what follows proves less'
kill -CONT "$slow"
ok 'the first one ends' wait_for has_ended "$keeper"
ok 'the other one stays' mounted "$mnt"
ok 'with its control mount' cat "$mnt/.dealfs/status"
ok 'until it is unmounted' dealfs umount "$mnt"
nothing_left

# -f stays, and Ctrl-C unmounts.
background env --default-signal=INT dealfs mount -f "$src" "$mnt" 2>"$tmp/foreground.log"
foreground=$!
ok 'mount -f comes up' wait_for dealfs wait --timeout 1 "$mnt"
ok 'and stays' kill -0 $foreground
ok 'it can be read' cmp "$src/class1/001.bin" "$mnt/class1/001.bin"
kill -INT $foreground
ok 'Ctrl-C unmounts' wait_for has_ended $foreground
fails 'it is gone' mounted "$mnt"
nothing_left

# --- keeper and command are killed while the mount is attached ---
background strace -f -qq -o /dev/null -e trace=move_mount -e inject=move_mount:delay_enter=1000000000 \
    dealfs mount "$src" "$mnt" >/dev/null 2>&1
tracer=$!
attaching() { putup=$(named dealfs-putup | head -n 1) && [ -n "$putup" ]; }
ok 'a child of the keeper attaches a mount' wait_for attaching
keeper=$(sed -n 's/^PPid:\t//p' "/proc/$putup/status")
is_dead() { [ ! -e "/proc/$1" ] || is_in "$1" Z; }
mapfile -t commands < <(named dealfs)
kill -9 "$keeper" "${commands[@]}"
ok 'they are killed' wait_for is_dead "$keeper"
kill -9 "$tracer" # the child would go on
nothing_left 'nothing is left, and nothing is mounted later'
fails 'nothing is mounted' mounted "$mnt"

# Any user can hold the lock of mount(8)'s notes: then no note is made, and all else works. In a namespace with notes
# of its own, for other tests also mount.
cat >"$tmp/locked.sh" <<'END'
mount -t tmpfs tmpfs /run && mkdir /run/mount && : >/run/mount/utab.lock || exit 99
setpriv --reuid=65534 --regid=65534 --clear-groups flock -F /run/mount/utab.lock sleep infinity &
while flock -n /run/mount/utab.lock true; do sleep 0.02; done
dealfs mount "$1" "$2" && cmp "$1/class1/001.bin" "$2/class1/001.bin" && dealfs umount "$2" &&
    kill -0 $! # it holds the lock
status=$?
kill $!
exit $status
END
ok "while a user holds the lock of mount(8)'s notes, a mount comes and goes" \
    unshare -m bash "$tmp/locked.sh" "$src" "$mnt"

# --- mounts that hang ---
mkdir "$tmp/hung" "$tmp/hung"/{1,2}
cat >"$tmp/hung.sh" <<'END'
mount -t tmpfs tmpfs /run && mkdir /run/mount || exit 99 # notes of mount(8) of its own
for mnt in "$2"/{1,2}; do DEALFS_PATIENCE=3600 dealfs mount "$1" "$mnt" || exit 99; done
for mnt in "$2"/{1,2}; do servers+=("$("$top_builddir/tests/lib/value" "$mnt" pids.server)"); done
kill -STOP "${servers[@]}" || exit 99
seen() { until [ "$(grep -c "$2" "$1")" -ge "$3" ] || ! kill -0 $!; do sleep 0.02; done 2>/dev/null; }
strace -I2 -qq -o "$2/asked" -e trace=clone,?clone3,?fork,kill dealfs status >/dev/null 2>&1 &
seen "$2/asked" '^kill.*SIGKILL' 2 # status goes on to ask each of them for more
kill $! && wait $!
DEALFS_PROBE_PATIENCE=1 strace -qq -o "$2/files" -e trace=clone,?clone3,?fork,kill dealfs status >"$2/shown" 2>&1
strace -f -y -qq -o "$2/ended" -e trace=umount2,openat,write dealfs umount "$2/1" &
seen "$2/ended" '/utab\.lock"' 1
kill -CONT "${servers[@]}"
wait $! && dealfs umount "$2/2"
END
ok 'two mounts that hang are unmounted' unshare -m bash "$tmp/hung.sh" "$src" "$tmp/hung"
order() { sed -nE 's/^kill\(.*, SIGKILL.*/kill/p; s/^(clone|fork).*/start/p' "$tmp/hung/asked" | xargs; }
like 'status asked both before it gave one up' "$(order)" '^(start )+kill kill'
# The last children read the files of the control mounts.
is 'it reads the status of both at the same time' \
    "$(sed -nE 's/^kill\(.*, SIGKILL.*/kill/p; s/^(clone|fork).*/start/p' "$tmp/hung/files" | tail -n 4 | xargs)" \
    'start start kill kill'
is 'and shows both' "$(grep -c ' hangs' "$tmp/hung/shown")" 2
# Its connection is opened while no other mount can have its number, and ended before `umount` waits for the lock of the
# notes.
is 'its connection opened, unmounted, its requests ended, then the notes' "$(sed -n 's:.* umount2(.* = 0$:unmounted:p
    s:.* openat(.*/abort".* = [0-9].*:opened:p; s:.* write([0-9]*<[^>]*/abort>.*:ended:p
    s:.*/utab\.lock".*:notes:p' "$tmp/hung/ended" | uniq | tail -n 4 | xargs)" 'opened unmounted ended notes'
nothing_left

# --- a mount table that cannot be read does not say that nothing is mounted ---
ok 'mount' mount_up "$src" "$mnt"
blind() { # from which reading of the table on, command
    strace -f -qq -o /dev/null -P /proc/self/mountinfo -e trace=openat \
        -e "inject=openat:error=EIO:when=$1+" dealfs "${@:2}"
}
for from in 1 2 3; do
    fails "umount, reading $from fails" blind $from umount "$mnt"
    like 'it says why' "$(cat "$tmp/.output")" 'Input/output error'
    ok 'the mount serves' cmp "$src/class1/001.bin" "$mnt/class1/001.bin"
done
for command in "status $mnt" "where $mnt class1/001.bin" "mount $src $mnt"; do
    # shellcheck disable=SC2086
    fails "$command" blind 1 $command
    like 'it says why' "$(cat "$tmp/.output")" 'Input/output error'
done
is 'nothing is mounted twice' "$(grep -c " $mnt " /proc/self/mountinfo)" 1
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
