#!/bin/bash
# What `dealfs clean` removes, what it keeps unless it is told, and what others may put in its way.
#
# It cleans the whole machine: it gets a mount namespace in which /var/tmp and /dev/shm are empty.
if [ -z "${CLEAN_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
    case ${TMPDIR-} in /var/tmp* | /dev/shm*) export TMPDIR=/tmp ;; esac
    CLEAN_NAMESPACE=1 exec unshare -m bash "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require setpriv script strace
[ -n "${CLEAN_NAMESPACE-}" ] && mount -t tmpfs tmpfs /var/tmp && mount -t tmpfs tmpfs /dev/shm ||
    plan_skip 'no mount namespace'
chmod 1777 /var/tmp /dev/shm
src=$tmp/src mnt=$tmp/mnt ssd=$tmp/ssd
make_files "$src" 20 100000
mkdir "$mnt" "$ssd"
states() { find "$tmp" -mindepth 1 -maxdepth 1 -name 'dealfs-*' | wc -l; }
shards() { find "$ssd" -mindepth 1 -maxdepth 1 -name 'dealfs-*.?' | wc -l; }
clean() { dealfs clean "$@"; }

# --- caches ---
fill() {
    dealfs mount -o "ssd=$ssd,ram=0" "$src" "$mnt" && dealfs stage "$mnt" && dealfs umount "$mnt"
}
ok 'mount with an SSD tier' dealfs mount -o "ssd=$ssd,ram=0" "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
like 'what is mounted is kept' "$(clean --caches --yes)" "kept $tmp/dealfs-.*: its mount is up"
like 'also its shard' "$(clean --ssd "$ssd" --yes)" "kept $ssd/dealfs-.*: in use"
rm "$ssd"/dealfs-*/lock
like 'one whose lock was removed, too' "$(clean --ssd "$ssd" --yes)" "kept $ssd/dealfs-.*: in use"
is 'it is there' "$(shards)" 1
# Only a mount whose connection has ended is removed, not one that cannot be asked.
exec 7<"$mnt"
for inject in statfs:error=EIO statfs:error=ECONNREFUSED clone:error=EAGAIN; do
    for words in clean "mount -o ssd=$ssd,ram=0 $src $mnt" "umount $mnt"; do
        # shellcheck disable=SC2086
        strace -f -o "$tmp/trace" -e inject=$inject dealfs $words >"$tmp/said" 2>&1
        ok "$inject for ${words%% *}" grep -q INJECTED "$tmp/trace"
        ok 'the mount stays' mounted "$mnt"
    done
done
exec 7<&-
ok 'it is still read' diff -r -x .dealfs "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
find "$ssd"/dealfs-* -exec touch -h -d '30 days ago' {} +
touch "$ssd"/dealfs-*/db-*/CURRENT
like 'what RocksDB has just used is young' "$(clean --ssd "$ssd" --older 7d --yes)" "kept $ssd/dealfs-.*: younger"
out=$(clean)
unlike 'clean removes nothing that is warm' "$out" '^removed '
like 'and says how to' "$out" '1 state is kept .* --caches removes it'
is 'the state is there' "$(states)" 1
is 'and the shard' "$(shards)" 1
ok 'mount again' dealfs mount -o "ssd=$ssd,ram=0" "$src" "$mnt"
ok 'read' diff -r -x .dealfs "$src" "$mnt"
is 'all of it from there' "$(value "$mnt" source.samples)" 0
ok 'unmount' dealfs umount "$mnt"
like '--older keeps what is young' "$(clean --older 1h)" "kept $tmp/dealfs-.*: younger"
like 'likewise of shards' "$(clean --ssd "$ssd" --older 1h)" "kept $ssd/dealfs-.*: younger"
is 'both are there' "$(states) $(shards)" '1 1'
like '-n says what would go' "$(clean -n --caches)" "would remove $ssd/dealfs-.*would remove $tmp/dealfs-"
is 'and removes nothing' "$(states) $(shards)" '1 1'

