#!/bin/bash
# Files of the source that are rewritten in place: a mount gives their bytes as of the mount or fails, and the next one
# gives the new ones, also of what an SSD held.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt ssd=$tmp/ssd
make_files "$src" 40 150000
mkdir "$mnt" "$ssd"
settle "$src"
directories=$(find "$src" -type d -printf '%p %T@ %C@\n' | sort)

up() { # options
    dealfs mount -o "ram=0,ssd=$ssd,state=$tmp/state${1:+,$1}" "$src" "$mnt" >"$tmp/said" 2>&1
}
down() { dealfs umount "$mnt"; }
file() { printf '%s/class%d/%03d.bin' "$1" $(($2 % 4)) "$2"; }
rewrite() { # number: other bytes in the middle, nothing else
    dd if=/dev/urandom of="$(file "$src" "$1")" bs=1000 seek=20 count=1 conv=notrunc status=none
}
put_back() { # number, command…: rewritten, with the mtime of before
    local f time
    f=$(file "$src" "$1")
    time=$(stat -c %y "$f")
    rewrite "$1" && touch -d "$time" "$f"
}
replace() { # number: another file with the size and mtime of before, and another mode
    local f
    f=$(file "$src" "$1")
    head -c 150000 /dev/urandom >"$tmp/other"
    touch -r "$f" "$tmp/other" && cp -p --remove-destination "$tmp/other" "$f" && chmod 604 "$f"
}
refused_read() { # what, number, cause
    ok "$1: fails" sh -c "! cat '$(file "$mnt" "$2")' >/dev/null 2>'$tmp/error'"
    like 'as a file that is not as it was' "$(cat "$tmp/error")" 'Stale file handle'
    like 'and the log says why' "$(cat "$tmp/state/log")" "$3"
}

ok 'mount' up ''
cat "$mnt"/class[012]/* >/dev/null # class 3 is not held
down
ok 'mount again' up ''
like 'nothing has changed' "$(cat "$tmp/said")" 'nothing has changed'
cat "$mnt"/class[012]/* >/dev/null
is 'what was read is held' "$(value "$mnt" source.bytes)" 0

# --- a catalog that is given, as by a world, and cannot be used ---
down
mkdir "$tmp/source" && cp -r "$src/class0" "$tmp/source"
ok 'another dataset' dealfs mount -o "ram=0,state=$tmp/state2" "$tmp/source" "$mnt"
down
fails 'a damaged catalog' up catalog=/dev/null
like 'is refused' "$(cat "$tmp/said")" 'catalog /dev/null: is damaged'
fails 'that of another dataset' up "catalog=$tmp/state2/catalog"
like 'is also refused' "$(cat "$tmp/said")" 'differs from the dataset'
ok 'mount again' up ''
like 'the catalog of the last mount was not replaced' "$(cat "$tmp/said")" 'nothing has changed'

# --- while it is mounted ---
rewrite 3
refused_read 'a file that is not held and was rewritten' 3 'changed since the scan'
put_back 7
refused_read 'one with its mtime put back' 7 'ctime'
chmod 600 "$(file "$src" 11)"
ln "$(file "$src" 15)" "$tmp/link"
ok 'another mode is no other file' cmp "$(file "$src" 11)" "$(file "$mnt" 11)"
ok 'nor is a hard link' cmp "$(file "$src" 15)" "$(file "$mnt" 15)"
rewrite 0
put_back 1
cp "$(file "$src" 6)" "$(file "$src" 2)"
touch -r "$(file "$src" 5)" "$tmp/new" && head -c 150000 /dev/urandom >"$tmp/new" &&
    touch -r "$(file "$src" 5)" "$tmp/new"
cp -p "$tmp/new" "$(file "$src" 5)"
chmod 640 "$(file "$src" 4)"
down

# --- mounted again; without the wait the next mount would not trust what this one stores of young files ---
settle "$src"
is 'no directory has changed' "$(find "$src" -type d -printf '%p %T@ %C@\n' | sort)" "$directories"
ok 'mount by names' up rescan=names
like 'says what it does not see' "$(cat "$tmp/said")" 'rewritten in place, its old bytes are served'
down
ok 'mount' up ''
like 'a file with hard links is said' "$(cat "$tmp/said")" '1 file has other hard links'
like 'the rewritten files are counted' "$(cat "$tmp/said")" '6 files were rewritten'
same 'all is as it is in the source' "$src" "$mnt"
read_again=$(($(value "$mnt" source.samples)))
is 'and what did not change is still held' $((read_again <= 6 + 10)) 1
down
ok 'mount' up ''
same 'again' "$src" "$mnt"
is 'from the SSD; one value of each with another mode or link is compared' "$(value "$mnt" source.samples)" 3
down

# --- replaced, or rewritten, with the mtime of before and another mode ---
replace 12
time=$(stat -c %y "$(file "$src" 8)")
dd if=/dev/urandom of="$(file "$src" 8)" bs=150000 count=1 conv=notrunc status=none
touch -d "$time" "$(file "$src" 8)" && chmod 604 "$(file "$src" 8)"
ok 'mount' up ''
ok 'a cached file that another one has replaced: its bytes are read' cmp "$(file "$src" 12)" "$(file "$mnt" 12)"
refused_read 'a cached file that was rewritten, with its mtime put back and another mode' 8 'not only its mode'
down
ok 'mount' up ''
ok 'the next mount has its new bytes' cmp "$(file "$src" 8)" "$(file "$mnt" 8)"
down

# --- by the mtime alone ---
ok 'mount with identity=mtime' up identity=mtime
cat "$mnt"/class*/* >/dev/null
cp "$(file "$src" 9)" "$tmp/before"
put_back 9
ok 'a file with its mtime put back is the same' cmp "$tmp/before" "$(file "$mnt" 9)"
down
ok 'mount so again' up identity=mtime
is 'what is held stays' "$(cat "$mnt"/class*/* >/dev/null; value "$mnt" source.bytes)" 0
down
ok 'mount with the ctime again' up ''
same 'nothing of it is trusted' "$src" "$mnt"
down
nothing_left
done_testing
