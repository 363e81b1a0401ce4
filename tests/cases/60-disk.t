#!/bin/bash
# The SSD's file system goes away under a mount: unmounted, another one in its place, read-only. Nothing is made in what
# is found there then, nothing that is stored goes, and no read fails.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require mkfs.ext4 losetup
src=$tmp/src mnt=$tmp/mnt disk=$tmp/disk
make_files "$src" 40 300000
mkdir "$mnt" "$disk"

loop_of() { # image
    truncate -s 128M "$1"
    mkfs.ext4 -q -F -m 0 "$1" && losetup -f --show "$1"
}
if ! first=$(loop_of "$tmp/first.img") || ! mount "$first" "$disk"; then
    plan_skip 'no disk can be made here'
fi
at_exit losetup -d "$first"
at_exit umount -l "$disk"

not_used() { # what
    like "$1: status says that the tier is not used" "$(dealfs status "$mnt")" \
        'ssd tier is not used until the next mount: its directory is missing, or is not the one of the mount'
    reads "$1: every byte is right" "$src" "$mnt"
}

ok 'mount' dealfs mount -o "ram=0,ssd=$disk" "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
held=$(value "$mnt" ssd.held)
ok "the SSD holds it all: $held" test "$held" -ge 12000000

# --- unmounted ---
umount -l "$disk"
reads 'its disk is unmounted: what is open is read on' "$src" "$mnt"
is 'from there' "$(value "$mnt" source.bytes)" 12000000
restart "$mnt" server
not_used 'after the next start of the server'
is 'nothing was made in the directory below' "$(ls -A "$disk")" ''

# --- another one ---
second=$(loop_of "$tmp/second.img") && at_exit losetup -d "$second" && mount "$second" "$disk"
shard=$(basename "$(python3 -c 'import json,sys; print(open(sys.argv[1]).read().split("ssd_path=")[1].split()[0])' \
    "$(find "$tmp" -path '*/dealfs-*/config' | head -1)")")
mkdir -m 700 "$disk/$shard"
restart "$mnt" server
not_used 'another disk in its place'
is 'nothing was made there' "$(ls -A "$disk/$shard")" ''
umount "$disk"

# --- the right one again ---
mount "$first" "$disk"
restart "$mnt" server
is 'the right disk again: the tier is open' "$(value "$mnt" ssd.state)" open
is 'all is held again' "$(value "$mnt" ssd.held)" "$held"
read_before=$(value "$mnt" source.bytes)
reads 'every byte is right' "$src" "$mnt"
is 'the source is not read' "$(value "$mnt" source.bytes)" "$read_before"

# --- read-only, as its file system becomes by itself where it finds an error ---
head -c 300000 /dev/urandom >"$tmp/new" && mv "$tmp/new" "$src/class0/000.bin"
ok 'unmount' dealfs umount "$mnt"
mount -o remount,errors=remount-ro "$disk"
ok 'mount after a change' dealfs mount -o "ram=0,ssd=$disk" "$src" "$mnt"
if echo 1 2>/dev/null >"/sys/fs/ext4/${first#/dev/}/trigger_fs_error" && ! touch "$disk/new" 2>/dev/null; then
    dealfs stage "$mnt" >"$tmp/.output" 2>&1
    exits 4 'read-only under way: status is degraded' dealfs status "$mnt"
    like 'and says why' "$(dealfs status "$mnt")" 'ssd tier accepts no more data: Read-only file system'
    reads 'every byte is right' "$src" "$mnt"
    restart "$mnt" server
    like 'the next server finds it so' "$(dealfs status "$mnt")" \
        'ssd tier is not used until the next mount: Read-only file system'
    reads 'every byte is still right' "$src" "$mnt"
    ok 'unmount' dealfs umount "$mnt"
    ok 'the disk can be unmounted as well' wait_for umount "$disk"
    # Without a namespace of its own, another one may have been made meanwhile, which has the disk mounted.
    if [ -n "${TEST_NAMESPACE-}" ]; then
        wait_for test ! -e "/sys/fs/ext4/${first#/dev/}"
        mount "$first" "$disk"
        ok 'mount on the disk that is mended' dealfs mount -o "ram=0,ssd=$disk" "$src" "$mnt"
        ok 'status is good' dealfs status "$mnt"
        ok 'and nearly all is held' test "$(value "$mnt" ssd.held)" -ge 11700000
    else
        skip 3 'it has no mount namespace of its own'
    fi
else
    skip 10 'the file system cannot be made to find an error'
fi
mounted "$mnt" && dealfs umount "$mnt"
mounted "$disk" && umount "$disk"
nothing_left
done_testing