# --- on a terminal it asks ---
answer() { # answer, words
    printf "%s\n" "$1" | script -qec "exec dealfs clean ${*:2}" /dev/null
}
like 'it asks' "$(answer n --caches)" 'Remove 2 caches, .* \[y/N\]'
is 'n: nothing is removed' "$(states) $(shards)" '1 1'
answer '' --caches >/dev/null
is 'nor without an answer' "$(states) $(shards)" '1 1'
unlike 'it does not ask where there is nothing to lose' "$(answer n)" 'y/N'
like 'y' "$(answer y --caches)" 'removed'
is 'they are gone' "$(states) $(shards)" '0 0'
ok 'fill' fill
rm -r "$tmp"/dealfs-*
clean --caches --yes >"$tmp/out"
is 'a shard whose state is gone is not found' "$(shards)" 1
like 'but where it is told to look' "$(clean --ssd "$ssd")" "removed $ssd/dealfs-"
is 'it is gone' "$(shards)" 0
ok 'fill' fill
find "$tmp"/dealfs-* "$ssd" -exec touch -d '-2 days' {} +
clean --older 1d >"$tmp/out"
is '--older removes what is old' "$(states) $(shards)" '0 0'
exits 1 'a directory that is not there' dealfs clean --ssd "$tmp/absent"

# --- a mount whose files were removed ---
ok 'mount' dealfs mount "$src" "$mnt"
rm "$tmp"/dealfs-*.0/{lock,catalog}
touch -d '-1 hour' "$tmp"/dealfs-*.0{,/*}
like 'without its lock and its catalog it is known to be up' "$(clean)" "kept $tmp/dealfs-.*: its mount is up"
mkdir "$tmp/mnt2"
ok 'another mount of the same source' dealfs mount "$src" "$tmp/mnt2"
is 'has a state of its own' "$(states)" 2
ok 'unmount that' dealfs umount "$tmp/mnt2"
ok 'unmount' dealfs umount "$mnt"
clean --caches --yes >"$tmp/out"
rm -rf "$tmp"/dealfs-*

# --- only what is ours ---
mkdir "$tmp/dealfs-notes" "$ssd/dealfs-photos" "$tmp/dealfs-user-0123456789abcdef"
echo precious >"$tmp/dealfs-user-0123456789abcdef/thesis"
ln -s "$src" "$tmp/dealfs-link-0123456789abcdef.0"
ln -s "$src" "$ssd/dealfs-0123456789abcdef.0"
mkdir "$tmp/dealfs-user-0123456789abcdef.1" && : >"$tmp/dealfs-user-0123456789abcdef.1/lock"
touch -d '-1 hour' "$tmp/dealfs-user-0123456789abcdef.1"{/lock,}
like 'a state that was never finished goes' \
    "$(clean --caches --ssd "$ssd" --yes)" "removed $tmp/dealfs-user-0123456789abcdef.1"
ok 'what only has a similar name stays' test -d "$tmp/dealfs-notes" -a -d "$ssd/dealfs-photos"
is 'also where the name is the same' "$(cat "$tmp/dealfs-user-0123456789abcdef/thesis")" precious
ok 'symlinks are not followed' test -f "$src/class0/000.bin"
rm -r "$tmp"/dealfs-{notes,link*,user*} "${ssd:?}"/*
shard=/dev/shm/dealfs-0123456789abcdef.0
mkdir -m 700 $shard $shard/db
touch -d '+1 day' $shard # just made for as long as this takes
like 'a shard in memory that was just made stays' "$(clean)" "kept $shard: just used"
touch -d '-1 hour' $shard $shard/db
background flock $shard tail -f /dev/null "$tmp/out" # a name by which it can be found
holder=$!
locked() { ! flock -n $shard true; }
wait_for locked
like 'one that is locked, too' "$(clean)" "kept $shard: in use"
pkill -P $holder
wait $holder 2>/dev/null
like 'one that nobody has goes' "$(clean)" "removed $shard"

# --- what another user puts in root's way ---
other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
trap_state() { # which file
    local state=/var/tmp/dealfs-nobody-x-0123456789abcdef.$1
    other sh -c 'umask 077; mkdir "$1" && : >"$1/catalog"
        for f in lock config id log; do [ $f = "$2" ] || echo x >"$1/$f"; done' - "$state" "$2"
    other sh -c "$3" - "$state/$2"
    other touch -d '-1 hour' "$state"
}
mkdir "$tmp/victim" && echo precious >"$tmp/victim/file"
trap_state 0 config 'mkfifo "$1"'
trap_state 1 lock 'mkfifo "$1"'
trap_state 2 config 'truncate -s 8T "$1"'
trap_state 3 config "ln -s $tmp/victim/file \"\$1\""
trap_state 4 lock "ln -s $tmp/victim/file \"\$1\""
trap_state 5 config "printf 'source=/\nmountpoint=/\nssd_path=$tmp/victim\n' >\"\$1\""
for name in db lock db/LOCK; do
    shard=/dev/shm/dealfs-0123456789abcdef.${#name}
    other mkdir -m 700 "$shard"
    [[ $name = */* ]] && other mkdir "$shard/${name%/*}"
    other mkfifo "$shard/$name"
    other find "$shard" -exec touch -d '-1 hour' {} +
