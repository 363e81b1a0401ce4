#!/bin/bash
# Odd names, odd files, and a source that has a .dealfs of its own.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src="$tmp/src with, comma=and \\ backslash" mnt="$tmp/mount with, comma=and space"
mkdir -p "$src/.dealfs" "$src/class"
echo mine >"$src/.dealfs/control"
echo mine >"$src/class/.dealfs"
name=$(printf '\377\376not utf-8')
names=('a b' $'new\nline' $'tab\t' "$name" '-rf' '*' 'a,b=c' '%41' '\\' '"quoted"'
    "it's" 'ünïcödé' $'\001\033[31m' ' ' '...' '.hidden' '#')
for name in "${names[@]}"; do
    printf '%s' "content of $name" >"$src/class/$name"
    mkdir "$src/$name.d"
    printf '%s' "inside $name" >"$src/$name.d/$name"
done
long=$(printf 'n%.0s' {1..255})
echo long >"$src/class/$long"
ln -s "$long" "$src/class/link"
ln -s $'target with\nnewline' "$src/class/dangling"
mkfifo "$src/class/fifo"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$src/class/s" 2>/dev/null
truncate -s 3000000000 "$src/sparse"
touch -d '1960-01-01 00:00:00.123456789' "$src/class/a b"
touch -d '2200-01-01' "$src/class/.hidden"
chmod 4755 "$src/class/..."

ok 'mount' mount_up "$src" "$mnt"
like 'the hidden .dealfs is said' "$(cat "$tmp/.output")" '\.dealfs'
is '.dealfs at the root is ours' "$(cat "$mnt/.dealfs/node")" 0
is 'one elsewhere is the source'\''s' "$(cat "$mnt/class/.dealfs")" mine
rm -f "$src/class/fifo" "$src/class/s"
is 'a sparse file has its size' "$(stat -c %s "$mnt/sparse")" 3000000000
is 'and is read at its end' "$(tail -c 1000000 "$mnt/sparse" | md5sum)" "$(head -c 1000000 /dev/zero | md5sum)"
ok 'one byte out of the middle' \
    cmp <(dd if="$mnt/sparse" bs=1 skip=2000000000 count=1 status=none) <(head -c 1 /dev/zero)
ok 'that read a little and not all' test "$(value "$mnt" source.bytes)" -lt 100000000
rm "$src/sparse"
is 'names' "$(cd "$mnt" && find . -mindepth 1 ! -name sparse -print0 | sort -z | md5sum)" \
    "$(cd "$src" && find . -mindepth 1 -path ./.dealfs -prune -o -print0 | sed -z '/^.$/d' | sort -z | md5sum)"
for name in "${names[@]}"; do
    is "$(printf 'read %q' "$name")" "$(cat "$mnt/class/$name")" "content of $name"
    is "$(printf 'in a directory of that name: %q' "$name")" "$(cat "$mnt/$name.d/$name")" "inside $name"
done
is 'a name of 255 bytes' "$(cat "$mnt/class/$long")" long
fails 'a name of 256 bytes' cat "$mnt/class/n$long"
is 'a symlink to it' "$(cat "$mnt/class/link")" long
is 'a target with a newline' "$(readlink "$mnt/class/dangling")" $'target with\nnewline'
for name in 'a b' .hidden ...; do
    is "attributes of $name" \
        "$(stat -c '%s %.9Y %a %u %g' "$mnt/class/$name")" "$(stat -c '%s %.9Y %a %u %g' "$src/class/$name")"
done
fails 'what is not there' cat "$mnt/class/absent"
fails 'nor below a file' cat "$mnt/class/a b/absent"
is 'the fifo and the socket are counted' "$(value "$mnt" catalog.notes.specials)" 2
is 'where takes every name' \
    "$(dealfs where "$mnt" "${names[@]/#/class/}" 2>&1 | cut -f1 | grep -cx '[0-9]*')" ${#names[@]}
mkdir "$mnt b" "$tmp/elsewhere"
(cd "$mnt b" && exec sleep infinity) &
beside=$!
tap_pids+=("$beside")
(cd "$mnt" && exec sleep infinity) &
inside=$!
tap_pids+=("$inside")
sleeps() { [ "$(cat /proc/$1/comm)" = sleep ]; }
wait_for sleeps $beside && wait_for sleeps $inside
dealfs umount "$mnt" 2>"$tmp/busy"
like 'who is inside is named' "$(cat "$tmp/busy")" "in use by sleep \($inside\)"
kill $beside $inside && wait $beside $inside 2>/dev/null
unlike 'nothing that status prints is raw' "$(dealfs status "$mnt")" $'\033'
like 'umount of the odd mountpoint' "$(dealfs umount "$mnt" && echo gone)" gone
ok 'mount again with what is left' mount_up "$src" "$mnt"
ok 'verify' dealfs verify "$mnt"
echo more >>"$src/class/"$'new\nline'
one_line 'verify names a difference in printable form' 'class/new\\x0aline: size: ' dealfs verify "$mnt"
ok 'unmount' dealfs umount "$mnt"
nothing_left
ok "nor a note of mount(8)'s" no_notes
done_testing
