#!/bin/bash
# What is lost while samples move: a server, a courier. Readers on all nodes check every byte; the source gives again
# what was lost and nothing else. SSDs that are nearly full. Lost nodes, servers that are stopped, and all moments of a
# move are played by tests/sim; keepers that die by 40-storm.t.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src all=(0 1 2 3)
for size in 20000 60000 120000; do make_files "$src/s$size" 48 $size; done
bytes=$(((20000 + 60000 + 120000) * 48))
settle "$src"

at_rest() {
    local i
    for i in "${all[@]}"; do
        [[ $(value "$tmp/node$i" move.state) = @(done|none) ]] || return
    done
}
from_source() { world_sum source.bytes "${all[@]}"; }
seed=0
# All samples are to move. What readers read moves at once, so that they can end a move before it is looked at: then
# there is another one.
move_all() {
    local try state
    for try in 1 2 3 4 5; do
        seed=$((seed + 1))
        timeout 60 dealfs shuffle "$tmp/node$1" seed=$seed || return
        state=$(value "$tmp/node0" move.state)
        [ "$state" != moving ] || return 0
        diag "try $try: $state"
        [ "$state" = 'done' ] || return
    done
    return 1
}
begin() { ok 'all samples move' move_all "$1"; }
world_default=ram=64M,peer_timeout=2,exchange,exchange_rate=1M
export DEALFS_HALT=$tmp/halt
mkdir "$tmp/halt"
ok 'four nodes' world_mount 4
ok 'stage' timeout 60 dealfs stage "$tmp/node0"

# --- a server: the next one goes on ---
readers_start "${all[@]}"
begin 1
before=$(from_source) old=$(pid_of 2 server)
kill -9 "$old"
ok 'kill -9 of a server: another follows' wait_for 20 follows 2 server "$old"
ok 'all stay joined' wait_for 20 are joined "${all[@]}"
ok 'all is moved' wait_for 40 at_rest
readers_end 'no reader saw it'
lost=$(($(from_source) - before))
ok "of the source what was not stored yet: $lost bytes" test $lost -le $((bytes / 2))

# --- a server, at the moment when a sample comes ---
has_died() { [ ! -e "$tmp/halt/$old" ]; }
readers_start "${all[@]}"
old=$(pid_of 1 server)
echo 'come kill' >"$tmp/halt/$old"
begin 0
ok 'a server dies as a sample comes' wait_for 20 has_died
ok 'another follows' wait_for 20 follows 1 server "$old"
ok 'all is moved' wait_for 40 at_rest
readers_end 'no reader saw it'
before=$(from_source)
everywhere 'moved' "${all[@]}"
is 'all is held' "$(from_source)" "$before"

# --- a courier: the world ends, and goes on from what each node holds ---
readers_start "${all[@]}"
begin 2
before=$(from_source)
kill -9 "$(pid_of 1 courier)"
ok 'kill -9 of a courier: the world ends' world_ended
ok 'all nodes read on' read_on "${all[@]}"
ok 'join' world_join "${all[@]}"
ok 'all is where it belongs' wait_for 40 at_rest
readers_end 'no reader saw it'
alone=$(from_source)
everywhere 'joined' "${all[@]}"
is 'all is held' "$(from_source)" "$alone"
diag "without a world $((alone - before)) bytes came from the source"

ok 'unmount' world_umount
world_count=0

# --- SSDs that are nearly full: what has gone gives its room to what comes; where there is none it stays ---
all=(0 1)
for options in ssd_size=21M,exchange ssd_size=6M; do
    rm -rf "$tmp"/state* "$tmp"/ssd*
    for i in "${all[@]}"; do
        mkdir "$tmp/ssd$i"
        world_options[i]=ram=0,ssd=$tmp/ssd$i,$options
    done
    ok "two nodes, $options" world_mount 2
    ok 'stage' timeout 60 dealfs stage "$tmp/node0"
    unlike 'all of it' "$(cat "$tmp/.output")" 'no room'
    source=$(from_source)
    readers_start "${all[@]}"
    ok 'all samples are to move' timeout 60 dealfs shuffle "$tmp/node1" seed=5
    ok 'it comes to an end' wait_for 60 at_rest
    readers_end 'no reader saw it'
    refused=$(value "$tmp/node0" move.refused_samples)
    diag "of $(value "$tmp/node0" move.samples) samples $refused found no room;" \
        "$(value "$tmp/node0" move.rewritten_bytes) bytes were rewritten"
    [[ $options != *exchange ]] || is 'there was room for all' "$refused" 0
    everywhere "$options" "${all[@]}"
    is 'nothing comes from the source' "$(from_source)" "$source"
    ok 'unmount' world_umount
done
nothing_left 'nothing is left'
done_testing
