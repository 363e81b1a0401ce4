#!/bin/bash
# The throttled source and the simulated training that the figures are measured with: right bytes, each read counted,
# and what is wrong is said.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require python3
bench=$top_builddir/tests/bench

make_files "$tmp/src" 32 100000
mkdir "$tmp/slow"
background "$bench/throttle" "$tmp/src" "$tmp/slow" 100000000 1
throttle=$!
at_exit umount -l "$tmp/slow"
ok 'it is mounted' wait_for mountpoint -q "$tmp/slow"
count() { python3 -c 'import os, sys; print(int(os.getxattr(sys.argv[1], "user.read")))' "$tmp/slow"; }
is 'nothing has been read' "$(count)" 0
ok 'it has the bytes of the source' diff -r "$tmp/src" "$tmp/slow"
is 'which are counted' "$(count)" 3200000
ok 'and again' diff -r "$tmp/src" "$tmp/slow"
is 'since they are not kept' "$(count)" 6400000
fails 'nothing can be written' touch "$tmp/slow/new"
fails 'a name that is not there' cat "$tmp/slow/none"

find "$tmp/slow" -type f | sort >"$tmp/all"
head -n 16 "$tmp/all" >"$tmp/first"
tail -n 16 "$tmp/all" >"$tmp/second"
trained=$("$bench/trainer" 4 1000 3 2 2 "$tmp/first" "$tmp/second")
is 'two ranks, two epochs of two steps: a line for each epoch' "$(grep -c . <<<"$trained")" 2
echo "$trained" >"$tmp/trained"
# shellcheck disable=SC2016
ok 'computing and waiting add up' \
    awk '{ d = $1 - $2 - $3; if (d * d > 1e-6 || $2 <= 0 || $4 > $3) exit 1 }' "$tmp/trained"
is 'each sample is read once' "$(count)" 9600000
echo "$tmp/slow/none" >>"$tmp/first"
fails 'lists of different lengths' "$bench/trainer" 4 1000 3 2 2 "$tmp/first" "$tmp/second"
sed -i "s|.*|$tmp/slow/none|" "$tmp/second"
fails 'a sample that is not there' "$bench/trainer" 4 1000 3 2 2 "$tmp/second"
like 'is named' "$(cat "$tmp/.output")" "trainer: $tmp/slow/none: No such file"
exits 2 'no arguments' "$bench/trainer"
exits 2 'a rate of nothing' "$bench/throttle" "$tmp/src" "$tmp/slow" 0

ok 'unmount' umount "$tmp/slow"
throttle_gone() { ! kill -0 "$throttle" 2>/dev/null; }
ok 'and it ends' wait_for throttle_gone
done_testing
