#!/bin/bash
# After a turn the bytes follow: nothing is read from the source for it, what a node owns it has in the end, and servers
# die at each stage of it without a reader's notice.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src nodes=(0 1 2) seed=0
make_files "$src" 60 300000
mapfile -t files < <(cd "$src" && find . -type f -printf '%P\n')
world_default=ram=24M,exchange
export DEALFS_HALT=$tmp/halt
mkdir "$tmp/halt"

shuffle() {
    seed=$((seed + 1))
    timeout 40 dealfs shuffle --wait "$tmp/node0" seed="$seed" >"$tmp/shuffle.log" 2>&1 && return
    cat "$tmp/shuffle.log"
    return 1
}
state_of() { value "$tmp/node$1" move.state; }
has_died() { [ ! -e "$tmp/halt/$halted" ]; }
is_done() { [ "$(state_of 0)" = 'done' ]; }
own_is_local() { # its READs of what it owns are answered by its own tiers
    local before after
    dealfs where "$tmp/node$1" "${files[@]}" | awk -F '\t' -v node="$1" '$2 == node { print $4 }' >"$tmp/own"
    [ -s "$tmp/own" ] || return
    (cd "$tmp/node$1" && while read -r file; do drop_cache "$file"; done) <"$tmp/own"
    before=$(value "$tmp/node$1" reads.ram)
    (cd "$tmp/node$1" && xargs cat <"$tmp/own") >"$tmp/bytes"
    after=$(value "$tmp/node$1" reads.ram)
    (cd "$src" && xargs cat <"$tmp/own") | cmp - "$tmp/bytes" && [ $((after - before)) -ge "$(wc -l <"$tmp/own")" ]
}

ok 'mount' world_mount 3
ok 'stage' timeout 60 dealfs stage "$tmp/node0"
source=$(world_sum source.bytes 0 1 2)
is 'each byte was read once' "$source" 18000000
readers_start 0 1 2
ok 'all samples change their nodes' shuffle
readers_end 'readers see nothing of it'
is 'it is done' "$(state_of 0)" 'done'
is 'all that was to come came' "$(value "$tmp/node0" move.come_bytes)" "$(value "$tmp/node0" move.bytes)"
peer=$(world_sum reads.peer 0 1 2)
for i in "${nodes[@]}"; do ok "what node $i owns is in its tier" own_is_local "$i"; done
is 'and read from there, not from peers' "$(world_sum reads.peer 0 1 2)" "$peer"
is 'nothing was read from the source' "$(world_sum source.bytes 0 1 2)" "$source"

readers_start 0 1 2
move_and_kill() { # stage
    halted=$(pid_of 1 server)
    echo "$1 kill" >"$tmp/halt/$halted"
    shuffle || return
    wait_for 20 has_died && wait_for 20 is_done
}
ok 'a server dies while samples come' move_and_kill come # at each stage: tests/sim
readers_end 'readers saw nothing'
for i in "${nodes[@]}"; do reads "node $i" "$src" "$tmp/node$i"; done
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
