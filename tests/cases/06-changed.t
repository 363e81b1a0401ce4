#!/bin/bash
# Source files that change while they are mounted: what was there before is read, or an error; never anything else.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
names='grown shrunk replaced removed swapped touched moved same untouched'
# One set is kept in the shard before the change, one is not.
for set in kept fresh; do
    mkdir -p "$src/$set/sub"
    for name in $names; do head -c 300000 /dev/urandom >"$src/$set/$name"; done
    head -c 300000 /dev/urandom >"$src/$set/sub/inside"
    head -c 9000000 /dev/urandom >"$src/$set/large"
done
head -c 50000000 /dev/zero >"$src/fresh/half"
cp -a "$src" "$tmp/before"
ok 'mount' mount_up -o ram=256M "$src" "$mnt"
for file in "$mnt"/kept/* "$mnt"/kept/sub/*; do [ -d "$file" ] || cat "$file" >/dev/null; done
# Lines about what may happen a million times come at a bounded rate: so it is tried again until one is let through.
logged() {
    cat "$mnt/$1" >/dev/null 2>&1
    grep -qF "$1 from the source: " "$tmp"/dealfs-*/log
}

for set in kept fresh; do
    echo more >>"$src/$set/grown"
    truncate -s 1000 "$src/$set/shrunk"
    head -c 300000 /dev/urandom >"$src/$set/new" && mv "$src/$set/new" "$src/$set/replaced"
    rm "$src/$set/removed"
    rm "$src/$set/swapped" && ln -s untouched "$src/$set/swapped"
    touch "$src/$set/touched"
    mv "$src/$set/moved" "$src/$set/elsewhere"
    head -c 300000 /dev/urandom | dd of="$src/$set/same" conv=notrunc status=none # size as before, mtime not
    mv "$src/$set/sub" "$src/$set/sub.away" && ln -s sub.away "$src/$set/sub"
done

# What is read now: exactly what was there before, or an errno.
sound() { # path
    drop_cache "$mnt/$1"
    if cat "$mnt/$1" >"$tmp/got" 2>"$tmp/why"; then
        cmp "$tmp/before/$1" "$tmp/got"
    else
        cat "$tmp/why"
        [ "$2" = fails ]
    fi
}
for name in $names sub/inside large; do
    ok "kept, then changed: $name is what it was" sound "kept/$name" reads
done
for name in grown shrunk replaced removed swapped touched moved same sub/inside; do
    fails "changed before it was read: $name" cat "$mnt/fresh/$name"
    ok "the log says so: $name" wait_for logged "fresh/$name"
done
ok 'what did not change is read' sound fresh/untouched reads
ok 'also the large one' sound fresh/large reads
cat >"$tmp/errno.py" <<'END'
import errno, sys
try:
    open(sys.argv[1], 'rb').read()
    print('read')
except OSError as e:
    print(errno.errorcode[e.errno])
END
for name in grown shrunk replaced touched same; do
    is "it is ESTALE: $name" "$(python3 "$tmp/errno.py" "$mnt/fresh/$name")" ESTALE
done
is 'the attributes stay as they were' "$(stat -c %s "$mnt/fresh/grown")" 300000
is 'the list stays, too' "$(ls "$mnt/fresh")" "$(ls "$tmp/before/fresh")"
is_fault() { # a failure counts as one for a minute
    cat "$mnt/fresh/grown" >/dev/null
    dealfs status "$mnt"
    [ $? = 4 ]
}
ok 'status says that something is wrong' wait_for is_fault
like 'and what' "$(dealfs status "$mnt")" 'reads failed: Stale file handle, first .*, last .* mount again'
exits 1 'verify sees it' dealfs verify "$mnt"

# A change after the first part of a large file has been read: what is kept of it is read, the rest is not.
head -c 100000 "$mnt/fresh/half" >/dev/null
echo more >>"$src/fresh/half"
is 'a file that changes after its first part was read' "$(python3 "$tmp/errno.py" "$mnt/fresh/half")" ESTALE

# Staging goes on past them and counts them.
exits 1 'stage fails, naming how many' dealfs stage "$mnt"
like 'it says so' "$(dealfs stage "$mnt" 2>&1)" 'could not be staged'
ok 'what it could is kept' sound fresh/untouched reads

# The next mount has a new catalog.
ok 'unmount' dealfs umount "$mnt"
ok 'mount again' dealfs mount -o ram=256M "$src" "$mnt"
same 'all is as it is now' "$src" "$mnt"
ok 'verify' dealfs verify "$mnt"
ok 'unmount' dealfs umount "$mnt"

# The source away as a whole, and back.
ok 'mount' dealfs mount -o ram=256M "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
mv "$src" "$src.away"
for name in kept/untouched fresh/untouched kept/large; do
    ok "the source moved away: $name is read from the shard" sound "$name" reads
done
mv "$src.away" "$src"
ok 'unmount' dealfs umount "$mnt"

# No permission to read, which only an ordinary user notices.
if [ "$(id -u)" != 0 ]; then
    chmod 000 "$src/fresh/untouched"
    ok 'mount' dealfs mount -o ram=256M "$src" "$mnt"
    is 'chmod 000' "$(python3 "$tmp/errno.py" "$mnt/fresh/untouched")" EACCES
    ok 'unmount' dealfs umount "$mnt"
fi
nothing_left
done_testing
