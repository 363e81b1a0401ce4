#!/bin/bash
# Tiers that are full, read-only, removed or damaged: no read fails, and no byte is wrong.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt disk=$tmp/disk
make_files "$src" 300 300000 # 86 MiB, which does not compress
mkdir "$mnt" "$disk"

# A small disk: a file system on a loop device, else a tmpfs.
disk_up() { # MiB
    rm -f "$tmp/disk.img"
    truncate -s "$1M" "$tmp/disk.img"
    if ! mkfs.ext4 -q -F -m 0 "$tmp/disk.img" 2>/dev/null || ! mount -o loop "$tmp/disk.img" "$disk" 2>/dev/null; then
        mount -t tmpfs -o "size=$1M" tmpfs "$disk" || bail_out 'no small disk'
    fi
}
disk_down() { umount "$disk"; }
at_exit umount -l "$disk"
up() { dealfs mount -o "$1" "$src" "$mnt"; }
down() { dealfs umount "$mnt"; }
status_is() { dealfs status "$mnt"; [ $? = "$1" ]; }
ssd_files() { find "$disk" -name '*.sst'; }

# --- both tiers: RAM first, then the SSD, disjoint ---
disk_up 400
ok 'mount with both tiers' up "ram=32M,ssd=$disk"
ok 'stage' dealfs stage "$mnt"
ok 'the RAM tier is used' test "$(value "$mnt" ram.held)" -gt 20000000
ok 'and not more than its budget' test "$(value "$mnt" ram.held)" -le $((32 << 20))
ok 'the rest is on the SSD' test "$(value "$mnt" ssd.held)" -gt 50000000
held=$(($(value "$mnt" ram.held) + $(value "$mnt" ssd.held)))
ok "what is held is the data set, once: $held" test $held -ge 90000000 -a $held -le 95000000
is 'the source was read once' "$(value "$mnt" source.bytes)" 90000000
reads 'all is read' "$src" "$mnt"
is 'from both tiers and not from the source' "$(value "$mnt" source.bytes)" 90000000
ok 'from RAM' test "$(answered "$mnt" ram)" -gt 20000000
ok 'from the SSD' test "$(answered "$mnt" ssd)" -gt 50000000
ssd=$(value "$mnt" ssd.held)
ok 'unmount' down

# --- a remount keeps the SSD's shard ---
ok 'mount again' up "ram=32M,ssd=$disk"
is 'what the SSD held it still holds' "$(value "$mnt" ssd.held)" "$ssd"
ok 'stage: the RAM tier is filled again' dealfs stage "$mnt"
again=$(value "$mnt" source.bytes)
ok "that reads only what is not on the SSD: $again" test "$again" -le $((33 << 20))
reads 'all is read' "$src" "$mnt"
is 'nothing more from the source' "$(value "$mnt" source.bytes)" "$again"
ok 'unmount' down
ok 'mount without a RAM tier' up "ram=0,ssd=$disk"
ok 'stage' dealfs stage "$mnt"
ok 'everything is on the SSD' test "$(value "$mnt" ssd.held)" -ge 90000000
ok 'unmount' down
ok 'mount again' up "ram=0,ssd=$disk"
ok 'stage has nothing to do' dealfs stage "$mnt"
reads 'all is read' "$src" "$mnt"
is 'the source is not read at all' "$(value "$mnt" source.bytes)" 0
ok 'status is good' dealfs status "$mnt"
ok 'unmount' down

# --- one file of the source changes between mounts: only that one is read again ---
replace() { head -c 300000 /dev/urandom >"$tmp/new" && mv "$tmp/new" "$1"; }
replace "$src/class0/000.bin"
ok 'mount after a change' up "ram=0,ssd=$disk"
ok 'stage' dealfs stage "$mnt"
is 'one file is read' "$(value "$mnt" source.bytes)" 300000
reads 'all is as it is now' "$src" "$mnt"
ok 'unmount' down
# Written over in place: its directory's time does not tell.
head -c 300000 /dev/urandom >"$src/class1/001.bin"
ok 'mount with rescan=always' up "ram=0,ssd=$disk,rescan=always"
reads 'all is as it is now' "$src" "$mnt"
is 'one file is read' "$(value "$mnt" source.bytes)" 300000
ok 'unmount' down

# --- bytes are flipped in the SST files ---
flip() { # file, how many
    python3 - "$1" "$2" <<'END'
import os, random, sys
rng = random.Random(1)
with open(sys.argv[1], 'r+b') as f:
    size = os.fstat(f.fileno()).st_size
    for _ in range(int(sys.argv[2])):
        at = rng.randrange(size)
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ (1 << rng.randrange(8))]))
END
}
for file in $(ssd_files); do flip "$file" 20; done
ok 'mount over a damaged shard' up "ram=0,ssd=$disk"
reads 'every byte is right' "$src" "$mnt"
ok 'something was fetched afresh' test "$(value "$mnt" source.bytes)" -gt 0
reads 'and again' "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
ok 'verify' dealfs verify "$mnt"
ok 'unmount' down
for file in $(ssd_files) $(find "$disk" -name 'MANIFEST*' -o -name CURRENT -o -name OPTIONS\*); do
    truncate -s "$(($(stat -c %s "$file") / 2))" "$file"
