#!/bin/bash
# Room for resized images is estimated from a sample of the files: what does not fit is refused long before all are
# made, what fits is not, on one node and on several together.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
pictures=$top_builddir/tests/fs/image/pictures
src=$tmp/src mnt=$tmp/mnt
sides=64
count=3000 kinds=10
"$pictures" make "$tmp/pictures" $kinds || bail_out 'no pictures'
mkdir "$src" "$mnt" "$tmp/expected"
needed=0
for ((i = 0; i < kinds; i++)); do
    "$pictures" shrink $sides 80 "$tmp/pictures/good00$i.jpg" >"$tmp/$i.jpg"
    needed=$((needed + ($(stat -c %s "$tmp/$i.jpg") + 104) * count / kinds))
done
for ((i = 0; i < count; i++)); do
    echo "$tmp/pictures/good00$((i % kinds)).jpg" "$src/$i.jpg"
    echo "$tmp/$((i % kinds)).jpg" "$tmp/expected/$i.jpg"
done | xargs -n 2 ln
settle "$tmp/pictures"
diag "they take $needed bytes"
part() { echo $((needed * $1 / 100)); }
told() { # the MiB that a refusal says are needed, in hundredths
    sed -n 's/.*take about \([0-9]*\)\.\([0-9]\) MiB.*/\1\20/p' "$1"
}
nearly() { [ "$1" -gt $((needed * 95 / 1048576)) ] && [ "$1" -lt $((needed * 105 / 1048576)) ]; }

# --- one node ---
mkdir "$tmp/state" "$tmp/ssd"
ok 'a mount, for its catalog' dealfs mount -o "state=$tmp/state,ram=1M" "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
dealfs-resizer $sides 80 "" 0 "$tmp/ssd" "$(part 90)" 3<"$tmp/state" 4<"$src" >"$tmp/refused" 2>&1
is 'too little room: it is refused' $? 1
like 'with what it would take' "$(tail -n 1 "$tmp/refused")" \
    '^e the resized images take about .*, but the tiers have room for only'
ok 'nearly' nearly "$(told "$tmp/refused")"
read -r _ seen all _ < <(grep '^p' "$tmp/refused" | tail -n 1)
ok 'after a sample of them' test "$seen" -ge 1000 -a "$seen" -lt "$all"
diag "$seen of $all files"
is 'which was of all' "$all" $count
rm -r "$tmp/state" "$tmp/ssd"
mount_too_small() { # without the lines of progress
    local status=0
    dealfs mount -o "state=$tmp/state,resize=$sides,quality=80,ram=$(part 50)" "$src" "$mnt" 2>"$tmp/why" ||
        status=$?
    grep -v '^resizing ' "$tmp/why" >&2
    return $status
}
one_line 'a mount says so' "^dealfs: the resized images take about .* room for" mount_too_small
ok 'and leaves nothing' test ! -e "$tmp/state/resized"

# --- two: their rooms are one ---
both() { # percent of what is needed, at each
    world_options=("resize=$sides,quality=80,ram=$(part "$1")" "resize=$sides,quality=80,ram=$(part "$2")")
    rm -rf "$tmp"/state?
    world_mount 2 >/dev/null
}
both 60 30
world_refused 'two with too little' 'the resized images take about .*, but the tiers of all nodes have room for only'
ok 'it says what they would take' nearly "$(told "$tmp/world.log")"
is 'once' "$(grep -c 'take about' "$tmp/world.log")" 1
ok 'none is mounted' test -z "$(sweep_mounts "$tmp")"
ok 'one with little, one with enough: together they have room' both 25 95
ok 'all is right' diff -r -x .dealfs "$tmp/expected" "$tmp/node0"
is 'and nothing had to be made again' "$(world_sum resize.remade 0 1)" 0
ok 'unmount all' world_umount
done_testing
