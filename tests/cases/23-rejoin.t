#!/bin/bash
# Worlds formed again over the same mounts: with one node less, one more, and in another order. What is held stays with
# its holder, whatever its number, so nothing that a node of the new world holds is read from the source again.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 90 120000
world_default=ram=32M,peer_timeout=600 # a slow machine is no silent node
files_of() { # of a node, by its number now, as the world seen from another says
    (cd "$src" && find . -type f -printf '%P\n') | xargs dealfs where "$tmp/node$2" |
        awk -F '\t' -v n="$1" '$2 == n { print $4 }' | sort
}

ok 'mount' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
is 'each file once' "$(world_sum source.samples 0 1 2 3)" 90
for i in 0 1 2 3; do
    files_of $i 0 >"$tmp/files$i"
done
ok 'leave' world_leave

# --- reversed ---
ok 'join in reversed order' world_join 3 2 1 0
is 'node 3 is number 0 now' "$(cat "$tmp/node3/.dealfs/node")" 0
for i in 0 1 2 3; do
    is "node $i has the files that it had" "$(files_of $((3 - i)) 1)" "$(cat "$tmp/files$i")"
done
everywhere 'reversed' 0 1 2 3
is 'nothing comes from the source' "$(world_sum source.samples 0 1 2 3)" 90
ok 'leave' world_leave

# --- one less ---
lost=$(wc -l <"$tmp/files2")
ok 'join without node 2' world_join 0 1 3
everywhere 'one less' 0 1 3
everywhere 'one less, again' 0 1 3
# They opened all but those $lost before, and these now.
is "only the $lost files that node 2 held come from the source, once" "$(world_sum source.samples 0 1 3)" 90
ok 'node 2 is up by itself' mounted "$tmp/node2"
reads 'node 2, alone' "$src" "$tmp/node2"
ok 'leave' world_leave

# --- and back: two holders of one extent, the lower number keeps it ---
before=$(world_sum source.samples 0 1 2 3)
ok 'join with node 2' world_join 0 1 2 3
everywhere 'all again' 0 1 2 3
is 'nothing comes from the source' "$(world_sum source.samples 0 1 2 3)" "$before"
ok 'leave' world_leave

# --- one more ---
mkdir "$tmp/node4"
world_count=5
ok 'a fifth mount, by itself' dealfs mount -o "state=$tmp/state4,$world_default" "$src" "$tmp/node4"
ok 'join with it' world_join 0 1 2 3 4
before=$(world_sum source.samples 0 1 2 3 4)
everywhere 'one more' 0 1 2 3 4
is 'nothing comes from the source' "$(world_sum source.samples 0 1 2 3 4)" "$before"
ok 'unmount' world_umount

# --- a new node gets its share of what nobody holds ---
rm -rf "$tmp"/state*
ok 'mount' world_mount 2
ok 'leave' world_leave
ok 'a third mount, by itself' dealfs mount -o "state=$tmp/state2,$world_default" "$src" "$tmp/node2"
ok 'join with it' world_join 0 1 2
share=$(files_of 2 0 | wc -l)
ok "it is to have about a third: $share of 90" test "$share" -ge 27 -a "$share" -le 33
everywhere 'with a share' 0 1 2
is 'each file was opened once' "$(world_sum source.samples 0 1 2)" 90
is 'by the new node its own' "$(value "$tmp/node2" source.samples)" "$share"
ok 'unmount' world_umount

# --- shards that survive a remount ---
mkdir "$tmp"/ssd{0,1,2}
world_default=ram=0,ssd=$tmp/ssd%r,ssd_size=64M,peer_timeout=600
rm -rf "$tmp"/state*
ok 'mount with SSDs' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
is 'each file once' "$(world_sum source.samples 0 1 2)" 90
ok 'unmount' world_umount
ok 'mount again' world_mount 3
everywhere 'remounted' 0 1 2
is 'nothing comes from the source' "$(world_sum source.samples 0 1 2)" 0
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
