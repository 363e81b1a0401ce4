#!/bin/bash
# Ordinary users: mounts by fusermount3, and others kept out of them.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
src=$tmp/user/src mnt=$tmp/user/mnt
make_files "$src" 20 100000
echo secret >"$src/class0/secret"
chmod 600 "$src/class0/secret"
mkdir "$mnt"
chown -R $mount_user:$mount_user "$tmp/user"
chmod 755 "$tmp/user"

# fusermount3 opens /dev/fuse with the rights of its user.
as_user_without_fuse() {
    nsenter -t "$user_namespace" -m chmod 600 /dev/fuse
    as_user "$@"
    set -- $?
    nsenter -t "$user_namespace" -m chmod 666 /dev/fuse
    return "$1"
}
like 'doctor finds a /dev/fuse that the user may not open' "$(as_user_without_fuse dealfs doctor 2>/dev/null)" \
    'problem +open /dev/fuse: Permission denied
 +to do: chmod 666'
one_line 'mount says so before it scans' 'open /dev/fuse: Permission denied. To do: chmod 666' \
    as_user_without_fuse dealfs mount "$src" "$mnt"
ok 'mount by fusermount3' as_user dealfs mount "$src" "$mnt"
# shellcheck disable=SC2016
is 'of the right type' "$(as_user findmnt -no FSTYPE "$mnt")" fuse.dealfs
is 'the server is the user' "$(stat -c %u "/proc/$(processes dealfs-server | head -1)")" $mount_user
is 'so is the keeper' "$(stat -c %u "/proc/$(processes dealfs-keeper | head -1)")" $mount_user
# No process more for the user, when the standby dies.
another_backup() { [ "$(processes dealfs-keeper | wc -l) $(processes dealfs-backup | wc -l)" = '1 1' ]; }
ok 'a keeper has a standby' wait_for another_backup
keeper=$(processes dealfs-keeper) backup=$(processes dealfs-backup)
soft=$(as_user prlimit --pid "$keeper" --nproc --noheadings --output SOFT)
as_user prlimit --pid "$keeper" --nproc=1:
kill -9 "$backup"
ok 'a standby is killed, and there is no room for another' wait_for has_ended "$backup"
as_user prlimit --pid "$keeper" --nproc="$soft:"
ok 'one is made when there is room again' wait_for another_backup
ok 'the user reads' as_user diff -r -x .dealfs "$src" "$mnt"
ok 'the control mount is reached by a symlink' as_user test -L "$mnt/.dealfs"
ok 'its status' as_user dealfs status "$mnt"
seals() { # of its shared memory: nobody can add one
    python3 -c '
import fcntl, glob, os, sys
for path in glob.glob(f"/proc/{sys.argv[1]}/fd/*"):
    if os.readlink(path) == "/memfd:dealfs (deleted)":
        print(fcntl.fcntl(os.open(path, os.O_RDWR), 1034) & 7)' "$1"
}
is 'no seal can be added to the shared memory' "$(seals "$(processes dealfs-server | head -1)")" 7
ok 'its control file' as_user dealfs where "$mnt" class0/000.bin
ok 'stage' as_user dealfs stage "$mnt"
ok 'verify' as_user dealfs verify "$mnt"

fails 'another user: data' as_other cat "$mnt/class0/000.bin"
fails 'another user: the list' as_other ls "$mnt"
fails 'another user: status' as_other cat "$mnt/.dealfs/status"
state=$(echo "$tmp"/user/dealfs-*)
fails 'another user: the state' as_other ls "$state"
fails 'another user: the control mount' as_other ls "$state/control"
is 'the state is the user'\''s alone' "$(stat -c '%u %a' "$state")" "$mount_user 700"
for shard in $(find /dev/shm -maxdepth 1 -user $mount_user -name 'dealfs-*'); do
    is 'the shard is the user'\''s alone' "$(stat -c '%u %a' "$shard")" "$mount_user 700"
    fails 'another user: the shard' as_other ls "$shard"
