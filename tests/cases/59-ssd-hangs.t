#!/bin/bash
# Forty readers of what lies on an SSD that hangs: what is held in memory, names and status are there all the while, the
# readers get their bytes from the source, and the SSD is used again once it answers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
make_files "$src" 200 200000
mkdir "$tmp/ssd"
export DEALFS_SOURCE_FAULTS="on=ssd,file=$faults"
at_exit set_faults ''
set_faults ''
ok 'mount' mount_up -o "ram=16M,ssd=$tmp/ssd,ssd_size=64M" "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
readers_of() { cat /proc/"$1"/task/*/comm | grep -cx data; }
ok 'sixteen threads or more read /dev/fuse' test "$(readers_of "$(value "$mnt" pids.server)")" -ge 16
held_in() {
    (cd "$src" && find . -type f -printf '%P\n') | sort | xargs dealfs where "$mnt" |
        awk -v tier="$1" '$3 == tier { print $4 }'
}
mapfile -t in_ram < <(held_in ram)
mapfile -t on_ssd < <(held_in ssd | head -40)
ok 'some of it lies in memory' test ${#in_ram[@]} -ge 20
is 'and more than forty files on the SSD' ${#on_ssd[@]} 40

cat >"$tmp/read.py" <<'END'
"""Reads files past the page cache, and their attributes."""
import os, sys
src, mnt = sys.argv[1:3]
for name in sys.argv[3:]:
    with open(f'{src}/{name}', 'rb') as f:
        want = f.read()
    fd = os.open(f'{mnt}/{name}', os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    got = os.read(fd, 1 << 20)
    os.close(fd)
    os.stat(f'{mnt}/{name}')
    assert got == want, name
END
all_end() { wait_for has_ended "${readers[@]}" && wait_well; }
wait_well() { local pid; for pid in "${readers[@]}"; do wait "$pid" || return; done; }

before=$(answered "$mnt" ssd)
ok 'the SSD is read from' python3 "$tmp/read.py" "$src" "$mnt" "${on_ssd[@]}"
ok 'as is counted' test $(($(answered "$mnt" ssd) - before)) -ge 8000000

drop_cache "${on_ssd[@]/#/$mnt/}"
set_faults hang
readers=()
for name in "${on_ssd[@]}"; do
    background cmp "$mnt/$name" "$src/$name"
    readers+=($!)
done
ok 'the SSD hangs: what is in memory is read' python3 "$tmp/read.py" "$src" "$mnt" "${in_ram[@]}"
ok 'names and attributes' ls -lR "$mnt"
ok 'status' cat "$mnt/.dealfs/status"
ok 'who reads what is on the SSD gets its bytes' all_end
ok 'from the source' test "$(answered "$mnt" source)" -ge 8000000
ok 'which the log says' grep -q 'bypassed' "$tmp"/dealfs-*/log
drop_cache "${on_ssd[@]/#/$mnt/}"
ok 'later readers do not wait for it' python3 "$tmp/read.py" "$src" "$mnt" "${on_ssd[@]}"
ok 'a server that dies with all this' kill -9 "$(value "$mnt" pids.server)"
ok 'leaves what is in memory readable' python3 "$tmp/read.py" "$src" "$mnt" "${in_ram[@]}"

set_faults ''
used_again() {
    local before
    before=$(answered "$mnt" ssd)
    python3 "$tmp/read.py" "$src" "$mnt" "${on_ssd[@]}" && [ $(($(answered "$mnt" ssd) - before)) -ge 8000000 ]
}
ok 'the SSD answers: it is used again' wait_for used_again
is 'no read has failed' "$(value "$mnt" errors)" '{}'
ok 'unmount' dealfs umount "$mnt"
nothing_left

# One that takes nothing: what would be written to it is read from the source, and not kept.
if [ "$(id -u)" != 0 ] || ! command -v mkfs.ext4 losetup fsfreeze >/dev/null; then
    skip 1 'needs root, mkfs.ext4, losetup and fsfreeze'
    done_testing
fi
mkdir "$tmp/disk"
truncate -s 200M "$tmp/image"
mkfs.ext4 -q -F -m 0 "$tmp/image"
if ! loop=$(losetup -f --show "$tmp/image") || ! at_exit losetup -d "$loop" || ! mount "$loop" "$tmp/disk"; then
    skip 1 'no loop device'
    done_testing
fi
at_exit umount -l "$tmp/disk"
mkdir "$tmp/disk/ssd"
ok 'mount' mount_up -o "ram=16M,ssd=$tmp/disk/ssd,ssd_size=64M" "$src" "$mnt"
at_exit fsfreeze -u "$tmp/disk"
fsfreeze -f "$tmp/disk"
# The load that meets it first waits for it; nobody else does.
(cd "$src" && find . -type f) >"$tmp/names"
# shellcheck disable=SC2016
background xargs -P 40 -a "$tmp/names" -I{} sh -c 'cmp "$1/{}" "$2/{}" && echo' sh "$src" "$mnt" >"$tmp/read"
reading=$!
nearly_all() { [ "$(wc -l <"$tmp/read")" -ge 199 ]; }
ok 'an SSD that takes nothing: all files but one are read' wait_for nearly_all
fsfreeze -u "$tmp/disk"
ok 'and the last one, when it takes something' wait $reading
reads 'it takes something again: all are read' "$src" "$mnt"
is 'no read has failed' "$(value "$mnt" errors)" '{}'
ok 'unmount' dealfs umount "$mnt"
umount "$tmp/disk"
nothing_left
done_testing
