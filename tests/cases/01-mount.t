#!/bin/bash
# Mount, look, unmount; and everything that a mount refuses, with one line each.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
make_source "$src"
mkdir "$mnt"

# --- up and down ---
ok 'mount' mount_up "$src" "$mnt"
ok 'it is mounted' mounted "$mnt"
like 'as fuse.dealfs, read-only' "$(findmnt -no FSTYPE,OPTIONS "$mnt" | head -1)" '^fuse\.dealfs +ro'
is 'with the source as its source' "$(findmnt -nfo SOURCE "$mnt")" "$src"
same 'the mount is the source' "$src" "$mnt"
unlike '.dealfs is not listed' "$(ls -A "$mnt")" '\.dealfs'
ok 'but there' test -d "$mnt/.dealfs"
ok 'with a status' grep -q catalog "$mnt/.dealfs/status"
ok 'status' dealfs status "$mnt"
like 'status of all lists it, in one line' "$(dealfs status | grep -F "$mnt ")" \
    "^$mnt   alone   node 0 of 1   ram [0-9.]+ [KMGi]*B of [0-9.]+ [KMGi]*B   good$"
is 'which is all of it' "$(dealfs status | grep -c 'answered')" 0
is 'status --json is the file' "$(dealfs status --json "$mnt" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')" "$(value "$mnt" id)"
is 'it is in the list of all' "$(dealfs status --json | python3 -c '
import json, sys
print(sum(m["mountpoint"] == sys.argv[1] for m in json.load(sys.stdin)))' "$mnt")" 1
ok 'wait' dealfs wait "$mnt"
one_line 'wait for more nodes than there are' '1 of 2 nodes' dealfs wait --nodes 2 --timeout 0.2 "$mnt"
ok 'stage' dealfs stage "$mnt"
ok 'stage again, with nothing to do' dealfs stage "$mnt"
ok 'verify' dealfs verify "$mnt"
ok 'verify with other jobs' dealfs verify --jobs 1 "$mnt"
is 'where' "$(dealfs where "$mnt" cats/1.bin "$mnt/cats/0.bin" "$src/dogs/1.txt" | cut -f2,3)" $'0\tram\n-\t-\n0\tram'
exits 1 'where, of what is no sample' dealfs where "$mnt" cats/1.bin dogs
is 'it says so' "$(dealfs where "$mnt" dogs 2>&1)" \
    $'-\t-\t-\tdogs\ndealfs: dogs: not in the dataset, or not a file'