done
ok 'mount over a shard whose files are cut in half' up "ram=0,ssd=$disk"
reads 'every byte is right' "$src" "$mnt"
ok 'it fills again' dealfs stage "$mnt"
ok 'unmount' down
rm -rf "${disk:?}"/dealfs-*
ok 'mount over a shard that was removed' up "ram=0,ssd=$disk"
reads 'every byte is right' "$src" "$mnt"

# --- removed under a live mount ---
ok 'stage' dealfs stage "$mnt"
rm -rf "${disk:?}"/dealfs-*
reads 'the shard is removed under the mount: every byte is right' "$src" "$mnt"
ok 'unmount' down

# --- the disk fails under a live mount ---
ok 'mount' up "ram=0,ssd=$disk"
find "$mnt/class0" -type f -exec cat {} + >/dev/null
if python3 -c '
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack("I", 2))  # shut the file system down' \
    "$disk" 2>/dev/null; then
    reads 'the disk fails: every byte is right' "$src" "$mnt"
    dealfs stage "$mnt" >/dev/null 2>&1
    ok 'status is degraded' wait_for status_is 4
    reads 'still' "$src" "$mnt"
else
    skip 3 'the disk cannot be made to fail'
fi
ok 'unmount' down
disk_down

# --- read-only ---
disk_up 200
ok 'mount' up "ram=0,ssd=$disk"
ok 'stage' dealfs stage "$mnt"
ok 'unmount' down
mount -o remount,ro "$disk"
one_line 'an SSD directory that is read-only is refused' \
    'Read-only file system' dealfs mount -o "ram=0,ssd=$disk" "$src" "$mnt"
mount -o remount,rw "$disk"
rm -rf "${disk:?}"/dealfs-*

# --- full ---
ok 'mount with an SSD budget that is too small' up "ram=0,ssd=$disk,ssd_size=40M"
ok 'stage' dealfs stage "$mnt"
is 'the budget is what was asked for' "$(value "$mnt" ssd.capacity)" $((40 << 20))
ok 'the tier is filled' test "$(value "$mnt" ssd.held)" -gt $((36 << 20))
ok 'and not above its budget' test "$(value "$mnt" ssd.held)" -le $((40 << 20))
reads 'what has no room is read from the source' "$src" "$mnt"
ok 'a tier that is full is no fault' dealfs status "$mnt"
ok 'unmount' down
rm -rf "${disk:?}"/dealfs-*
ok 'mount with room promised that will not be there' up "ram=0,ssd=$disk,ssd_size=90%"
dd if=/dev/zero of="$disk/others" bs=1M count=$(($(df -BM --output=avail "$disk" | tail -1 |
    tr -dc 0-9) - 30)) status=none
dealfs stage "$mnt" >/dev/null 2>&1
reads 'ENOSPC while it is filled: every byte is right' "$src" "$mnt"
ok 'status is degraded' wait_for status_is 4
like 'and says why' "$(dealfs status "$mnt")" 'ssd tier .*: No space left'
reads 'still' "$src" "$mnt"
ok 'unmount' down
rm -f "$disk/others"
ok 'mount when there is room again' up "ram=0,ssd=$disk,ssd_size=100M"
ok 'stage' dealfs stage "$mnt"
reads 'every byte is right' "$src" "$mnt"
ok 'status is good again' dealfs status "$mnt"
ok 'everything is kept' test "$(value "$mnt" ssd.held)" -ge 90000000
ok 'unmount' down
disk_down

# --- a disk so small that what is not stored yet must be counted ---
disk_up 64
ok 'mount on a very small disk' up "ram=0,ssd=$disk"
ok 'stage' dealfs stage "$mnt"
ok 'something is kept' test "$(value "$mnt" ssd.held)" -gt $((8 << 20))
ok 'the disk is not too small for it' dealfs status "$mnt"
reads 'every byte is right' "$src" "$mnt"
ok 'unmount' down
disk_down

# --- RAM: smaller than the data set, and a tmpfs of others that fills up ---
ok 'mount with a RAM budget that is too small' up ram=16M
ok 'stage' dealfs stage "$mnt"
ok 'it is kept to' test "$(value "$mnt" ram.held)" -le $((16 << 20))
reads 'every byte is right' "$src" "$mnt"
ok 'a tier that is full is no fault' dealfs status "$mnt"
ok 'unmount' down
ok 'mount with verify=once' up ram=64M,verify=once
ok 'stage' dealfs stage "$mnt"
for round in 1 2; do reads "every byte is right, round $round" "$src" "$mnt"; drop_cache "$mnt"/*; done
kill -9 "$(value "$mnt" pids.server)"
reads 'and of the next server' "$src" "$mnt"
is 'the rate of the scrubber' "$(value "$mnt" ram.scrub.rate)" $((1 << 20))
scrubs() { [ "$(value "$mnt" ram.scrub.bytes)" -gt 0 ]; }
ok 'it reads' wait_for scrubs
ok 'unmount' down
one_line 'verify=never is refused' 'option verify=never: must be always or once' \
    dealfs mount -o verify=never "$src" "$mnt"
ok 'mount with no tier at all' up ram=0
reads 'all comes from the source' "$src" "$mnt"
ok 'stage says that nothing is kept' dealfs stage "$mnt"
ok 'unmount' down
nothing_left
done_testing
