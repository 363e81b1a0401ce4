#!/bin/bash
# What is lost while samples move: a server, a keeper, a courier, a whole node; one that is stopped. Readers on all
# nodes check every byte; the source gives again what was lost and nothing else. SSDs that are nearly full.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src all=(0 1 2 3)
for size in 20000 60000 120000; do make_files "$src/s$size" 48 $size; done
bytes=$(((20000 + 60000 + 120000) * 48))
settle "$src"

state_is() { [ "$(value "$tmp/node$1" state)" = "$2" ]; }
are() { # state, nodes
    local i
    for i in "${@:2}"; do state_is "$i" "$1" || return; done
}
moving() { [ "$(value "$tmp/node0" move.state)" = moving ]; }
at_rest() {
    local i
    for i in "${all[@]}"; do
        [[ $(value "$tmp/node$i" move.state) = @(done|none) ]] || return
    done
}
from_source() { world_sum source.bytes "${all[@]}"; }
seed=0
begin() { # a move that takes a while
    seed=$((seed + 1))
    ok 'all samples are to move' timeout 60 dealfs shuffle "$tmp/node$1" seed=$seed
    ok 'they do' moving
}
follows() { # node, process, the pid that it had
    local now
    now=$(timeout 20 cat "$tmp/node$1/.dealfs/status" | grep -o "\"$2\": *[0-9]*" | grep -o '[0-9]*$') &&
        [ "$now" != "$3" ]
}
answered() { python3 -c '
import json, sys
print(sum(json.load(open(sys.argv[1]))["reads"].values()))' "$tmp/node$1/.dealfs/status"; }
read_more() { [ "$(answered "$1")" -gt $((seen[$1] + 20)) ]; }
declare -A seen
read_on() { # each of these nodes has answered some more
    local i
    for i; do seen[$i]=$(answered "$i"); done
    for i; do wait_for 20 read_more "$i" || return; done
}
everywhere() {
    local i
    for i in "${all[@]}"; do reads "$1: node $i has every byte" "$src" "$tmp/node$i"; done
}
world_ended() {
    wait_for 30 world_gone || return
    wait "$world_pid" 2>/dev/null
    world_pid=''
}

world_default=ram=64M,peer_timeout=2,exchange,exchange_rate=1M
ok 'four nodes' world_mount 4
ok 'stage' timeout 60 dealfs stage "$tmp/node0"

# --- servers and keepers: the next one goes on ---
for process in server keeper; do
    readers_start "${all[@]}"
    begin 1
    before=$(from_source) old=$(pid_of 2 $process)
    kill -9 "$old"
    ok "kill -9 of a $process: another follows" wait_for 20 follows 2 $process "$old"
    ok 'all stay joined' wait_for 20 are joined "${all[@]}"
    ok 'all is moved' wait_for 40 at_rest
    readers_end 'no reader saw it'
    lost=$(($(from_source) - before))
    ok "of the source what was not stored yet: $lost bytes" test $lost -le $((bytes / 2))
done
before=$(from_source)
everywhere 'moved'
is 'all is held' "$(from_source)" "$before"

# --- one that stands still stops nobody else ---
readers_start "${all[@]}"
begin 0
stopped=$(pid_of 3 server)
kill -STOP "$stopped"
ok 'a server is stopped: the others read on' read_on 0 1 2
kill -CONT "$stopped"
ok 'all is moved' wait_for 40 at_rest
readers_end 'no reader saw it'

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
everywhere 'joined'
is 'all is held' "$(from_source)" "$alone"
diag "without a world $((alone - before)) bytes came from the source"

# --- a whole node ---
readers_start 0 1 2
begin 0
kill_whole 3
ok 'a node is lost: the world ends' world_ended
ok 'the others say so' wait_for 20 are degraded 0 1 2
ok 'they read on' read_on 0 1 2
all=(0 1 2)
ok 'they join' world_join "${all[@]}"
readers_end 'no survivor saw it'
ok 'stage what it had' timeout 60 dealfs stage "$tmp/node0"
everywhere 'without it'
ok 'what is left of it is taken away' timeout 60 dealfs umount "$tmp/node3"
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
    everywhere "$options"
    is 'nothing comes from the source' "$(from_source)" "$source"
    ok 'unmount' world_umount
done
nothing_left 'nothing is left'
done_testing
