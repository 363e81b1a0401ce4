#!/bin/bash
# File handles, as an NFS server or a backup program keeps them: of another catalog they are stale, never another
# file's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt
mkdir -p "$src/d" "$mnt"
for i in 2 4 6; do
    echo "file $i" >"$src/d/$i"
done

cat >"$tmp/handle.py" <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * 128)]
def check(result):
    if result < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    return result
handle = Handle(bytes=128)
if sys.argv[1] == "get":
    check(libc.name_to_handle_at(-100, sys.argv[2].encode(), ctypes.byref(handle), ctypes.byref(ctypes.c_int()), 0))
    open(sys.argv[3], "wb").write(bytes(handle))
else:
    ctypes.memmove(ctypes.byref(handle), open(sys.argv[3], "rb").read(), ctypes.sizeof(handle))
    mount = os.open(sys.argv[2], os.O_RDONLY)
    fd = check(libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDONLY))
    name = f"/proc/self/fd/{fd}" # of a file's handle the kernel knows no path
    print(os.read(fd, 100).decode() if os.path.isfile(name) else os.readlink(name).removeprefix(sys.argv[2]))
END
get() { python3 "$tmp/handle.py" get "$mnt/$1" "$tmp/handle.${1//\//_}"; }
by_handle() { python3 "$tmp/handle.py" open "$mnt" "$tmp/handle.${1//\//_}" 2>&1; }
up() { dealfs mount -o ram=1M "$src" "$mnt"; }

ok 'mount' up
ok 'a handle of a file' get d/4
ok 'and of a directory' get d
is 'opens the file' "$(by_handle d/4)" 'file 4'
ok 'unmount' dealfs umount "$mnt"
ok 'mount again' up
is 'of the same dataset it opens the file' "$(by_handle d/4)" 'file 4'
is 'or the directory' "$(by_handle d)" /d
ok 'a server that is killed' kill -9 "$(value "$mnt" pids.server)"
is 'changes nothing' "$(cat "$mnt/d/2"; by_handle d/4)" $'file 2\nfile 4'
ok 'unmount' dealfs umount "$mnt"
echo 'file 3' >"$src/d/3"
mkdir "$src/c"
ok 'mount again with a file and a directory more' up
is 'the handle is stale' "$(by_handle d/4)" 'Stale file handle'
is 'that of the directory, too' "$(by_handle d)" 'Stale file handle'
ok 'the root is one again' get .
is 'and has one that lasts' "$(by_handle .)" ''
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
