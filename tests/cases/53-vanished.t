#!/bin/bash
# What a mount is made of vanishes: its state directory, what is in that, its processes two at a time, and the command
# while it makes the mount.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require python3 strace
src=$tmp/src mnt=$tmp/mnt state=$tmp/state
make_files "$src" 40 60000
mkdir "$mnt"

up() { dealfs mount -o "state=$state" "$src" "$mnt"; }
pid_of() { value "$mnt" "pids.$1"; }
readers_start() { # they are reading when it returns
    rm -f "$tmp/stop" "$tmp/reads"
    python3 - "$src" "$mnt" "$tmp/stop" "$tmp/reads" >"$tmp/readers" 2>&1 <<'END' &
import os, random, sys
source, mount, stop, count = sys.argv[1:]
names = [os.path.relpath(os.path.join(at, f), source) for at, _, files in os.walk(source) for f in files]
content = {n: open(os.path.join(source, n), 'rb').read() for n in names}
reads = 0
while not os.path.exists(stop):
    name = random.choice(names)
    fd = os.open(os.path.join(mount, name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, 100000, 0) == content[name], name
    assert os.stat(os.path.join(mount, name)).st_size == len(content[name]), name
    os.close(fd)
    reads += 1
    if reads % 20 == 0:
        with open(count, 'a') as f:
            print(reads, file=f)
END
    reader=$!
    tap_pids+=("$reader")
    wait_for more_reads 0
}
more_reads() { [ "$(cat "$tmp/reads" | wc -l)" -gt "$1" ] || has_ended "$reader"; }
readers_end() { # after some more reads
    wait_for more_reads "$(cat "$tmp/reads" | wc -l)"
    : >"$tmp/stop"
    wait "$reader" || { cat "$tmp/readers"; return 1; }
}
health() { value "$mnt" health; }

# --- all of it is gone ---

ok 'mount' up
ok 'its state directory is locked as cleaners respect it' sh -c '! flock -n -x "$1" true' - "$state"
unlike 'nothing is wrong' "$(health)" 'state directory'
readers_start
rm -rf "$state"
like 'that the state directory is gone is said' "$(health)" "state directory $state"
ok 'a server is killed, and another comes' restart "$mnt" server
like 'which says so, too' "$(health)" "state directory $state"
ok 'the keeper is killed, and another comes' restart "$mnt" keeper
ok 'the other keeper starts servers as well' restart "$mnt" server
exits 3 'status finds it, and that something is wrong' dealfs status --json "$mnt"
ok 'its readers have seen nothing' readers_end
ok 'every byte is right' dealfs verify "$mnt"
ok 'umount' dealfs umount "$mnt"
fails 'nobody has made the state directory again' test -e "$state"

# --- damaged, bit by bit and as a whole ---

ok 'mount' up
readers_start
flip() { # a bit in each
    python3 -c '
import os, sys
for path in sys.argv[2:]:
    fd = os.open(path, os.O_RDWR)
    at = int(sys.argv[1]) * os.fstat(fd).st_size // 10
    byte = os.pread(fd, 1, at)[0]
    os.pwrite(fd, bytes([byte ^ 1 << at % 8]), at)' "$@"
}
failures=0
for part in {0..9}; do
    flip "$part" "$state/catalog" "$state/config" && restart "$mnt" server || failures=$((failures + 1))
done
is 'servers come, whatever has become of catalog and configuration' $failures 0
truncate -s 0 "$state/catalog" "$state/config"
ok 'readers go on where the catalog is cut off' dealfs verify "$mnt"
ok 'a server comes' restart "$mnt" server
ok 'a keeper comes' restart "$mnt" keeper
ok 'its readers have seen nothing' readers_end
ok 'umount' dealfs umount "$mnt"
ok 'the next mount begins again' up
ok 'every byte is right' dealfs verify "$mnt"
ok 'umount' dealfs umount "$mnt"
nothing_left

# --- keeper and server in one moment ---

ok 'mount' up
readers_start
together() { # names, in the order of their death
    local first second
    first=$(pid_of "$1") second=$(pid_of "$2")
    kill -9 "$first" "$second" && wait_for replaced "$mnt" "$1" "$first" &&
        wait_for replaced "$mnt" "$2" "$second"
}
failures=0
for _ in 1 2 3 4 5 6; do
    together keeper server && together server keeper || failures=$((failures + 1))
done
is 'keeper and server are killed together, and others come' $failures 0
one_each() { [ "$(for name in keeper server backup; do processes "dealfs-$name" | wc -l; done | xargs)" = '1 1 1' ]; }
ok 'one keeper, one server, and one who waits to be a keeper' wait_for one_each
mkdir "$tmp/mnt2"
like 'the keeper that came is found by those who look for keepers' \
    "$(dealfs mount -o "state=$state" "$src" "$tmp/mnt2" 2>&1)" "by process $(pid_of keeper) [(]dealfs-keeper[)]"
backup=$(processes dealfs-backup)
kill -9 "$backup"
another_backup() { local now; now=$(processes dealfs-backup) && [ -n "$now" ] && [ "$now" != "$backup" ]; }
ok 'another waits when that one is killed' wait_for another_backup
ok 'its readers have seen nothing' readers_end
ok 'umount' dealfs umount "$mnt"
nothing_left

# --- a keeper that cannot look whether the server lives ---

background dealfs mount -f -o "state=$state" "$src" "$mnt" >"$tmp/log" 2>&1
command=$!
ok 'a mount in the foreground' wait_for test -f "$mnt/.dealfs/status"
ok 'one waits to be a keeper' wait_for one_each
server=$(pid_of server) backup=$(processes dealfs-backup)
background strace -qq -p "$backup" -e inject=pidfd_open:error=EMFILE -o "$tmp/trace" 2>"$tmp/.attached"
strace=$!
ok 'which will have no descriptors' wait_for grep -q 'TracerPid:.[1-9]' "/proc/$backup/status"
kill -9 "$(pid_of keeper)"
ok 'it becomes the keeper, and cannot look' wait_for grep -q "look whether server $server lives: Too many" "$tmp/log"
ok 'the mount serves' cmp "$src/class0/000.bin" "$mnt/class0/000.bin"
is 'the server is the same' "$(pid_of server)" "$server"
kill -9 $command
is_unmounted() { ! mounted "$mnt"; }
ok 'it hears that the command has ended, and unmounts' wait_for is_unmounted
kill $strace
ok 'and ends when it can look' wait_for has_ended "$backup"
nothing_left

# --- the command ---

# Whole or gone.
settled() { [ -z "$(processes)" ] || test -f "$mnt/.dealfs/status"; }
whole() {
    mounted "$mnt" && cmp "$src/class0/000.bin" "$mnt/class0/000.bin" && test -f "$mnt/.dealfs/status" &&
        dealfs umount "$mnt"
}
unmounted() { ! mounted "$mnt" && [ -z "$(processes)" ]; }
# One that is whole may be about to go: its keeper has just seen that the command is gone.
whole_or_gone() { whole || { wait_for unmounted && up && dealfs umount "$mnt"; }; }
for ((step = 1; step <= 9; step++)); do
    DEALFS_START_FAULT=$step dealfs mount -o "state=$state" "$src" "$mnt" >"$tmp/.output" 2>&1
    is "the command is killed after its step $step" $? 137
    ok 'it settles' wait_for settled
    ok 'the mount is whole, or gone and can be made' whole_or_gone
done
nothing_left
failures=0
for ((ms = 4; ms < 80; ms += 6)); do
    dealfs mount -o "state=$state" "$src" "$mnt" >"$tmp/.output" 2>&1 &
    command=$!
    sleep "$(printf 0.%03d $ms)"
    kill -9 %% 2>"$tmp/.killed"
    wait $command 2>"$tmp/.killed"
    wait_for settled && whole_or_gone >"$tmp/.output" 2>&1 || failures=$((failures + 1))
done
is 'killed at any moment, the same' $failures 0
nothing_left
done_testing
