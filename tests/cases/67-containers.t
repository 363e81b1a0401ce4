#!/bin/bash
# Containers: an image by etc/packaging/Containerfile; a mount made in one container and read in another; a container
# that is killed, and the next one; one without privileges, for which `dealfs mounter` mounts; `dealfs run` in one
# without privileges.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require podman crun mmdebstrap
[ -n "${TEST_NAMESPACE-}" ] || plan_skip 'a mount namespace of its own cannot be made'
[ -f "$top_builddir/Makefile" ] || plan_skip 'this build has no Makefile to install from'
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'this build has no courier'

# crun refuses the mixed cgroups of older machines, even where it makes none. An ordinary user may open our /dev/fuse.
[ ! -d /sys/fs/cgroup/unified ] || mount -t cgroup2 none /sys/fs/cgroup
mkdir "$tmp"/{dev,src,share,mnt,image}
fuse_for_all() {
    mount -t tmpfs -o mode=755 tmpfs "$tmp/dev" && mknod "$tmp/dev/fuse" c 10 229 && chmod 666 "$tmp/dev/fuse" &&
        mount --bind "$tmp/dev/fuse" /dev/fuse
}
fuse_for_all || plan_skip 'no device can be made'
mount --bind "$tmp/share" "$tmp/share" && mount --make-shared "$tmp/share"
src=$tmp/src share=$tmp/share
make_files "$src" 12 100000
chmod -R a+rX "$src"
chmod 777 "$tmp/mnt"

pod() {
    podman --root "$tmp/store" --runroot "$tmp/run" --storage-driver vfs --cgroup-manager cgroupfs \
        --events-backend none --runtime crun "$@"
}
limits=(--ulimit nofile=1024:1024 --ulimit nproc=1024:1024)
contain() { # podman's options, image, words
    pod run --network none --cgroups disabled "${limits[@]}" -v "$src:/data:ro" "$@"
}
at_exit pod rm --all --force --time 0

# Those of the libraries have other names in each release.
mapfile -t libraries < <(ldd "$top_builddir/dealfs-server" "$top_builddir/dealfs-resizer" | grep -oE '/[^ ]+' |
    xargs realpath | sed 'p; s,^/usr,,' | xargs dpkg -S 2>/dev/null | sed 's/:.*//' | sort -u)
