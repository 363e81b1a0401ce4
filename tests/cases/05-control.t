#!/bin/bash
# The control file, spoken to from bash, dd, Python and C as people would.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
make_files "$src" 40 1000
echo 'odd' >"$src/class0/a b,c"
ok 'mount' mount_up "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
control=$mnt/.dealfs/control
take() { cat <&3; }
first=class0/000.bin
reply=$(dealfs where "$mnt" $first)
like 'a reply' "$reply" $'^[0-9]+\t0\tram\tclass0/000\\.bin$'

# --- bash ---
exec 3<>"$control"
printf 'where\n%s\n' $first >&3
is 'bash: write, then cat' "$(cat <&3)" "$reply"
printf 'where\nclass1/001.bin\n' >&3
like 'a second request on the same descriptor' "$(cat <&3)" 'class1/001\.bin$'
exec 3>&-
exec 3<>"$control"
(cd "$src" && find . -name '*.bin' -printf '%P\n' | sort) >"$tmp/names"
{ echo where; cat "$tmp/names"; } >&3
lines=()
while read -r line; do lines+=("$line"); done <&3
is 'bash: while read gives every line' ${#lines[@]} 40
is 'the first' "${lines[0]}" "$reply"
is 'in the order of the request' "$(printf '%s\n' "${lines[@]}" | cut -f4)" "$(cat "$tmp/names")"
exec 3>&-
exec 3<>"$control"
echo "where" >&3
echo $first >&3
is 'bash: head -1' "$(head -1 <&3)" "$reply"
exec 3>&-
exec 3<>"$control"
is 'no request: the usage' "$(head -c 1 <&3 | wc -c)" 1
exec 3>&-
like 'usage with cat' "$(cat "$control")" 'where'
exec 3<>"$control"
printf 'where\r\n%s\r\n' $first >&3
is 'CRLF' "$(cat <&3)" "$reply"
printf 'where\n%s' $first >&3
is 'no newline at the end' "$(cat <&3)" "$reply"
exec 3>&-

# --- dd ---
printf 'where\n%s\n' $first >"$tmp/request"
exec 3<>"$control"
dd if="$tmp/request" bs=1 status=none >&3
is 'dd: written a byte at a time, read a byte at a time' "$(dd bs=1 status=none <&3)" "$reply"
exec 3>&-

# --- Python ---
cat >"$tmp/talk.py" <<'END'
import os, sys
path, reply = sys.argv[1], sys.argv[2].encode() + b'\n'
request = b'where\nclass0/000.bin\n'
with open(path, 'r+b', buffering=0) as f:
    f.write(request)
    assert f.read() == reply, 'unbuffered read'
    f.write(request)
    assert b''.join(iter(lambda: f.read(7), b'')) == reply, 'unbuffered, in pieces'
with open(path, 'r+b') as f:
    f.write(request)
    f.flush()
    assert f.read() == reply, 'buffered'
with open(path, 'r+') as f:
    f.write(request.decode())
    f.flush()
    assert f.read() == reply.decode(), 'text'
with open(path, 'r+b', buffering=0) as f:
    f.write(request)
    start = f.tell()
    whole = f.read()
    f.seek(start)
    assert f.read() == whole == reply, 'seek back'
fd = os.open(path, os.O_RDWR)
assert os.pwrite(fd, request, 0) == len(request)
assert os.pread(fd, 1000, 0) == reply, 'pwrite and pread at 0'
os.close(fd)
fds = [os.open(path, os.O_RDWR) for _ in range(100)]
for i, fd in enumerate(fds):
    os.write(fd, b'where\nclass%d/%03d.bin\n' % (i % 40 % 4, i % 40))
for i, fd in enumerate(fds):
    assert os.read(fd, 1000).endswith(b'class%d/%03d.bin\n' % (i % 40 % 4, i % 40)), 'many at once'
    os.close(fd)
names = open(sys.argv[3], 'rb').read().replace(b'\n', b'\0')
fd = os.open(path, os.O_RDWR)
data = b'where sep=nul\n' + names * 5000
view = memoryview(data)
while view:
    view = view[os.write(fd, view):]
count = 0
while chunk := os.read(fd, 1 << 20):
    count += chunk.count(b'\n')
assert count == 40 * 5000, 'a long request'
os.close(fd)
END
ok 'Python: buffered, unbuffered, text, seek, pread, many, long' python3 "$tmp/talk.py" "$control" "$reply" "$tmp/names"

# --- C ---
cat >"$tmp/talk.c" <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[4096];
    FILE *f = fopen(argv[1], "r+");
    if (!f || argc != 3)
        return 1;
    fprintf(f, "where\nclass0/000.bin\n");
    fflush(f);
    if (!fgets(line, sizeof line, f))
        return 2;
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, argv[2]) ? 3 : fgets(line, sizeof line, f) ? 4 : 0;
}
END
if command -v cc >/dev/null && cc -o "$tmp/talk" "$tmp/talk.c" 2>"$tmp/talk.log"; then
    ok 'C: stdio' "$tmp/talk" "$control" "$reply"