done
ok 'root cleans, and does not hang' dealfs clean --caches --yes
is 'what lies beyond is as it was' "$(cat "$tmp/victim/file")" precious
is 'the traps are gone' "$(find /var/tmp /dev/shm -name 'dealfs-*')" ''
state=/var/tmp/dealfs-nobody-x-0123456789abcdef.6
other mkdir -m 700 $state
other sh -c ': >"$1/catalog"' - $state
python3 -c '
import os, sys
os.setuid(65534)
os.chdir(sys.argv[1])
for _ in range(60000):
    os.mkdir("d")
    os.chdir("d")' $state
deep=$(ulimit -n "$(ulimit -Hn)" && clean --caches --yes)
like 'directories without end are left' "$deep" "cannot remove $state: directories are nested too deep"
rm -r $state
mkdir -m 755 "$tmp/roots" && mkdir -m 700 "$tmp/roots/dealfs-other" && chown 65534 "$tmp/roots/dealfs-other"
other mkdir -p "$tmp/roots/dealfs-other/dealfs-0123456789abcdef.0/db"
clean --ssd "$tmp/roots" --yes >"$tmp/out"
is "a user's shard in a directory of root's goes" "$(ls "$tmp/roots/dealfs-other")" ''

# --- processes with a keeper's name, of another user's ---
mkdir "$tmp/bin" "$tmp/fake"
cp "$(command -v tail)" "$tmp/bin/dealfs-keeper"
mkfifo "$tmp/fake/config"
chown -R 65534 "$tmp/fake"
truncate -s 1T "$src/large"
fakes=()
ram_of() { value "$mnt" ram.capacity; }
ok 'mount' dealfs mount "$src" "$mnt"
ram=$(ram_of)
ok 'unmount' dealfs umount "$mnt"
# So many that a share that all of them have is small beside what others change on this machine meanwhile. Half of them
# are programs that make their process root's: a link to one can have any name.
mkdir "$tmp/setuid" && cp "$tmp/bin/dealfs-keeper" "$tmp/setuid" && chmod 4755 "$tmp/setuid/dealfs-keeper"
for program in "$tmp"/{bin,setuid}/dealfs-keeper; do
    for _ in {1..32}; do
        background setpriv --reuid=65534 --regid=65534 --clear-groups "$program" "$tmp/fake" -f /dev/null \
            >/dev/null 2>&1
        fakes+=($!)
    done