# --- again ---
one_line 'a mount on a mount' "$mnt: .*is already mounted there" dealfs mount "$src" "$mnt"
ok 'the first one is still there' mounted "$mnt"
mkdir "$tmp/second"
ok 'the same source at a second place' mount_up "$src" "$tmp/second"
same 'it holds the same' "$src" "$tmp/second"
ok 'unmount the second' dealfs umount "$tmp/second"
same 'the first does not care' "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
fails 'it is no longer mounted' mounted "$mnt"
one_line 'unmount what is not mounted' "$mnt" dealfs umount "$mnt"
said_of() { # OPTIONS: what mount says; then it is unmounted
    dealfs mount -o "$1" "$src" "$mnt" 2>&1
    dealfs umount "$mnt"
}
bytes=$(find "$src" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
half=$(said_of "ram=$((bytes / 2))")
like 'mount says which part of the dataset fits' "$half" '; about (4[0-9]|50) % of the dataset fits$'
unlike 'and nothing of a dataset that fits' "$(said_of ram=64M)" ' fits'
like 'a mount without tiers is warned of' "$(said_of ram=0)" 'warning: there is no tier: .* ram=SIZE or ssd=DIR'
like 'as is more RAM than there is' "$(said_of ram=10000G)" 'warning: ram=.* is more than the .* machine or job has'
ok 'mount' mount_up "$src" "$mnt"
digest=$(value "$mnt" catalog.digest)
ok 'unmount' dealfs umount "$mnt"
ok 'mount the dataset with this digest' mount_up -o "digest=$digest" "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
one_line 'but no other' "has the digest $digest, not the expected 0{32}: files were" \
    dealfs mount -o "digest=$(printf '%032d' 0)" "$src" "$mnt"
fails 'nothing is mounted' mounted "$mnt"
one_line 'nor what is no digest' 'digest: must be 32' dealfs mount -o digest=abc "$src" "$mnt"
one_line 'nor with wait_join' 'wait_join and digest' dealfs mount -o "digest=$digest,wait_join" "$src" "$mnt"
one_line 'status of what is not mounted' "$mnt" dealfs status "$mnt"
one_line 'wait for what is not mounted' "$mnt" dealfs wait --timeout 0.1 "$mnt"
one_line 'stage what is not mounted' "$mnt" dealfs stage "$mnt"
one_line 'verify what is not mounted' "$mnt" dealfs verify "$mnt"
one_line 'where in what is not mounted' "$mnt" dealfs where "$mnt" cats
ok 'mount as mount(8) calls it' dealfs "$src" "$mnt" -o x-systemd.requires=a.mount,_netdev,noauto,ro,nofail
ok 'it is mounted' mounted "$mnt"
ok 'unmount' dealfs umount "$mnt"
nothing_left

# --- an empty source ---
mkdir "$tmp/nothing"
ok 'an empty source can be mounted' mount_up "$tmp/nothing" "$mnt"
is 'and is empty' "$(ls -A "$mnt")" ''
is 'no files' "$(value "$mnt" catalog.files)" 0
ok 'stage it' dealfs stage "$mnt"
ok 'verify it' dealfs verify "$mnt"
ok 'unmount' dealfs umount "$mnt"

# --- sources and mountpoints that are refused ---
mkdir -p "$src/inside" "$tmp/around/source"
echo file >"$tmp/file"
one_line 'no mountpoint' 'absent: No such file' dealfs mount "$src" "$tmp/absent"
one_line 'no parent of the mountpoint' 'absent' dealfs mount "$src" "$tmp/absent/mnt"
one_line 'a file as mountpoint' 'file: Not a directory' dealfs mount "$src" "$tmp/file"
one_line 'no source' 'absent: No such file' dealfs mount "$tmp/absent" "$mnt"
one_line 'a file as source' 'file: Not a directory' dealfs mount "$tmp/file" "$mnt"
one_line 'the source on itself' 'is the source itself' dealfs mount "$src" "$src"
mkdir "$tmp/nothing"
one_line 'an empty source over what is not empty' \
    'source .*/nothing: is empty, and would hide' dealfs mount "$tmp/nothing" "$src"
one_line 'the source on itself by another name' 'is the source itself' dealfs mount "$src" "$src/../src/."
one_line 'inside the source' 'inside the source' dealfs mount "$src" "$src/inside"
one_line 'the source inside the mountpoint' 'source inside' dealfs mount "$tmp/around/source" "$tmp/around"
fails 'nothing has been mounted' mounted "$mnt"

# --- options ---
refused() { one_line "refused: -o $1" "$2" dealfs mount -o "$1" "$src" "$mnt"; }
refused frobnicate 'frobnicate'
refused ram=64M,frobnicate=7,ro 'frobnicate'
refused ram=lots 'ram'
refused ram= 'ram'
refused ram 'ram'
refused ssd_size=1G 'ssd_size'
refused "ssd=$tmp/absent" 'absent: No such file'
refused "ssd=$tmp/file" 'file: Not a directory'
refused "ssd=$tmp,ssd_size=-3" 'ssd_size'
refused zstd=99 'zstd'
refused rescan=maybe 'rescan'
refused owner=nosuchuserhere 'nosuchuserhere'
refused source_threads=0 'source_threads'
refused peer_timeout=never 'peer_timeout'
refused nodes=3 'nodes'
refused groups=0 'groups'
refused wait_join,nodes=3 'wait_join'
refused "state=$tmp/file" 'file'
refused "state=/proc/self" '/proc/self'
fails 'nothing has been mounted' mounted "$mnt"

# --- wrong usage ---
usage() { exits 2 "usage: dealfs $*" dealfs "$@"; }
usage
usage frobnicate
usage mount
usage mount "$src"
usage mount "$src" "$mnt" more
usage mount --frob "$src" "$mnt"
usage umount
usage umount --frob "$mnt"
usage status --frob
usage status "$mnt" more
usage wait
usage wait --nodes none "$mnt"
usage wait --timeout
usage stage
usage stage --frob "$mnt"
usage verify --jobs 0 "$mnt"
usage where "$mnt"
usage doctor --frob
usage clean --older yesterday
usage clean more
usage demo more
usage run "$src" "$mnt"
usage enter "$mnt"
like 'it names the option' "$(dealfs clean --frob 2>&1)" '--frob'
for command in mount join umount run enter status top wait stage where verify doctor clean demo; do
    like "$command --help" "$(dealfs $command --help)" "^usage: dealfs $command"
done
nothing_left
done_testing
