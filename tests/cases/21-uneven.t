#!/bin/bash
# Nodes of uneven capacity, one with none, all together too small; a file larger than any node; groups; stage; shares.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

slow=peer_timeout=600 # a slow machine is no silent node
src=$tmp/src
make_files "$src" 80 250000
total=$(du -sb --apparent-size "$src"/*/* | awk '{ n += $1 } END { print n }')
all=(0 1 2)
owners() { # how many files each node owns: "NODE COUNT" a line, `-` for none
    (cd "$src" && find . -type f -printf '%P\n') | xargs dealfs where "$tmp/node0" | cut -f 2 | sort | uniq -c |
        awk '{ print $2, $1 }'
}
fresh() { rm -rf "$tmp"/state*; }

# --- uneven, and one with none ---
world_options=([0]="ram=4M,$slow" [1]="ram=0,$slow" [2]="ram=40M,$slow")
ok 'uneven capacities: mount' world_mount 3
everywhere 'the first time' "${all[@]}"
everywhere 'the second time' "${all[@]}"
is 'each file was opened at the source once' "$(world_sum source.samples 0 1 2)" 80
is 'a node without room owns nothing' "$(owners | grep -c '^1 ')" 0
is 'and holds nothing' "$(value "$tmp/node1" ram.held)" 0
small=$(owners | awk '$1 == 0 { print $2 }') large=$(owners | awk '$1 == 2 { print $2 }')
ok "who has more room owns more: $small, $large" test "${small:-0}" -lt "${large:-0}"
is 'all have owners' $((small + large)) 80
ok 'unmount' world_umount

# --- too small for the dataset ---
fresh
world_options=([0]="ram=4M,$slow" [1]="ram=3M,$slow" [2]="ram=5M,$slow")
ok 'too small together: mount' world_mount 3
everywhere 'the first time' "${all[@]}"
before=$(world_sum source.samples 0 1 2)
none=$(owners | awk '$1 == "-" { print $2 }')
ok "some files have no owner: $none" test "${none:-0}" -gt 10
is 'what has one is opened once, the others by each reader' "$before" $((80 - none + 3 * none))
everywhere 'the second time' "${all[@]}"
is 'only those come from the source again, each reader again' \
    $(($(world_sum source.samples 0 1 2) - before)) $((3 * none))
ok 'unmount' world_umount

# --- one node has all the room ---
fresh
world_options=([0]=ram=64M [1]=ram=0 [2]=ram=0)
ok 'room on one node: mount' world_mount 3
like 'status says how little of an epoch is local, and whose tiers lack room' "$(dealfs status "$tmp/node2")" \
    'at most 33 % of an epoch is local: the tiers of node 1, 2 have almost no room'
exits 3 'which is a degraded world' dealfs status "$tmp/node2"
ok 'unmount' world_umount

# --- a file larger than any node ---
fresh
head -c 200M /dev/urandom >"$src/large.bin"
world_options=() world_default=ram=120M,$slow
ok 'a file larger than any node: mount' world_mount 3
everywhere 'the first time' "${all[@]}"
before=$(world_sum source.bytes 0 1 2)
ok 'its bytes are read from the source about once' test "$before" -lt $((total + 200 * 1048576 + 16 * 1048576))
everywhere 'the second time' "${all[@]}"
is 'and never again' "$(world_sum source.bytes 0 1 2)" "$before"
ok 'every node holds a part' \
    test "$(for i in 0 1 2; do value "$tmp/node$i" ram.held; done | awk '$1 > 40e6' | wc -l)" = 3
ok 'unmount' world_umount
rm "$src/large.bin"

# --- groups ---
fresh
all=(0 1 2 3)
world_options=() world_default=ram=32M,groups=2,$slow
ok 'two groups of two: mount' world_mount 4
everywhere 'the first time' "${all[@]}"
is 'each group reads the source once' "$(world_sum source.samples 0 1 2 3)" 160
everywhere 'the second time' "${all[@]}"
is 'and never again' "$(world_sum source.samples 0 1 2 3)" 160
ok 'unmount' world_umount

# --- stage ---
fresh
all=(0 1 2)
world_default=ram=32M,$slow
ok 'mount for staging' world_mount 3
ok 'stage at one node' dealfs stage "$tmp/node1"
is 'stages all of the world' "$(world_sum source.samples 0 1 2)" 80
for i in "${all[@]}"; do
    isnt "node $i holds its share" "$(value "$tmp/node$i" ram.held)" 0
done
everywhere 'staged' "${all[@]}"
is 'nothing more comes from the source' "$(world_sum source.samples 0 1 2)" 80
ok 'staging again' dealfs stage "$tmp/node0"
is 'is done at once' "$(world_sum source.samples 0 1 2)" 80
ok 'verify' dealfs verify "$tmp/node2"
ok 'unmount' world_umount

# --- one with twice the room of the others ---
fresh
src=$tmp/even
mkdir "$src"
head -c $((4000 * 24117)) /dev/urandom | (cd "$src" && split -d -a 4 -b 24117)
world_options=([0]=ram=88M [1]=ram=44M [2]=ram=44M [3]=ram=44M)
ok 'one with twice the room: mount' world_mount 4 "$src"
is 'all own as many samples' "$(owners | tr '\n' ' ')" '0 1000 1 1000 2 1000 3 1000 '
field() { grep -o "\"$1\":[0-9.]*" | head -n 1 | sed 's/.*://'; }
moved=$(dealfs plan "$tmp/node0" epoch=0 ranks=4 batch=64 reply=summary | field moved)
ok "by locality few are moved: $moved of 4000" test "${moved:-4000}" -le 260
summary=$(dealfs plan "$tmp/node3" epoch=0 ranks=4 batch=64 mode=local reply=summary)
is 'reading locally all are read' "$(field unread <<<"$summary") $(field samples <<<"$summary")" '0 4000'
is 'by their owners' "$(field moved <<<"$summary")" 0
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