else
    skip 1 'no C compiler'
fi

# --- refusals ---
refuse() { # description, regex of the reason, request
    local lines
    exec 3<>"$control"
    printf "$3" >&3
    fails "refused: $1" take
    lines=$(cat <&3)
    like 'the next read says why' "$lines" "$2"
    exec 3>&-
    like 'so does errors' "$(tail -1 "$mnt/.dealfs/errors")" "$2"
}
refuse 'an unknown verb' 'frobnicate' 'frobnicate x=1\n'
refuse 'an unknown key' 'colour' 'where colour=red\nx\n'
refuse 'a bad value' 'sep' 'where sep=tab\nx\n'
refuse 'no paths' 'paths' 'where\n'
refuse 'a list with a path that is none' 'nowhere' 'samples name=mine\nclass0/000.bin\nnowhere\n'
fails 'that list is not there' test -e "$mnt/.dealfs/samples.d/mine"
errors=$(wc -l <"$mnt/.dealfs/errors")
like 'errors names the asker' "$(tail -1 "$mnt/.dealfs/errors")" "$(id -u)"
exec 3<>"$control"
echo "where" >&3
exec 3>&-
ok 'a request that is closed unread is in errors' wait_for sh -c "[ \$(wc -l <'$mnt/.dealfs/errors') -gt $errors ]"

# --- lists ---
is 'samples is every file' "$(sort "$mnt/.dealfs/samples")" "$(cd "$src" && find . -type f -printf '%P\n' | sort)"
is 'a line of samples is the number' "$(sed -n "$(($(cut -f1 <<<"$reply") + 1))p" "$mnt/.dealfs/samples")" $first
exec 3<>"$control"
printf 'samples name=mine\nclass2/002.bin\n%s\n%s/class0/a b,c\n%s/class1/001.bin\n' $first "$src" "$mnt" >&3
ok 'a list is uploaded' take
exec 3>&-
is 'and is there' "$(cat "$mnt/.dealfs/samples.d/mine")" $'class2/002.bin\nclass0/000.bin\nclass0/a b,c\nclass1/001.bin'
is 'with its size' "$(stat -c %s "$mnt/.dealfs/samples.d/mine")" "$(wc -c <"$mnt/.dealfs/samples.d/mine")"
like 'it is listed' "$(ls "$mnt/.dealfs/samples.d")" mine
ok 'it survives the server' kill -9 "$(value "$mnt" pids.server)"
is 'and is there again' "$(wc -l <"$mnt/.dealfs/samples.d/mine")" 4

# --- a server that dies in between ---
exec 3<>"$control"
printf 'where\n%s\n' $first >&3
server=$(value "$mnt" pids.server)
kill -9 "$server"
wait_for sh -c "[ \"\$(cat '$mnt/.dealfs/node')\" = 0 ] && ! [ -d /proc/$server/fd ]"
fails 'a request cut by a crash is an errno and not an empty reply' take
exec 3>&-
exec 3<>"$control"
printf 'where\n%s\n' $first >&3
is 'a new one works' "$(cut -f1,2,4 <<<"$(cat <&3)")" "$(cut -f1,2,4 <<<"$reply")"
exec 3>&-

is 'control is the user'\''s alone' "$(stat -c %a "$control")" 600
fails 'status cannot be written' sh -c "echo x >'$mnt/.dealfs/status'"
like 'metrics' "$(cat "$mnt/.dealfs/metrics")" 'dealfs_reads_total\{from="ram"\}'
is 'node' "$(cat "$mnt/.dealfs/node")" 0
is 'nodes' "$(wc -l <"$mnt/.dealfs/nodes")" 1
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