done
pid=$(processes dealfs-server | head -1)
fails 'another user: the descriptors of the server' as_other ls "/proc/$pid/fd/"
fails 'another user: its memory' as_other cat "/proc/$pid/maps"
fails 'even root is kept out' as_id 0 cat "$mnt/class0/000.bin"
fails 'another user cannot unmount' as_other dealfs umount "$mnt"
unlike 'nor see it among his own' "$(as_other dealfs status --json)" "$mnt\""
ok 'it is still there' as_user cmp "$src/class1/001.bin" "$mnt/class1/001.bin"
# Until another keeper is there, only its server shows that it lives.
backup=$(processes dealfs-backup)
kill -STOP "$backup"
kill -9 "$(processes dealfs-keeper)"
unlike 'root takes it for dead not even without a keeper' "$(as_id 0 dealfs clean -n)" "$mnt"
kill -CONT "$backup"
ok 'the user unmounts' as_user dealfs umount "$mnt"
fails 'it is gone' as_user mountpoint -q "$mnt"
nothing_left

ok 'mount again' as_user dealfs mount "$src" "$mnt"
ok 'fusermount3 -u is enough' as_user fusermount3 -u "$mnt"
nothing_left 'nothing is left by fusermount3 -u'
ok 'and again' as_user dealfs mount "$src" "$mnt"
ok 'fusermount3 -uz' as_user fusermount3 -uz "$mnt"
nothing_left 'nothing is left by fusermount3 -uz'

one_line 'no mountpoint of his own' 'mnt' as_user dealfs mount "$src" "$(mkdir -p "$tmp/mnt" && echo "$tmp/mnt")"
one_line 'allow_other needs /etc/fuse.conf' 'allow_other' as_user dealfs mount -o allow_other "$src" "$mnt"
# shellcheck disable=SC2016
limited() { as_user sh -c 'ulimit "$1" "$2" && shift 2 && exec "$@"' - "$@"; }
one_line 'a limit of open files' 'ulimit -n. is 50; a mount needs 256' limited -n 50 dealfs mount "$src" "$mnt"
one_line 'a limit of the size of files' \
    'ulimit -f. is 500 KiB; a mount needs ' limited -f 1000 dealfs mount "$src" "$mnt"
one_line 'a limit of memory' 'ulimit -v. is 195.3 MiB; a mount needs 4' limited -v 200000 dealfs mount "$src" "$mnt"
one_line 'a limit of the stack' 'ulimit -s. is 256 KiB; ' limited -s 256 dealfs mount "$src" "$mnt"
ok 'one that may be raised' limited -Sn 50 dealfs mount "$src" "$mnt"
ok 'unmount' as_user dealfs umount "$mnt"
is 'a command that is run has its own again' "$(limited -Sn 50 dealfs run "$src" "$mnt" -- sh -c 'ulimit -n')" 50
nothing_left 'nothing is left of what was refused'

# --- root mounts for a user ---
ok 'root mounts for the user' as_id 0 dealfs mount -o owner=$mount_user "$src" "$mnt"
is 'the server is the user' "$(stat -c %u "/proc/$(processes dealfs-server | head -1)")" $mount_user
ok 'the user reads' as_user diff -r -x .dealfs "$src" "$mnt"
is 'the control file is his' "$(as_user stat -c '%u %a' "$mnt/.dealfs/control")" "$mount_user 600"
ok 'and answers him' as_user dealfs where "$mnt" class0/000.bin
fails 'another user may not enter' as_other cat "$mnt/class1/001.bin"
for command in "status $mnt" "wait $mnt" "stage $mnt" "where $mnt class0/000.bin" "verify $mnt" \
    "plan $mnt epoch=0 ranks=1 batch=4 order=natural" "exchange $mnt epoch=1 fraction=0.1"; do
    # shellcheck disable=SC2086
    ok "root works in it as the user: ${command%% *}" as_id 0 dealfs $command
done
like 'root works in it as the user: top' "$(as_id 0 dealfs top --once "$mnt")" "user/mnt +[0-9]"
ok 'root unmounts' as_id 0 dealfs umount "$mnt"
nothing_left
mkdir -m 700 "$tmp/closed"
cp -r "$src" "$tmp/closed/src"
chown -R $mount_user "$tmp/closed"
ok 'allow_other lets others in' as_id 0 dealfs mount -o owner=$mount_user,allow_other "$tmp/closed/src" "$mnt"
ok 'also where a directory above the source does not' as_other cat "$mnt/class1/001.bin"
fails 'but not to what the modes keep from them' as_other cat "$mnt/class0/secret"
ok 'the user reads that' as_user cat "$mnt/class0/secret"
slowest() { as_id 0 "$top_builddir/tests/lib/value" "$mnt" slowest."$1"; }
is 'status, which everybody may read, does not name it' "$(slowest path) $(slowest from)" 'null source'
fails 'nor to control' as_other dealfs where "$mnt" class0/000.bin
ok 'root unmounts' as_id 0 dealfs umount "$mnt"

