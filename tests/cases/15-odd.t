#!/bin/bash
# Odd places: a source, a mountpoint and folders of options with blanks, newlines, commas, backslashes, percent signs
# and bytes that are no UTF-8 in their paths. Odd sources: empty, with parts that may not be read, with a .dealfs.
# And standard descriptors that are closed or full.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
odd=$'a b,c=d\\e\\012\nf\t"g\' $h -o ro #\377\376 %'
src=$tmp/user/src.$odd mnt=$tmp/user/mnt.$odd
# In what dealfs expands a percent sign is doubled; in options a comma and a backslash have a backslash before them.
given=${mnt//%/%%}
option() { local v=${1//%/%%}; v=${v//\\/\\\\}; printf '%s' "${v//,/\\,}"; }

# --- the same with every tool, as root and as a user ---
cat >"$tmp/make.py" <<'END'
import os, sys
src = os.fsencode(sys.argv[1])
names = [b'plain', b' ', b'-rf', b'--help', b'%', b'%h%r%%', b'%0a', b'new\nline', b'\n', b'back\\slash', b'\\n', b'\\',
         b'\r', b'tab\t', b'\xff\xfe', b'a,b=c', b'"', b"'", b'$(x)', b'x' * 255, b'\xc3\xa4' * 127,
         b'\xe2\x80\xae', b'.hidden', b'...', b'~', b'*', b'#', b'\x01\x1b[31m', b'\x7f']
for d in names:
    os.makedirs(src + b'/' + d)
    for n in names:
        with open(src + b'/' + d + b'/' + n, 'wb') as f:
            f.write(b'%d:' % len(n) + d + b'/' + n)
with open(src + b'/in the root\n', 'wb') as f:
    f.write(b'root')
END
python3 "$tmp/make.py" "$src"
mkdir -p "$mnt"
chown -R $mount_user:$mount_user "$tmp/user"

# Every line of `samples` is a path, with newline, carriage return and backslash written as \n, \r and \\.
cat >"$tmp/lists.py" <<'END'
import json, os, re, subprocess, sys
src, mnt = (os.fsencode(a) for a in sys.argv[1:3])
mine = set()
for folder, _, files in os.walk(src):
    mine |= {os.path.relpath(folder + b'/' + f, src) for f in files}
plain = lambda line: re.sub(rb'\\(.)', lambda m: {b'n': b'\n', b'r': b'\r', b'\\': b'\\'}[m[1]], line)
lines = open(mnt + b'/.dealfs/samples', 'rb').read().split(b'\n')
assert lines.pop() == b'', 'samples does not end with a newline'
assert len(lines) == len(mine), f'{len(lines)} lines for {len(mine)} files'
assert {plain(line) for line in lines} == mine, 'samples are not the files'
def where(*paths):
    done = subprocess.run([b'dealfs', b'where', mnt, *paths], capture_output=True)
    assert done.returncode == 0, done
    replies = [line.split(b'\t', 3) for line in done.stdout.split(b'\n')[:-1]]
    assert len(replies) == len(paths), f'{len(replies)} replies to {len(paths)} paths'
    return [int(reply[0]) for reply in replies]
paths = [plain(line) for line in lines]
numbers = list(range(len(paths)))
assert where(*paths) == numbers, 'relative'
assert where(*[src + b'/' + p for p in paths]) == numbers, 'absolute in the source'
assert where(*[mnt + b'/' + p for p in paths]) == numbers, 'absolute in the mount'
def ask(request):
    fd = os.open(mnt + b'/.dealfs/control', os.O_RDWR)
    os.write(fd, request)
    reply = b''
    while chunk := os.read(fd, 1 << 20):
        reply += chunk
    os.close(fd)
    return reply
replies = ask(b'where\n' + b''.join(line + b'\n' for line in lines)).split(b'\n')[:-1]
assert [int(r.split(b'\t', 3)[0]) for r in replies] == numbers, 'by lines'
assert [r.split(b'\t', 3)[3] for r in replies] == lines, 'the paths in the reply'
ask(b'samples name=odd sep=nul\n' + b''.join(p + b'\0' for p in reversed(paths)))
assert open(mnt + b'/.dealfs/samples.d/odd', 'rb').read() == b''.join(
    line + b'\n' for line in reversed(lines)), 'a list'
ask(b'samples name=lines\n' + b''.join(line + b'\n' for line in lines))
assert open(mnt + b'/.dealfs/samples.d/lines', 'rb').read() == b''.join(
    line + b'\n' for line in lines), 'a list by lines'
status = open(mnt + b'/.dealfs/status', 'rb').read()
json.loads(status.decode())  # is UTF-8, whatever the paths are
for name in 'metrics', 'nodes', 'errors':
    open(mnt + b'/.dealfs/' + name.encode(), 'rb').read().decode()
END
# A byte that is no UTF-8 is \u00HH there.
cat >"$tmp/among.py" <<'END'
import json, os, subprocess, sys
mounts = json.loads(subprocess.run(['dealfs', 'status', '--json'], capture_output=True).stdout.decode())
sys.exit(os.fsencode(sys.argv[1]) not in [m['mountpoint'].encode('latin-1', 'replace') for m in mounts])
END
is_mountpoint() { $who mountpoint -q "$mnt"; }
for who in 'as_id 0' as_user; do
    ok "$who: mount" $who dealfs mount "$src" "$given"
    at_exit $who dealfs umount --lazy "$mnt"
    ok "$who: it is there" is_mountpoint
    ok "$who: every name and byte" $who diff -r -x .dealfs "$src" "$mnt"
    is "$who: names as they are" "$($who ls -1A --zero "$mnt" | md5sum)" "$($who ls -1A --zero "$src" | md5sum)"
    ok "$who: lists, and where a file lies" $who python3 "$tmp/lists.py" "$src" "$mnt"
    for command in wait stage verify status 'status --json'; do
        # shellcheck disable=SC2086
        ok "$who: $command" $who dealfs $command "$mnt"
    done
    unlike "$who: status prints no raw bytes" "$($who dealfs status "$mnt")" $'[\t\377\033]'
    ok "$who: it is among all" $who python3 "$tmp/among.py" "$mnt"
    one_line "$who: again is refused, in one line" '^dealfs: ' $who dealfs mount "$src" "$given"
    one_line "$who: what is not there is named in one line" 'absent' $who dealfs mount "$src/absent" "$given"
    ok "$who: kill of the server" $who kill -9 "$(processes dealfs-server | head -1)"
    ok "$who: the next one finds everything" $who diff -r -x .dealfs "$src" "$mnt"
    ok "$who: umount" $who dealfs umount "$mnt"
    fails "$who: it is gone" is_mountpoint
    nothing_left "$who: nothing is left"
    ok "$who: run" $who dealfs run "$src" "$given" -- diff -r -x .dealfs "$src" "$mnt"
    nothing_left "$who: nothing is left of that"
done

# --- folders of options ---
places=$tmp/user/places.$odd
mkdir "$places" "$places/ssd" "$places/control"
chown -R $mount_user:$mount_user "$places"
options="state=$(option "$places/state"),ssd=$(option "$places/ssd"),control=$(option "$places/control")"
options+=",metrics_file=$(option "$places/m.prom")"
ok 'places of options' as_user dealfs mount -o "$options" -o ram=8M "$src" "$given"
ok 'the state is there' as_user test -f "$places/state/catalog"
ok 'the SSD tier is there' as_user sh -c 'test -n "$(ls -A "$1")"' sh "$places/ssd"
ok 'the control mount is there' as_user test -f "$places/control/status"
ok 'and reached from the mount' as_user test -f "$mnt/.dealfs/status"
ok 'metrics are written' wait_for as_user test -s "$places/m.prom"
ok 'stage' as_user dealfs stage "$mnt"
ok 'verify' as_user dealfs verify "$mnt"
ok 'umount' as_user dealfs umount "$mnt"
nothing_left
mkdir "$tmp/user/of.$(uname -n).0"
chown $mount_user:$mount_user "$tmp/user/of.$(uname -n).0"
ok '%h and %r are the host and the node' as_user dealfs mount "$src" "$tmp/user/of.%h.%r"
ok 'there it is' as_user mountpoint -q "$tmp/user/of.$(uname -n).0"
ok 'umount' as_user dealfs umount "$tmp/user/of.$(uname -n).0"

# --- by relative paths, and through symlinks ---
ln -s "$src" "$tmp/user/to source"
ln -s "$mnt" "$tmp/user/to mount"
chown -h $mount_user "$tmp/user/to source" "$tmp/user/to mount"
# shellcheck disable=SC2016
ok 'mount through symlinks and relative paths' \
    as_user sh -c 'cd "$1" && dealfs mount "to source/" "./to mount//"' sh "$tmp/user"
ok 'it stands on the directory itself' as_user mountpoint -q "$mnt"
ok 'status through the symlink' as_user dealfs status "$tmp/user/to mount"
# shellcheck disable=SC2016
ok 'where through it' \
    as_user sh -c 'cd "$1" && dealfs where "$1/to mount" "$1/to mount/plain/plain" plain/plain' sh "$tmp/user"
ok 'umount through it' as_user dealfs umount "$tmp/user/to mount/"
nothing_left

# --- what is left out or shown otherwise is counted and said ---
src=$tmp/user/special mnt=$tmp/user/plain
mkdir -p "$src/class" "$src/closed" "$src/.dealfs/inside" "$mnt"
echo a >"$src/class/file"
echo b >"$src/closed/file"
echo c >"$src/.dealfs/status"
ln -s file "$src/class/link"
ln -s class/link "$src/closed.link"
ln -s class "$src/to a directory"
ln -s nowhere "$src/dangling"
ln -s loop "$src/loop"
mkfifo "$src/class/fifo"
mknod "$src/class/device" c 1 3
python3 -c 'import os, socket, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("socket")' "$src/class"
chown -Rh $mount_user:$mount_user "$src" "$mnt"
chmod 000 "$src/closed"
ok 'mount' nsenter -t "$user_namespace" -m -w/ \
    setpriv --reuid=$mount_user --regid=$mount_user --clear-groups \
    env TMPDIR="$tmp/user" HOME="$tmp/user" dealfs mount "$src" "$mnt"
at_exit as_user dealfs umount --lazy "$mnt"
said=$(cat "$tmp/.output")
like 'symlinks to files are said' "$said" '2 symlinks to files are shown as symlinks'
like 'sockets, fifos and devices' "$said" '3 sockets, fifos and devices are left out'
like 'a directory that cannot be read' "$said" '1 directory could not be read'
like 'a .dealfs of the source' "$said" 'has a \.dealfs of its own'
as_user cat "$mnt/.dealfs/status" >"$tmp/status"
note() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["catalog"]["notes"][sys.argv[2]])' \
        "$tmp/status" "$1"
}
is 'status: symlinks to files' "$(note links_to_files)" 2
is 'status: specials' "$(note specials)" 3
is 'status: unreadable' "$(note unreadable)" 1
is 'status: hidden' "$(note hidden)" 1
is 'the directory of files' "$(as_user ls -A "$mnt/class" | tr '\n' ' ')" 'file link '
is 'the root' "$(as_user ls -A "$mnt" | tr '\n' '|')" 'class|closed|closed.link|dangling|loop|to a directory|'
is 'the closed one is empty' \
    "$(as_id 0 sh -c 'ls -A "$1"' sh "$src/closed" | wc -l) $(as_user ls -A "$mnt/closed" 2>/dev/null | wc -l)" '1 0'
like 'and by name' "$said" 'scan closed: Permission denied'
is 'a symlink is a symlink' "$(as_user readlink "$mnt/class/link")" file
is 'and leads to the file' "$(as_user cat "$mnt/closed.link")" a
fails 'one that leads to itself' as_user cat "$mnt/loop"
is 'samples are the files alone' "$(as_user cat "$mnt/.dealfs/samples")" class/file
fails 'nothing of the hidden .dealfs is seen' as_user test -e "$mnt/.dealfs/inside"
ok 'umount' as_user dealfs umount "$mnt"
nothing_left
chmod 755 "$src/closed"
ok 'readable again' as_user dealfs mount "$src" "$mnt"
is 'it is seen' "$(as_user cat "$mnt/closed/file")" b
ok 'umount' as_user dealfs umount "$mnt"
chmod 000 "$src"
one_line 'a source that may not be read at all' 'Permission denied' as_user dealfs mount "$src" "$mnt"
chmod 755 "$src"
nothing_left

# --- nothing at all ---
src=$tmp/user/nothing
mkdir "$src"
chown $mount_user "$src"
for what in empty 'directories alone'; do
    ok "$what: mount" as_user dealfs mount "$src" "$mnt"
    ok "$what: the mount is the same" as_user diff -r -x .dealfs "$src" "$mnt"
    for command in stage verify wait status; do ok "$what: $command" as_user dealfs $command "$mnt"; done
    is "$what: no samples" "$(as_user cat "$mnt/.dealfs/samples")" ''
    is "$what: an empty list" "$(as_user cat "$mnt/.dealfs/samples.d/imagefolder")" ''
    exits 1 "$what: where" as_user dealfs where "$mnt" anything
    ok "$what: df" as_user df "$mnt"
    ok "$what: umount" as_user dealfs umount "$mnt"
    nothing_left "$what: nothing is left"
    mkdir -p "$src/a/b" "$src/c"
done

# --- exabytes of nothing: on a tmpfs, for others have no such files ---
src=$tmp/exabytes
mkdir "$src"
mount -t tmpfs -o size=64M,mode=755 tmpfs "$src" || bail_out 'mount a tmpfs'
at_exit umount -l "$src"
for i in 1 2 3 4 5 6 7 8 9; do truncate -s $((1 << 61)) "$src/hole$i"; done
printf end | dd of="$src/hole5" bs=1 seek=$(((1 << 60) + 5)) conv=notrunc status=none
truncate -s 64M "$src/sparse"
echo small >"$src/small"
said=$(dealfs mount -o ram=32M "$src" "$mnt" 2>&1)
ok 'files of 2^61 bytes are mounted' mounted "$mnt"
like 'it is said that no tier keeps them' "$said" '9 files are larger'
is 'their size' "$(stat -c %s "$mnt/hole1")" $((1 << 61))
is 'they take the blocks that they take in the source' "$(cd "$mnt" && stat -c '%n %b' hole* sparse)" \
    "$(cd "$src" && stat -c '%n %b' hole* sparse)"
is 'what is in one' "$(dd if="$mnt/hole5" bs=1 skip=$(((1 << 60) + 5)) count=3 status=none)" end
is 'its last byte' "$(tail -c 1 "$mnt/hole1" | od -An -tx1)" ' 00'
is 'other files' "$(cat "$mnt/small")" small
ok 'stage' dealfs stage "$mnt"
is 'keeps the others, and nothing of these' "$(value "$mnt" stage.bytes)" $(((64 << 20) + 6))
ok 'df' df "$mnt"
ok 'umount' dealfs umount "$mnt"
umount "$src"
nothing_left

# --- standard descriptors: closed ones, and an output that cannot be written ---
src=$tmp/small mnt=$tmp/closed
mkdir "$mnt"
make_files "$src" 3 1000
closed() { dealfs "$@" <&- >&- 2>&-; }
ok 'mount without standard descriptors' closed mount "$src" "$mnt"
same 'the mount is the source' "$src" "$mnt"
ok 'stage' closed stage "$mnt"
fails 'a mistake fails' closed stage "$mnt/nothing"
full() { dealfs "$@" >/dev/full; }
for command in 'status' "status $mnt" "status --json $mnt" "where $mnt class0/000.bin" "verify $mnt" "log $mnt" \
    "plan $mnt epoch=1 ranks=1 batch=1" "stage $mnt" "shuffle $mnt seed=1" "exchange $mnt epoch=1 fraction=0.5" \
    "top --once $mnt" "upgrade $mnt" "index $mnt some --format fixed=100" doctor 'clean -n' help 'help all' --version \
    'mount --help'; do
    # shellcheck disable=SC2086
    one_line "a full disk: $command" 'No space left on device|part of it is lost' full $command
done
ok 'umount without standard descriptors' closed umount "$mnt"
said='the command has succeeded, but standard output could not be written'
one_line 'a full disk: mount' "$said" full mount "$src" "$mnt"
ok 'it is mounted' mounted "$mnt"
ok 'umount' dealfs umount "$mnt"
mkfifo "$tmp/pipe"
exec 7<>"$tmp/pipe" 8>"$tmp/pipe" 7<&-
unread() { dealfs "$@" >&8; }
one_line 'a pipe that nobody reads: mount' "$said" unread mount "$src" "$mnt"
ok 'it is mounted' mounted "$mnt"
ok 'umount' dealfs umount "$mnt"
exec 8>&-

# --- a path that is longer than a catalog takes ---
src=$tmp/deep mnt=$tmp/deep.mnt
make_files "$src" 3 1000
python3 -c '
import os, sys
os.chdir(sys.argv[1])
for level in range(270):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)' "$src"
mkdir "$mnt"
ok 'mount what is too deep' dealfs mount "$src" "$mnt"
like 'health names the directory that is shown empty' "$(value "$mnt" health)" \
    '1 directory lacks some entries.* paths are longer than 65535 bytes, first \.\.\.d+: mend the source'
is 'the mount is not good' "$(value "$mnt" condition)" degraded
exits 3 'which `dealfs status` says' dealfs status "$mnt"
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
