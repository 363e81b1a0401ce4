#!/bin/bash
# Files of the source that are rewritten in place between two worlds: no node serves what its SSD held of them,
# whichever node scans.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
make_files "$src" 60 120000
mkdir "$tmp/ssd0" "$tmp/ssd1"
late=peer_timeout=600 # no answer is late, however slow the machine is
world_options=("ram=0,ssd=$tmp/ssd0,$late" "ram=0,ssd=$tmp/ssd1,$late")
settle "$src"
rewrite() { # file: other bytes; its size and its mtime are put back
    local time
    time=$(stat -c %y "$1")
    dd if=/dev/urandom of="$1" bs=1000 seek=20 count=1 conv=notrunc status=none && touch -d "$time" "$1"
}
everywhere() {
    reads "$1: node 0" "$src" "$tmp/node0"
    reads "$1: node 1" "$src" "$tmp/node1"
}
held() { # by node
    local i
    for i; do
        awk -F '\t' -v n="$i" '$2 == n { print $4 }' "$tmp/where"
    done
}

ok 'mount two nodes' world_mount 2
ok 'stage' dealfs stage "$tmp/node0"
is 'each file once' "$(world_sum source.samples 0 1)" 60
(cd "$src" && find . -type f -printf '%P\n') | xargs dealfs where "$tmp/node0" >"$tmp/where"
ok 'umount' world_umount

for i in 0 1; do
    held $i | head -3 >"$tmp/rewritten$i"
    is "three files that node $i holds" "$(wc -l <"$tmp/rewritten$i")" 3
    while read -r file; do
        rewrite "$src/$file"
    done <"$tmp/rewritten$i"
done
ok 'mount them again' world_mount 2
like 'the files are seen' "$(cat "$tmp/world.log")" '6 files were rewritten'
like 'each node has looked at half of them' "$(cat "$tmp/world.log")" 'other nodes looked at 5[0-9] of the files'
everywhere 'rewritten'
is 'the others are still held' "$(world_sum source.samples 0 1)" 6
ok 'umount' world_umount

# --- a node that was mounted by itself meanwhile knows more than the others ---
rewrite "$src/$(head -1 "$tmp/rewritten1")"
ok 'mount node 0 by itself' dealfs mount -o "state=$tmp/state0,${world_options[0]}" "$src" "$tmp/node0"
ok 'umount' dealfs umount "$tmp/node0"
ok 'mount both' world_mount 2
everywhere 'again'
ok 'umount' world_umount
nothing_left
done_testing
