#!/bin/bash
# What people do with a directory of data: every tool works over the mount, and nothing can be written.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require rsync tar
src=$tmp/src mnt=$tmp/mnt
make_source "$src"
head -c 3000000 /dev/urandom >"$src/dogs/large.bin"
mkdir -p "$src/deep/$(printf 'd/%.0s' {1..60})"
echo deep >"$src/deep/$(printf 'd/%.0s' {1..60})leaf"
mkdir "$src/readonly" && echo x >"$src/readonly/file" && chmod 555 "$src/readonly"
ok 'mount' mount_up "$src" "$mnt"

listing() {
    (cd "$1" && LC_ALL=C ls -lR --time-style=full-iso -I .dealfs | grep -v '^total' |
        sed -E 's/^(d[^ ]+) +[0-9]+ ([^ ]+ [^ ]+) +[0-9]+/\1 \2/')
}
is 'ls -lR' "$(listing "$mnt")" "$(listing "$src")"
finding() { (cd "$1" && find . -type "$2" -printf '%p %m %s %u %g %T@ %l\n' | LC_ALL=C sort); }
is 'find files' "$(finding "$mnt" f)" "$(finding "$src" f)"
is 'find symlinks' "$(finding "$mnt" l)" "$(finding "$src" l)"
is 'find -samefile' "$(cd "$mnt" && find . -samefile ./cats/1.bin)" ./cats/1.bin
is 'du --apparent-size of files' "$(cd "$mnt" && find . -type f -print0 | du -cb --files0-from=- | tail -1)" \
    "$(cd "$src" && find . -type f -print0 | du -cb --files0-from=- | tail -1)"
ok 'grep -r' grep -rq 'hello from' "$mnt/tools"
is 'a glob' "$(cd "$mnt" && echo cats/4*)" "$(cd "$src" && echo cats/4*)"

ok 'rsync -a' rsync -a "$mnt/" "$tmp/rsync/"
same_files 'copies everything' "$src" "$tmp/rsync"
is 'rsync -ac of it has nothing to do' "$(rsync -aci --omit-dir-times --omit-link-times "$mnt/" "$tmp/rsync/")" ''
ok 'cp -a' cp -a "$mnt" "$tmp/cp"
same 'copies everything' "$src" "$tmp/cp"
ok 'tar' tar -C "$mnt" --format=posix -cf "$tmp/tar.tar" .
mkdir "$tmp/tar"
ok 'untar' tar -C "$tmp/tar" -xpf "$tmp/tar.tar"
same 'has everything' "$src" "$tmp/tar"
for file in 0 1 4095 131071 131072 131073 1048577 4194305; do
    ok "cmp of $file bytes" cmp "$src/cats/$file.bin" "$mnt/cats/$file.bin"
done
is 'readlink' "$(readlink "$mnt/dogs/link")" 1.txt
is 'through a symlink' "$(md5sum <"$mnt/dogs/directory/4097.bin")" "$(md5sum <"$src/cats/4097.bin")"
fails 'through a dangling one' cat "$mnt/dangling"
is 'a program is executed' "$("$mnt/tools/hello")" 'hello from the mount'

