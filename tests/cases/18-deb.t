#!/bin/bash
# Debian packages: made, checked, installed, used, upgraded under a live mount, removed; all of it in overlays of this
# system.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require unshare dh dh_python3 dpkg-buildpackage fakeroot lintian
[ -f "$top_builddir/Makefile" ] || plan_skip 'this build has no Makefile to install from'
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'this build has no courier'
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 20 100000
mkdir "$mnt" "$tmp/overlay"

export DEB_BUILD_OPTIONS=noddebs
ok 'packages are made' "$top_srcdir/etc/packaging/make-deb" "$(realpath "$top_srcdir")" "$(realpath "$top_builddir")" \
    "$tmp/deb"
is 'three of them' "$(cd "$tmp/deb" && echo *.deb | sed 's/_[^ ]*//g')" 'dealfs-mpi dealfs python3-dealfs'
version=$(dpkg-deb -f "$tmp"/deb/dealfs_*.deb Version)
# shellcheck source=/dev/null
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_ID-}")
if [ -n "$release" ]; then
    ok "for the next release of Debian they have a newer version than $version" \
        dpkg --compare-versions "$version" lt "${version/+deb$release/+deb$((release + 1))}"
else
    skip 1 'this is no release of Debian'
fi
ok 'lintian finds no error' lintian --allow-root --fail-on error "$tmp/deb"/*.deb
mkdir "$tmp/next"
next() { # the same with another version
    local package
    for package in "$tmp/deb"/*.deb; do
        dpkg-deb -R "$package" "$tmp/next/tree" &&
            sed -i '/^Version: /s/$/.1/; s/\(dealfs (= [^)]*\))/\1.1)/' "$tmp/next/tree/DEBIAN/control" &&
            dpkg-deb -b "$tmp/next/tree" "$tmp/next/$(basename "$package")" &&
            rm -r "$tmp/next/tree" || return
    done
}
ok 'and the next version' next

cat >"$tmp/inside" <<'END'
#!/bin/bash
# In the namespace. SRC MNT TMP
src=$1 mnt=$2 tmp=$3
set -e
mount -t tmpfs tmpfs "$tmp/overlay"
for top in usr var etc; do
    mkdir "$tmp/overlay/$top.upper" "$tmp/overlay/$top.work"
    mount -t overlay -o "lowerdir=/$top,upperdir=$tmp/overlay/$top.upper,workdir=$tmp/overlay/$top.work" overlay "/$top"
done
set +e
unset top_builddir PYTHONPATH
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
trap '! mountpoint -q "$mnt" || dealfs umount --lazy "$mnt"' EXIT
try() {
    local what=$1
    shift
    if "$@" >"$tmp/inside.out" 2>&1; then
        echo "ok $what"
    else
        echo "failed $what: $(tail -3 "$tmp/inside.out")"
    fi
}
same() { diff -r -x .dealfs "$src" "$mnt"; }
program() { readlink "/proc/$(pgrep -f "dealfs-server.* $tmp/" | head -n 1)/exe"; }
within() { wait_until $((tap_deadline * 1000000)) "$@"; }
other_server() { local pid; pid=$(pgrep -f "dealfs-server.* $tmp/" | head -n 1); [ -n "$pid" ] && [ "$pid" != "$1" ]; }
is_installed() { [[ $(program) == /usr/libexec/dealfs/dealfs-server ]]; }
nothing_runs() { [ -z "$(pgrep -f "dealfs-[a-z]* .*$tmp/")" ]; }
files() { find "$tmp/overlay"/*.upper -name '*dealfs*' ! -path '*/var.upper/lib/dpkg/*' ! -path '*/log/*' ! -type c; }
try 'installed' dpkg --install "$tmp"/deb/*.deb
try 'mounted' dealfs mount -o "state=$tmp/state" "$src" "$mnt"
try 'it is the installed server' is_installed
try 'reads' same
try 'Python finds the package' /usr/bin/python3 -c 'import dealfs, sys; dealfs.Mount(sys.argv[1]).status()' "$mnt"
try 'the courier is there' test -x /usr/libexec/dealfs/dealfs-courier
try 'the page is there' test -e /usr/share/man/man1/dealfs-mount.1.gz
exec 5<"$mnt/$(cd "$src" && find . -type f | sort | head -n 1)"
server=$(pgrep -f "dealfs-server.* $tmp/" | head -n 1)
try 'upgraded under a mount' dpkg --install "$tmp"/next/*.deb
try 'reads go on' same
try 'in the same server' test -d "/proc/$server"
kill -9 "$server"
try 'the next server comes' within other_server "$server"
try 'and is the new program' within is_installed
try 'what was open is read' cmp /proc/self/fd/5 "$(find "$src" -type f | sort | head -n 1)"
try 'all is read' same
exec 5<&-
try 'unmounted' dealfs umount "$mnt"
try 'nothing runs' within nothing_runs
try 'removed' dpkg --purge python3-dealfs dealfs-mpi dealfs
try 'no file is left' test -z "$(files)"
END
chmod +x "$tmp/inside"
export tap_deadline && export -f wait_until
unshare -m "$tmp/inside" "$src" "$mnt" "$tmp" >"$tmp/results" 2>"$tmp/results.err"
while IFS= read -r line; do
    is "${line#* }" "${line%% *}" ok
done <"$tmp/results"
is 'all of it was tried' "$(wc -l <"$tmp/results")" "$(grep -c '^try ' "$tmp/inside")" ||
    diag "$(cat "$tmp/results.err")"
nothing_left
done_testing