# --- all its processes are killed, and a thread of the server cannot end ---
ok 'root mounts for the user' as_id 0 env DEALFS_FAULTS=stuck_lookup=stuck DEALFS_MOUNTER_PATIENCE=5 \
    dealfs mount -o "owner=$mount_user,state=$tmp/user/held" "$src" "$mnt"
server=$(processes dealfs-server | head -1)
background as_user stat "$mnt/stuck" >/dev/null 2>&1
ok 'its server asks its own mount' wait_for asks_itself "$server"
mapfile -t all < <(processes "$tmp/user/held" | while read -r pid; do
    [ "$(stat -c %u "/proc/$pid")" = 0 ] || echo "$pid"
done)
kill_at_once "${all[@]}"
is_gone() { ! as_id 0 grep -qF " $mnt " /proc/self/mountinfo; }
ok 'all are killed: dealfs-mounter unmounts' wait_for is_gone
nothing_left
ok 'no thread of the server is left' wait_for no_thread_left "$server"

# --- ACLs, which the mount has not ---
cat >"$tmp/acl.py" <<'END'
"""acl.py FILE TAG:ID:RIGHTS…: a POSIX ACL. Tags: 1 owner, 2 user, 4 the file's group, 8 group, 16 mask, 32 others."""
import os, struct, sys
entries = [tuple(map(int, word.split(':'))) for word in sys.argv[2:]]
os.setxattr(sys.argv[1], 'system.posix_acl_access',
            struct.pack('<I', 2) + b''.join(struct.pack('<HHI', t, r, i % 2**32) for t, i, r in entries))
END
acl() { python3 "$tmp/acl.py" "$@"; }
closed=$tmp/closed/src
mkdir "$closed/folder"
echo >"$closed/"$'c1\302\2332J'
for file in user group plain masked folder/file; do echo "$file" >"$closed/$file"; done
chmod 644 "$closed"/{user,group,plain,masked}
chown -R $mount_user:$mount_user "$closed"
chmod 711 "$tmp/closed"
if acl "$closed/user" 1:-1:6 2:$mount_other:0 4:-1:4 16:-1:4 32:-1:4 2>/dev/null; then
    acl "$closed/group" 1:-1:6 4:-1:4 8:$mount_other:0 16:-1:4 32:-1:4
    acl "$closed/folder" 1:-1:7 2:$mount_other:0 4:-1:5 16:-1:5 32:-1:5
    acl "$closed/masked" 1:-1:6 2:1:4 4:-1:0 16:-1:4 32:-1:4
    ok 'mount with ACLs' as_id 0 dealfs mount -o owner=$mount_user,allow_other "$closed" "$mnt"
    for file in user group folder/file; do
        fails "the source keeps a user from $file" as_other cat "$closed/$file"
        fails 'so does the mount' as_other cat "$mnt/$file"
        ok 'the owner reads it' as_user cmp "$closed/$file" "$mnt/$file"
    done
    ok 'what has none is read' as_other cmp "$closed/plain" "$mnt/plain"
    is "a mask is not the group's right" "$(as_other stat -c %a "$mnt/masked")" 604
    like 'the name of a file steers no terminal' "$(as_id 0 dealfs where "$mnt" $'c1\302\2332J')" 'c1\\u009b2J'
    ok 'verify' as_id 0 dealfs verify "$mnt"
    ok 'unmount' as_id 0 dealfs umount "$mnt"
    acl "$closed/plain" 1:-1:6 2:$mount_other:0 4:-1:4 16:-1:4 32:-1:4
    ok 'mount again' as_id 0 dealfs mount -o owner=$mount_user,allow_other "$closed" "$mnt"
    fails 'an ACL that came later counts' as_other cat "$mnt/plain"
    ok 'unmount' as_id 0 dealfs umount "$mnt"
else
    skip 18 'the file system has no ACLs'
