#!/bin/bash
# The system calls that a file costs its source: one look per scan, two per load. ACLs are asked for only where other
# users may use the mount, and only if the ctime is not that of the previous scan.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require strace python3
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 8 50000
for file in plain limited; do
    head -c 50000 /dev/urandom >"$src/class1/$file.bin"
    chmod 644 "$src/class1/$file.bin"
done
mkdir "$mnt"

up() { # options
    strace -D -f -y -o "$tmp/trace" dealfs mount -o "ram=16M,state=$tmp/state${1-}" "$src" "$mnt"
}
trace_ended() { ! pgrep -f "strace -D -f -y -o $tmp/trace" >"$tmp/.output"; }
down() { dealfs umount "$mnt" && wait_for trace_ended; }
# The calls whose arguments name the file. Where files have no time of birth, a scan also asks for their handles.
calls() {
    sed -n "s/^[0-9]* *\([a-z0-9_]*\)(.*$1\.bin.*/\1/p" "$tmp/trace" | grep -v name_to_handle_at | tr '\n' ' '
}
mode() { stat -c %a "$mnt/class1/$1.bin"; }

settle "$src"
# --- only the owner uses the mount ---
at_exit dealfs umount "$mnt"
ok 'mount' up
is 'the scan makes one call per file' "$(calls plain)" 'statx '
: >"$tmp/trace"
ok 'a file is read' cmp "$src/class1/plain.bin" "$mnt/class1/plain.bin"
ok 'unmount' down
loaded=$(calls plain)
like 'the load looks before and after the read' "$loaded" '^openat.* statx preadv2? statx close $'
unlike 'and asks for no ACL' "$loaded" xattr
ok 'mount again' up
is 'the next scan makes one call per file' "$(calls plain)" 'statx '
ok 'unmount' down

# --- others also do, and the file system has ACLs ---
if ! python3 - "$src/class1/limited.bin" 2>/dev/null <<'END'; then
import os, struct, sys
entries = (1, 6, -1), (2, 0, 1), (4, 4, -1), (16, 4, -1), (32, 4, -1)  # of user 1 all rights are taken
os.setxattr(sys.argv[1], 'system.posix_acl_access',
            struct.pack('<I', 2) + b''.join(struct.pack('<HHI', t, r, i % 2**32) for t, r, i in entries))
END
    skip 15 'the file system has no ACLs'
    done_testing
    exit
fi
settle "$src"
ok 'mount' up
is 'where others may not use the mount, the mode is that of stat' "$(mode limited)" 644
ok 'verify agrees' dealfs verify "$mnt"
ok 'unmount' down
cp "$tmp/state/catalog" "$tmp/private"
one_line 'a catalog of others that ignores ACLs is refused' 'its scan ignored ACLs, which matter with allow_other' \
    dealfs mount -o "ram=0,allow_other,state=$tmp/other,catalog=$tmp/private" "$src" "$mnt"
ok 'mount with allow_other and the same state, without a scan' up ,rescan=never,allow_other
is 'the ACL counts' "$(mode limited)" 600
is 'each file was asked once' "$(calls plain)" 'statx lgetxattr '
ok 'verify agrees' dealfs verify "$mnt"
ok 'unmount' down
ok 'mount again' up ,allow_other
is 'no file is asked whose ctime is as before' "$(calls plain)" 'statx '
is 'the ACL still counts' "$(mode limited)" 600
ok 'unmount' down
nothing_left
done_testing
