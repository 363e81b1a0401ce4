#!/bin/bash
# Root's couriers join mounts that wait and are a user's: what they bring is his to read, and leads root nowhere.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
user_setup
cp "$top_builddir"/dealfs-{courier,resizer} "$tmp/bin"
src=$tmp/src
"$top_builddir/tests/fs/image/pictures" make "$src" 3 || bail_out 'no pictures'
chmod -R go+rX "$src"
settle "$src"
world_count=2
waits() { # options
    local i own=owner=$mount_user,state=$tmp/user/way/state
    for i in 0 1; do
        mkdir -p "$tmp/node$i" "$tmp/user/way"
        chown -R "$mount_user:$mount_user" "$tmp/user/way"
        dealfs mount -o "$own$i,wait_join,ram=16M$1" "$src" "$tmp/node$i" || return
    done
}
as_reader() { setpriv --reuid="$mount_user" --regid="$mount_user" --clear-groups "$@"; }
servers_of_user() {
    local pid count=0
    for pid in $(processes dealfs-server); do
        [ "$(stat -c %u "/proc/$pid")" = "$mount_user" ] && count=$((count + 1))
    done
    [ $count = 2 ]
}

for with in '' ',resize=64'; do
    ok "mounts of a user wait${with:+, with resize=}" waits "$with"
    ok 'their servers are his' servers_of_user
    ok 'root joins them' world_join 0 1 || bail_out 'mounts that wait answer nobody'
    [ -n "$with" ] || ok 'all is there' as_reader diff -r -x .dealfs "$src" "$tmp/node1"
    is 'all is his' "$(find "$tmp/user/way" ! -user "$mount_user")" ''
    is 'nothing lies about' "$(find "$tmp/user/way" -name 'catalog.joined*')" ''
    ok 'unmount all' world_umount
    rm -rf "$tmp/user/way"
done

nothing_left
done_testing
