#!/bin/bash
# The layout of a living world turns: all nodes take the next one together, whoever dies at whatever stage of it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse
exclusive world

src=$tmp/src nodes=(0 1 2) files=48 epoch=0
make_files "$src" $files 60000
world_default=ram=16M
export DEALFS_HALT=$tmp/halt
mkdir "$tmp/halt"

halts() { # node, process, POINT stop|kill; the process is $halted
    halted=$(pid_of "$1" "$2")
    echo "$3 $4" >"$tmp/halt/$halted"
}
is_stopped() { [ "$(ps -o stat= -p "$1" | cut -c 1)" = T ]; }
exchange() { # node, epoch
    timeout 30 dealfs exchange "$tmp/node$1" epoch="$2" fraction=0.25 seed=7 >"$tmp/exchange$1.log" 2>&1
}
turn_of() { value "$tmp/node$1" turn.number; }
layout_of() { value "$tmp/node$1" layout; }
all_alike() { # what each node says
    local i first
    first=$("$@" 0)
    for i in "${nodes[@]}"; do
        [ "$("$@" "$i")" = "$first" ] || return
    done
}
alike() { wait_for 10 eval 'all_alike turn_of && all_alike layout_of'; }

ok 'mount' world_mount 3
ok 'stage' timeout 60 dealfs stage "$tmp/node0"
is 'the world has not turned yet' "$(turn_of 1)" 0
first=$(layout_of 0)

# --- several are asked for at once ---
ask_at_once() {
    local i pids=() status=0
    for i in "${nodes[@]}"; do
        exchange "$i" $((i == 2 ? 1 : i + 1)) &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || status=1; done
    [ $status = 0 ] || cat "$tmp"/exchange?.log
    return $status
}
ok 'three nodes ask, two of them for the same' ask_at_once
ok 'all nodes have the same layout' alike
is 'there were two turns' "$(turn_of 0)" 2
second=$(layout_of 0)
isnt 'it is another layout' "$second" "$first"
ok 'what was taken already' exchange 1 1
is 'is not taken again' "$(turn_of 1) $(layout_of 1)" "2 $second"
ok 'a plan is made from a layout before' dealfs plan "$tmp/node2" epoch=1 ranks=3 batch=4 layout="$first"
epoch=2

# --- a server, and a keeper, die at each stage of a turn ---
readers_start 0 1 2
turn_and_kill() { # stage
    local server keeper
    epoch=$((epoch + 1))
    halts 1 server "$1" kill
    halts 2 server "$1" stop
    server=$halted keeper=$(pid_of 2 keeper)
    exchange 0 $epoch &
    wait_for 20 is_stopped "$server" || return
    kill -9 "$keeper"
    kill -CONT "$server"
    wait $! || { cat "$tmp/exchange0.log"; return 1; }
    wait_for 20 eval "[ \"\$(pid_of 2 keeper)\" != $keeper ]" && [ ! -e "$tmp/halt/$server" ] && alike
}
for stage in begin compute saved settled taken; do
    ok "a server and a keeper die: $stage" turn_and_kill $stage
done
is 'each was done once' "$(turn_of 2)" $epoch
readers_end 'readers saw nothing'
is 'a server that was started anew knows what was taken' "$(exchange 1 $epoch && turn_of 1)" $epoch

# --- a courier dies: the world ends, and is joined again ---
readers_start 0 1 2
lose_courier() { # node, stage
    epoch=$((epoch + 1))
    halts "$1" courier "$2" kill
    exchange 2 $epoch # which node 2 may have taken before
    wait_for 20 world_gone || return
    wait "$world_pid" 2>/dev/null
    [ ! -e "$tmp/halt/$halted" ] && world_join 0 1 2 && alike
}
for at in 1:begin 0:rooms 0:conclude 1:settle 0:settle; do
    ok "the courier of node ${at%:*} dies: ${at#*:}" lose_courier "${at%:*}" "${at#*:}"
done
ok 'and the layout turns again' exchange 1 100
ok 'on all nodes' alike
readers_end 'readers saw nothing'
for i in "${nodes[@]}"; do reads "node $i" "$src" "$tmp/node$i"; done
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