packages=(bash coreutils diffutils fuse3 mount "${libraries[@]}")
installed() { # packages: these, and what they depend on
    apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances "$@" | grep '^[a-z]' | sort -u |
        xargs dpkg-query -f '${db:Status-Abbrev} ${Package}\n' -W 2>/dev/null | sed -n 's/^ii  *//p'
}
# mmdebstrap 1.5 makes all mounts of its namespace private, and $share must stay shared.
make_base() { # from Debian's mirror; if that does not answer in time, from the packages that are installed here
    local base=$tmp/base file
    if ! timeout 100 unshare -m mmdebstrap --quiet --variant=extract --mode=root --format=directory \
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "--include=${packages[*]}" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$base"; then
        diag 'mmdebstrap failed'
        rm -rf "$base" # what it had made
        mkdir -p "$base/usr/"{bin,sbin,lib,lib64} && ln -s usr/{bin,sbin,lib,lib64} "$base" || return
        while read -r file; do
            [ -d "$file" ] || cp --parents -d "$file" "$base" || return
        done < <(installed "${packages[@]}" | xargs dpkg -L | grep '^/' | grep -v /share/)
    fi
    rm -rf "${base:?}"/{usr/share,var} "$base"/usr/lib/*/{gconv,perl*} # each container copies all of it
    ln -sf bash "$base/usr/bin/sh" && mkdir -p "$base"/{mnt,tmp} && chmod 1777 "$base/tmp" &&
        tar -c -C "$base" . >"$tmp/base.tar"
}
ok 'a base' make_base
ok 'is imported' pod import "$tmp/base.tar" localhost/base
ok 'dealfs is installed into a folder' make -C "$top_builddir" -s install "DESTDIR=$tmp/image/root"
ok 'an image is built' pod build --isolation chroot "${limits[@]}" --layers=false --build-arg BASE=localhost/base \
    --build-arg PACKAGES= -f "$top_srcdir/etc/packaging/Containerfile" -t localhost/dealfs "$tmp/image"

# --- a mount for other containers ---
mounter() {
    contain -d --name mounter --privileged -v "$share:/share:rshared" localhost/dealfs \
        mount -f -o ram=16M,state=/tmp/state /data /share/data
}
is_up() { mounted "$share/data" && [ -e "$share/data/.dealfs/status" ]; }
reader() {
    contain -d --name reader -v "$share:/share:rslave" --entrypoint /usr/bin/sleep localhost/dealfs infinity
}
reads_all() { pod exec reader diff -r -x .dealfs /data /share/data; }
mkdir "$share/data"
ok 'a privileged container mounts' mounter
ok 'which others see' wait_for is_up
ok 'another container' reader
ok 'reads all of it' reads_all
is 'by the same program' "$(pod exec reader dealfs --version)" "$(dealfs --version)"
ok 'the first container is killed' pod kill mounter
ok 'and removed' pod rm --force --time 0 mounter
ok 'the next one mounts at the same place' mounter
ok 'which others see' wait_for is_up
ok 'the other container reads all of it' reads_all
ok 'it is stopped in order' pod stop --time 3600 mounter
fails 'and nothing is mounted' mounted "$share/data"

# --- for a container without privileges or the device ---
socket_up() { [ -S "$tmp/mnt/sock" ]; }
client() {
    contain -d --name client --cap-drop all --security-opt no-new-privileges --user 1000:1000 \
        -v "$tmp/mnt:/run/dealfs" -v "$share:/share:rslave" localhost/dealfs \
        mount -f -o mounter=/run/dealfs/sock,ram=16M,state=/tmp/state /data /share/data
}
ok 'a mounter' contain -d --replace --name mounter --privileged -v "$tmp/mnt:/run/dealfs" -v "$share:/share:rshared" \
    localhost/dealfs mounter -o allow_other /run/dealfs/sock 1000:1000 /share/data
ok 'listens' wait_for socket_up
ok 'a container without capabilities and without /dev/fuse' client
ok 'mounts' wait_for is_up
fails 'it has no device' pod exec client /usr/bin/test -e /dev/fuse
ok 'it reads all of it' pod exec client diff -r -x .dealfs /data /share/data
ok 'and so does another container' reads_all
unmounted() { ! mounted "$share/data"; }
ok 'it is killed' pod kill client
ok 'and nothing is mounted' wait_for unmounted
pod rm --force --time 0 client >"$tmp/.output"
ok 'the next one' client
ok 'mounts' wait_for is_up
ok 'and is read' reads_all
ok 'it is stopped in order' pod stop --time 3600 client
ok 'and nothing is mounted' wait_for unmounted
ok 'the mounter is stopped in order' pod stop --time 3600 mounter
is 'with status 0' "$(pod inspect --format '{{.State.ExitCode}}' mounter)" 0

# --- without privileges ---
unprivileged() {
    contain --rm --cap-drop all --security-opt no-new-privileges --user 1000:1000 -v "$tmp/mnt:/mnt" "$@" \
        localhost/dealfs run -o ram=16M,state=/tmp/state /data /mnt -- /usr/bin/diff -r -x .dealfs /data /mnt
}
ok 'dealfs run in a container without any capability' unprivileged --device /dev/fuse
fails 'it needs the device' unprivileged
like 'and says so' "$(cat "$tmp/.output")" 'open /dev/fuse: No such file or directory.*--device /dev/fuse'
pod rm --all --force --time 0 >/dev/null 2>&1
pod rmi --all --force >/dev/null 2>&1
umount -l "$share" /dev/fuse "$tmp/dev"
nothing_left
done_testing