fi
# --- modes that the source reduces while it is mounted ---
reduced=$tmp/closed/reduced
mkdir "$reduced" "$reduced/folder"
for file in read wide folder/cached; do echo "$file" >"$reduced/$file"; done
chmod -R u=rwX,go=rX "$reduced"
chown -R $mount_user:$mount_user "$reduced"
settle "$reduced"
ok 'mount' as_id 0 dealfs mount -o "owner=$mount_user,allow_other,state=$tmp/user/reduced" "$reduced" "$mnt"
mode() { as_other stat -c %a "$mnt/$1"; }
reads() { as_other cat "$mnt/$1" >/dev/null 2>&1; }
denied() { ! reads "$1"; }
is 'modes as in the source' "$(mode read) $(mode wide) $(mode folder)" '644 644 755'
ok 'another user reads' reads folder/cached
chmod 600 "$reduced/read"
chmod 666 "$reduced/wide"
ok 'the first reads after changes of modes' as_user cat "$mnt/read" "$mnt/wide"
fails 'a reduced mode takes effect with them' reads read
is 'no mode grants more than before' "$(mode read) $(mode wide)" '600 644'
ok 'who may read it still does' as_user cmp "$reduced/read" "$mnt/read"
fails 'names of files are shown to nobody else' as_other cat "$mnt/.dealfs/samples"
chmod 700 "$reduced/folder"
ok 'a cached file, whose folder the source closes' wait_for denied folder/cached
is 'the folder shows it' "$(mode folder)" 700
ok 'its user reads it' as_user cmp "$reduced/folder/cached" "$mnt/folder/cached"
chmod 755 "$reduced/folder"
ok 'the folder is opened again' wait_for reads folder/cached
server=$(processes dealfs-server | head -1)
kill -STOP "$server"
chmod 700 "$reduced/folder"
kill -KILL "$server"
ok 'the next server sees it, too' wait_for denied folder/cached
chmod 711 "$reduced/folder"
ok 'and what follows' wait_for reads folder/cached
ok 'unmount' as_id 0 dealfs umount "$mnt"

# --- a keeper that is to unmount, without room for a process ---
ok 'mount' as_user dealfs mount -o "state=$tmp/user/kept" "$src" "$mnt"
keeper=$(processes dealfs-keeper)
as_user prlimit --pid "$keeper" --nproc=1:
as_user kill -USR1 "$keeper"
ok 'it cannot' wait_for grep -q 'dealfs-keeper: fork: ' "$tmp/user/kept/log"
ok 'so the mount is still there' as_user test -e "$mnt/class0/000.bin"
as_user prlimit --pid "$keeper" --nproc="$soft:"
ok 'it can when there is room' wait_for has_ended "$keeper"
fails 'the mount is gone' as_user mountpoint -q "$mnt"
# --- random reads of a mapped file ---
head -c 33554432 /dev/zero >"$src/class0/long"
chmod 644 "$src/class0/long"
settle "$src"
served() {
    as_id "$1" cat "$mnt/.dealfs/status" |
        python3 -c 'import json, sys; print(sum(json.load(sys.stdin)["bytes"].values()))'
}
# The kernel does not wait for all that it reads around a page, so the last of it may be counted late.
are_served() { [ $((read = ($(served "$1") - before) / 20)) -ge "$2" ]; }
mapped_reads() { # USER BYTES: in `read` what is given out for each of 20 pages far from each other, BYTES at least
    before=$(served "$1")
    as_id "$1" python3 -c '
import mmap, os, sys
with open(sys.argv[1], "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    sum(m[i * 0x180000 + 0x80000] for i in range(20))' "$mnt/class0/long"
    wait_for are_served "$@"
}
for who in $mount_user 0; do
    ok 'mount' as_id $who dealfs mount "$src" "$mnt"
    ok 'much is read around' mapped_reads $who 65537
    ok 'unmount' as_id $who dealfs umount "$mnt"
    ok 'mount with readahead=' as_id $who dealfs mount -o readahead=32K "$src" "$mnt"
    ok 'and if little is' mapped_reads $who 4096
    ok "it is $read bytes" test "$read" -le 32768
    ok 'unmount' as_id $who dealfs umount "$mnt"
done
ok 'with owner=' as_id 0 dealfs mount -o readahead=16K,owner=$mount_user "$src" "$mnt"
ok 'less is read around' mapped_reads $mount_user 4096
ok "it is $read bytes" test "$read" -le 16384
ok 'unmount' as_id 0 dealfs umount "$mnt"
for size in 2K 2M 1%; do
    fails "readahead=$size" as_user dealfs mount -o readahead=$size "$src" "$mnt"
done
nothing_left
done_testing
