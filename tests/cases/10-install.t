#!/bin/bash
# The installed product: mount(8), umount(8) and a line of fstab, and the tree that it is installed from not needed.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require unshare make
[ -f "$top_builddir/Makefile" ] || plan_skip 'this build has no Makefile to install from'
src=$tmp/src mnt=$tmp/mnt dest=$tmp/dest
make_files "$src" 20 100000
mkdir "$mnt"

ok 'make install' make -C "$top_builddir" -s install "DESTDIR=$dest"
bin=$(cd "$dest" && find . -name dealfs -type f -perm -1 | head -1)
ok "the command is installed: $bin" test -n "$bin"
ok 'and knows where the others are' \
    env -u top_builddir PATH=/usr/bin:/bin:/usr/sbin:/sbin "$dest/$bin" mount "$src" "$mnt"
like 'they are the installed ones' "$(readlink "/proc/$(processes dealfs-server | head -1)/exe")" "^$dest/"
same 'the mount is the source' "$src" "$mnt"
is 'the command itself needs no libjpeg' "$(ldd "$dest/$bin" | grep -c libjpeg)" 0
like 'the laboratory, which does, is found' "$("$dest/$bin" simulate imbalance --nodes 4 --batch 2 --steps 10)" '4 +2 '
ok 'unmount' env PATH=/usr/bin:/bin:/usr/sbin:/sbin "$dest/$bin" umount "$mnt"
for page in dealfs-status.1 dealfs-mount.1; do
    ok "man page $page" sh -c 'find "$1" -name "$2*" | grep -q .' sh "$dest" "$page"
done
package=$(dirname "$(find "$dest" -path '*/dealfs/mount.py')")
like 'the Python package is where this Python looks beneath the prefix' "$package" '(dist|site)-packages/dealfs$'
is 'it can be imported' \
    "$(cd / && PYTHONPATH=${package%/*} "${PYTHON:-/usr/bin/python3}" -c 'import dealfs; print(dealfs.__file__)')" \
    "$package/__init__.py"
helper=$(cd "$dest" && find . -name mount.fuse.dealfs | head -1)
ok "the helper of mount(8) is installed: $helper" test -n "$helper"

# mount(8) finds helpers in /sbin only: a private mount namespace in which the installed files stand on / by overlays.
cat >"$tmp/inside" <<'END'
#!/bin/bash
# In the namespace. DEST SRC MNT TMP
dest=$1 src=$2 mnt=$3 tmp=$4
set -e
# /sbin is a symlink into /usr on most systems, so /usr comes first.
for top in usr $(ls "$dest" | grep -vx usr); do
    [ -d "$dest/$top" ] || continue
    real=$(realpath "/$top")
    mkdir -p "$tmp/overlay/$top.upper" "$tmp/overlay/$top.work"
    mount -t overlay -o "lowerdir=$dest/$top:$real,upperdir=$tmp/overlay/$top.upper,workdir=$tmp/overlay/$top.work" \
        overlay "$real"
done
# What mount(8) remembers of mounts also stays in here.
mount -t tmpfs tmpfs /run
mkdir /run/mount
set +e
unset top_builddir
PATH=$PATH_INSTALLED
hash -r
say() { echo "$1"; }
clear() { ! mountpoint -q "$mnt" || dealfs umount --lazy "$mnt"; }
trap clear EXIT
no_keeper() { ! pgrep -f "dealfs-keeper $tmp/"; }
wait_gone() { wait_until $((tap_deadline * 1000000)) no_keeper; }
try() {
    local what=$1
    shift
    if "$@" >"$tmp/inside.out" 2>&1; then
        say "ok $what"
    else
        say "failed $what: $(head -3 "$tmp/inside.out")"
    fi
}
fs() { findmnt -nfo FSTYPE "$mnt"; }
try 'mount -t' mount -t fuse.dealfs "$src" "$mnt" -o ram=32M
try 'type' test "$(fs)" = fuse.dealfs
try 'reads' diff -r -x .dealfs "$src" "$mnt"
try 'Python finds the package' /usr/bin/python3 -c 'import dealfs, sys; dealfs.Mount(sys.argv[1]).status()' "$mnt"
try 'umount' umount "$mnt"
try 'gone' test -z "$(fs)"
clear
try 'nothing runs' wait_gone
try 'mount -t again' mount -t fuse.dealfs "$src" "$mnt"
cd "$mnt"
if umount "$mnt" 2>/dev/null; then say 'failed a busy umount worked'; else say 'ok a busy umount fails'; fi
cd /
try 'umount -l' umount -l "$mnt"
try 'nothing runs' wait_gone
if mount -t fuse.dealfs "$src" "$mnt" -o frobnicate 2>"$tmp/bad"; then
    say 'failed a bad option was taken'
else
    say 'ok a bad option is refused'
fi
try 'by name' grep -q frobnicate "$tmp/bad"
cp /etc/fstab "$tmp/fstab" 2>/dev/null || : >"$tmp/fstab"
echo "$src $mnt fuse.dealfs ro,noauto,_netdev,x-systemd.requires=network.target,ram=32M 0 0" >>"$tmp/fstab"
: >>/etc/fstab
mount --bind "$tmp/fstab" /etc/fstab
try 'fstab: mount' mount "$mnt"
try 'fstab: reads' diff -r -x .dealfs "$src" "$mnt"
try 'fstab: umount' umount "$mnt"
clear
try 'nothing runs' wait_gone
END
chmod +x "$tmp/inside"
mkdir "$tmp/overlay"
mount -t tmpfs tmpfs "$tmp/overlay" || bail_out 'no tmpfs'
at_exit umount -l "$tmp/overlay"
export tap_deadline && export -f wait_until
PATH_INSTALLED=$(dirname "${bin#.}"):/usr/sbin:/usr/bin:/sbin:/bin \
    unshare -m "$tmp/inside" "$dest" "$src" "$mnt" "$tmp" >"$tmp/results" 2>"$tmp/results.err"
while IFS= read -r line; do
    is "mount(8): ${line#* }" "${line%% *}" ok
done <"$tmp/results"
is 'all of it was tried' "$(wc -l <"$tmp/results")" 17 || diag "$(cat "$tmp/results.err")"
ok 'make uninstall' make -C "$top_builddir" -s uninstall "DESTDIR=$dest"
is 'leaves no file' "$(find "$dest" ! -type d | head -3)" ''
fails 'nor the folder of the package' test -e "$package"
umount "$tmp/overlay"
# --- configure on a machine that lacks all libraries ---
mkdir -p "$tmp/bare/fs/base"
cp -r "$top_srcdir"/{configure,build-aux} "$tmp/bare" && touch "$tmp/bare/fs/base/str.h"
lacks_all() {
    (cd "$tmp/bare" && PKG_CONFIG_LIBDIR=/nowhere ./configure MPICC=false ROCKSDB_LIBS=-lnothing JPEG_LIBS=-lnothing)
}
fails 'configure where everything is missing' lacks_all
for package in libfuse3-dev libzstd-dev libxxhash-dev librocksdb-dev libjpeg-dev libopenmpi-dev openmpi-bin; do
    like "names $package" "$(grep 'apt install' "$tmp/.output")" " $package( |\$)"
done
like 'and those of other systems' "$(cat "$tmp/.output")" 'dnf install fuse3-devel .* openmpi-devel'
nothing_left
done_testing
