#!/bin/bash
# A source that is mounted again under a mount: a FUSE file system whose processes are killed. Its root is opened again
# where it is the same, and nothing else that may stand at its path is read.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
true=$tmp/true source=$tmp/source mnt=$tmp/mnt
make_files "$true" 24 200000
mkdir "$source" "$mnt"

source_up() { dealfs mount -o "ram=0,state=$tmp/below" "$true" "$source"; }
source_dies() { wait_for kill_below; }
kill_below() { # until none has started another
    local pids
    pids=$(processes "$tmp/below")
    [ -z "$pids" ] || { # shellcheck disable=SC2086
        kill_at_once $pids
        false
    }
}
source_down() { umount -l "$source/.dealfs" "$source" 2>/dev/null || umount -l "$source"; }
readable() { cat "$mnt/$1" >/dev/null 2>&1; }

ok 'a FUSE file system as the source' source_up
ok 'mount' dealfs mount -o ram=0 "$source" "$mnt"
ok 'a file is read' cmp "$true/class0/000.bin" "$mnt/class0/000.bin"

# --- lost ---
source_dies
fails 'its processes are killed: what is not held cannot be read' cat "$mnt/class1/001.bin"
like 'status says that the source is lost' "$(dealfs status "$mnt")" "the source is lost: .*is back at $source"

# --- something else at its path ---
refused() { # what; a read tries the root at most once a second
    fails "$1, with the same files in it: they are not read" readable class1/001.bin
    ok 'and status says so' wait_for said_to_be_another
}
said_to_be_another() {
    readable class1/001.bin
    dealfs status "$mnt" | grep -q 'another directory, which is not read'
}
source_down
cp -a "$true/." "$source"
refused 'its directory'
find "$source" -mindepth 1 -delete
cp -a "$true" "$tmp/decoy"
ok 'a file system of the same type' dealfs mount -o "ram=0,state=$tmp/other" "$tmp/decoy" "$source"
refused 'it'
ok 'it goes' dealfs umount "$source"

# --- the same again ---
ok 'it is mounted again' source_up
ok 'the root is opened again' wait_for readable class1/001.bin
reads 'every byte is right' "$true" "$mnt"
like 'status says that it was lost' "$(dealfs status "$mnt")" 'the source was lost and is back: opened again 1 times'

# --- a server that begins with a dead root ---
source_dies
source_down
ok 'lost and mounted a third time' source_up
ok 'the server is killed and replaced' restart "$mnt" server
reads 'a server that begins with the root of before opens it again' "$true" "$mnt"

ok 'unmount' dealfs umount "$mnt"
ok 'and what is below it' dealfs umount "$source"
nothing_left
done_testing