# --- kinds of reading ---
drop_cache "$mnt"/cats/*.bin
is 'O_DIRECT' \
    "$(dd if="$mnt/cats/4194305.bin" iflag=direct bs=64K status=none | md5sum)" "$(md5sum <"$src/cats/4194305.bin")"
is 'O_DIRECT from the middle' \
    "$(dd if="$mnt/cats/4194305.bin" iflag=direct bs=4096 skip=100 count=50 status=none | md5sum)" \
    "$(dd if="$src/cats/4194305.bin" bs=4096 skip=100 count=50 status=none | md5sum)"
is 'one byte a read' "$(dd if="$mnt/cats/4097.bin" bs=1 status=none | md5sum)" "$(md5sum <"$src/cats/4097.bin")"
drop_cache "$mnt"/cats/*.bin "$mnt/dogs/large.bin"
cat >"$tmp/kinds.py" <<'END'
import mmap, os, random, socket, sys, threading
src, mnt = sys.argv[1:3]
for name in ('cats/1.bin', 'cats/4097.bin', 'cats/1048577.bin', 'cats/4194305.bin', 'dogs/large.bin'):
    want = open(f'{src}/{name}', 'rb').read()
    fd = os.open(f'{mnt}/{name}', os.O_RDONLY)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
        order = list(range(0, len(want), 4096))
        random.Random(1).shuffle(order)
        assert all(m[at:at + 4096] == want[at:at + 4096] for at in order), f'mmap {name}'
    with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE) as m:
        m[0:1] = b'!'
        assert m[1:] == want[1:], f'private mmap {name}'
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    a, b = socket.socketpair()
    got = bytearray()
    def take():
        while chunk := b.recv(1 << 16):
            got.extend(chunk)
    thread = threading.Thread(target=take)
    thread.start()
    at = 0
    while at < len(want):
        at += os.sendfile(a.fileno(), fd, at, len(want) - at)
    a.close()
    thread.join()
    assert got == want, f'sendfile {name}'
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for at in random.Random(2).sample(range(len(want) + 5), min(200, len(want))):
        assert os.pread(fd, 5000, at) == want[at:at + 5000], f'pread {name} {at}'
    assert os.preadv(fd, [bytearray(10), bytearray(100)], 0) == min(110, len(want))
    assert os.lseek(fd, 0, os.SEEK_END) == len(want)
    os.close(fd)
END
ok 'mmap, sendfile, pread' python3 "$tmp/kinds.py" "$src" "$mnt"

# --- statfs ---
is 'df knows the type' "$(df --output=fstype "$mnt" | tail -1)" fuse.dealfs
is 'df: nothing is free' "$(df --output=avail "$mnt" | tail -1 | tr -d ' ')" 0
ok 'stat -f' stat -f "$mnt"
is 'one block size' "$(stat -f -c %s "$mnt")" "$(stat -f -c %S "$mnt")"
size=$(value "$mnt" catalog.bytes)
used=$(df -B1 --output=used "$mnt" | tail -1)
ok "df: $used bytes are used, of $size" test $((used >= size && used < size + 1000000)) = 1

# --- writing ---
cat >"$tmp/writes.py" <<'END'
import errno, os, sys
mnt = sys.argv[1]
file = f'{mnt}/cats/4096.bin'
tries = {
    'open for writing': lambda: os.open(file, os.O_WRONLY),
    'open for both': lambda: os.open(file, os.O_RDWR),
    'open with O_TRUNC': lambda: os.open(file, os.O_RDONLY | os.O_TRUNC),
    'create': lambda: os.open(f'{mnt}/cats/new', os.O_WRONLY | os.O_CREAT),
    'truncate': lambda: os.truncate(file, 0),
    'unlink': lambda: os.unlink(file),
    'rename': lambda: os.rename(file, f'{mnt}/cats/new'),
    'mkdir': lambda: os.mkdir(f'{mnt}/new'),
    'rmdir': lambda: os.rmdir(f'{mnt}/empty'),
    'symlink': lambda: os.symlink('x', f'{mnt}/new'),
    'link': lambda: os.link(file, f'{mnt}/new'),
    'mkfifo': lambda: os.mkfifo(f'{mnt}/new'),
    'chmod': lambda: os.chmod(file, 0o600),
    'chown': lambda: os.chown(file, 1, 1),
    'utimes': lambda: os.utime(file, (1, 1)),
    'setxattr': lambda: os.setxattr(file, 'user.x', b'x'),
}
wrong = []
for name, attempt in tries.items():
    try:
        attempt()
        wrong.append(f'{name} worked')
    except OSError as e:
        if e.errno != errno.EROFS:
            wrong.append(f'{name}: {e}')
print('\n'.join(wrong))
sys.exit(bool(wrong))
END
ok 'every kind of writing is EROFS' python3 "$tmp/writes.py" "$mnt"
same 'the mount is the source still' "$src" "$mnt"
is 'no read has failed' "$(value "$mnt" errors)" '{}'
ok 'unmount' dealfs umount "$mnt"
chmod 755 "$src/readonly" "$tmp"/*/readonly
nothing_left
done_testing
