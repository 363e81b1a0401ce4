#!/bin/bash
# A mount namespace that was made while a mount stood has a copy of it. Where mounts propagate the copy goes with the
# mount; where they do not, `dealfs umount` says who keeps it.
if [ -z "${DEALFS_TEST_NAMESPACE-}" ] && [ "$(id -u)" = 0 ]; then
    DEALFS_TEST_NAMESPACE=1 exec unshare --mount --propagation private "$BASH" "$0"
fi
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"
require_root
require_fuse
require unshare

src=$tmp/src mnt=$tmp/mnt other=$tmp/other
mkdir -p "$src" "$mnt" "$other"
echo hello >"$src/x"

holder() { # a namespace of its own, like a container's; ready when $tmp/held is there
    rm -f "$tmp/held"
    background unshare --mount --propagation slave sh -c ': >"$1"; exec sleep infinity' - "$tmp/held"
    holder=$!
    wait_for test -e "$tmp/held" && wait_for grep -qx sleep "/proc/$holder/comm"
}
gone() { [ -z "$(processes dealfs-)" ]; }

ok 'mount' dealfs mount "$src" "$mnt"
holder
exits 1 'a copy of it keeps it' dealfs umount "$mnt"
like 'it says who' "$(cat "$tmp/.output")" "Another mount namespace still uses it: .*sleep \($holder\)"
fails 'it is gone from here all the same' mounted "$mnt"
kill "$holder"
ok 'and ends with the copy' wait_for gone

# As systemd has it.
mount --make-rshared /
ok 'mount, where mounts propagate' dealfs mount "$src" "$mnt"
holder
ok 'no copy keeps it' dealfs umount "$mnt"
ok 'it has ended' wait_for gone
kill "$holder"

ok 'mount again' dealfs mount "$src" "$mnt"
background dealfs run "$src" "$other" -- sleep infinity
ok 'beside a `dealfs run`' wait_for dealfs enter "$other" -- test -e "$other/x"
ok 'which keeps it neither' dealfs umount "$mnt"
fails 'nor lets its own out' mounted "$other"
done_testing