done
faked() { [ "$(pgrep -cf "^$tmp/(bin|setuid)/dealfs-keeper $tmp/fake")" = 64 ]; }
ok 'fake keepers' wait_for faked
ok 'mount beside them' dealfs mount "$src" "$mnt"
ok "they take nobody's share of RAM: $ram, then $(ram_of)" test "$(ram_of)" -gt $((ram / 16))
ok 'status is not held up by a FIFO of theirs' dealfs status "$mnt"
# Of all mounts of this machine, which may be others' and degraded; that it comes back counts.
status_of_all() { DEALFS_PROBE_PATIENCE=1 dealfs status; [ $? -lt 124 ]; }
ok 'nor is that of all' status_of_all
ok 'unmount' dealfs umount "$mnt"
kill "${fakes[@]}" && wait "${fakes[@]}" 2>/dev/null

# --- Open MPI's, after kill -9 of mpirun ---
host=$(hostname)
session=$tmp/ompi.$host.0
mkdir -p "$session"/pid.{1,999999999}/0 "$session/jf.17"
: >/dev/shm/vader_segment.$host.0.1234.0
: >/dev/shm/vader_segment.$host.0.1234.1
other sh -c ": >/dev/shm/vader_segment.$host.65534.1234.1"
find "$session" /dev/shm -exec touch -d '-1 hour' {} +
background python3 -c '
import mmap, signal, sys
f = open(sys.argv[1], "r+b"); f.truncate(4096)
m = mmap.mmap(f.fileno(), 4096); f.close()
open(sys.argv[2], "w").close(); signal.pause()' /dev/shm/vader_segment.$host.0.1234.0 "$tmp/mapped"
mapper=$!
wait_for test -e "$tmp/mapped"
touch -d '-1 hour' /dev/shm/vader_segment.$host.0.1234.0
like 'clean removes what is of dead processes' "$(clean)" \
    "removed /dev/shm/vader_segment.$host.0.1234.1: left by Open MPI"
is 'what one has mapped stays, and what is not ours' "$(cd /dev/shm && echo vader*)" \
    "vader_segment.$host.0.1234.0 vader_segment.$host.65534.1234.1"
is 'likewise of sessions' "$(ls "$session")" $'jf.17\npid.1'
kill $mapper && wait $mapper 2>/dev/null
rm -f /dev/shm/vader*

# --- places of other users ---
mkdir "$tmp/theirs" && chown 65534 "$tmp/theirs"
ok "mount with another user's TMPDIR" env TMPDIR="$tmp/theirs" dealfs mount -o ram=8M "$src" "$mnt"
state=$(echo /var/tmp/dealfs-*.0)
ok 'the state is in /var/tmp' test -e "$state/id"
is 'not in theirs' "$(ls -A "$tmp/theirs")" ''
ok 'unmount' dealfs umount "$mnt"
rm -r "$state"
mkdir "$state" && mount -t tmpfs -o mode=755 theirs "$state"
ok 'a mount with that name is not used' env TMPDIR=/var/tmp dealfs mount -o ram=8M "$src" "$mnt"
ok 'but the next number' test -e "${state%.0}.1/id"
is 'nothing was put there' "$(ls -A "$state")" ''
ok 'unmount' dealfs umount "$mnt"
unlike 'clean leaves it' "$(clean)" "$state"
ok 'it is there' mounted "$state"
umount "$state"

# --- a user whose name is the number of another one ---
state=/var/tmp/dealfs-theirs-0123456789abcdef
mkdir "$state" && : >"$state/lock"
touch -d '-1 hour' "$state/lock" "$state"
chown -R 65534 "$state"
{ cat /etc/passwd; echo '65534:x:33:33::/:/bin/false'; } >"$tmp/passwd"
mount --bind "$tmp/passwd" /etc/passwd
like 'clean becomes the owner of a folder, not the one with that name' "$(clean)" "removed $state"
fails 'it is gone' test -e "$state"
umount /etc/passwd
nothing_left
done_testing
