#!/bin/bash
# The layout of a living world turns. All nodes take the next one together, also where one cannot save it. A request
# ends in bounded time. All ranks plan from the layout that they name. For losses at each stage see 40-loss.t.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src nodes=(0 1 2) files=48 epoch=0
make_files "$src" $files 60000
# No answer is late and no stopped courier is given up, however slow the machine is.
world_default=ram=16M,peer_timeout=600
export DEALFS_HALT=$tmp/halt
mkdir "$tmp/halt"

exchange() { # node, epoch
    dealfs exchange "$tmp/node$1" epoch="$2" fraction=0.25 seed=7 wait=3600 >"$tmp/exchange$1.log" 2>&1
}
turn_of() { value "$tmp/node$1" turn.number; }
layout_of() { value "$tmp/node$1" layout; }
alike() { wait_for eval 'all_alike turn_of "${nodes[@]}" && all_alike layout_of "${nodes[@]}"'; }

ok 'mount' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
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
turns=$(turn_of 0)
ok "there were two turns, or three where one asked late: $turns" test $((turns == 2 || turns == 3)) = 1
second=$(layout_of 0)
isnt 'it is another layout' "$second" "$first"
ok 'the newest, asked for again' exchange 1 "$(value "$tmp/node0" turn.epoch)"
is 'is not taken again' "$(turn_of 1) $(layout_of 1)" "$turns $second"
ok 'a plan is made from a layout before' dealfs plan "$tmp/node2" epoch=1 ranks=3 batch=4 layout="$first"
epoch=2

# --- a node cannot save what all have taken: it takes part all the same ---
pinned() { # how many plans the nodes have of an epoch, from the layout that node 0 names
    local i layout
    layout=$(layout_of 0)
    for i in "${nodes[@]}"; do
        dealfs plan "$tmp/node$i" epoch=1 ranks=3 batch=4 mode=local layout="$layout" | md5sum
    done | sort -u | wc -l
}
next_server() { follows 1 server "$1" && state_is 1 joined; }
tells() { dealfs status "$tmp/node1" | grep -q "the world cannot be saved in .*: $1"; }
turn_unsaved() { # words of health
    epoch=$((epoch + 1))
    exchange 0 $epoch || { cat "$tmp/exchange0.log"; return 1; }
    alike && [ "$(pinned)" = 1 ] && wait_for tells "$1"
}
for fault in 'save-layout 28 No space left on device' 'save-world 5 Input/output error'; do
    server=$(pid_of 1 server)
    read -r point number words <<<"$fault"
    echo "$point $number" >"$tmp/halt/$server"
    ok "a write that fails, $point: all turn, plan the same, and it is said" turn_unsaved "$words"
    kill -9 "$server"
    ok 'the next server' wait_for next_server "$server"
    ok 'has the layout of all' alike
done
mv "$tmp/state1" "$tmp/away"
ok 'the state directory is removed: the same' turn_unsaved 'No such file'
mv "$tmp/away" "$tmp/state1"
saved() { [ -s "$tmp/state1/layout-$(layout_of 0)" ]; }
ok 'when it is back the world is saved' wait_for saved

# --- a courier that is stopped: who asks is answered in time, and no plan waits ---
courier=$(pid_of 1 courier)
kill -STOP "$courier"
background dealfs exchange "$tmp/node0" epoch=500 fraction=0.5 wait=3600 >"$tmp/patient.log" 2>&1
patient=$!
one_line 'the request fails when its time is over' 'exchange .*: the nodes have not agreed on it in time' \
    dealfs exchange "$tmp/node0" epoch=500 fraction=0.5 wait=2
ok 'one that was told to wait longer still waits' kill -0 $patient
is 'plans are made meanwhile' "$(pinned)" 1
like 'it is a line of health' "$(dealfs status "$tmp/node0")" 'the last change of owners .exchange. took too long'
kill -CONT "$courier"
ok 'when it goes on so does the other request' wait $patient
ok 'and the next one' exchange 0 501
ok 'together' alike

# --- two jobs, whose exchanges interleave: each has its own layouts ---
job() { # node, first epoch
    local e
    for e in 0 1 2; do
        dealfs exchange "$tmp/node$1" epoch=$(($2 + e)) fraction=0.2 seed="$1" wait=3600 >"$tmp/job$1" 2>&1 || return
        sed -n 's/.*layout \([0-9a-f]*\).*/\1/p' "$tmp/job$1" >>"$tmp/layouts$1"
    done
}
two_jobs() {
    local first status=0
    job 0 7 &
    first=$!
    job 2 3 || status=1
    wait $first && return $status
}
turns=$(turn_of 0)
ok 'two jobs exchange' two_jobs
ok 'all nodes have their last turn' alike
is 'each its own way' "$(cat "$tmp"/layouts[02] | sort -u | wc -l)" 6
is 'and each turn once' "$(turn_of 1)" $((turns + 6))
agree() {
    local layout i
    while read -r layout; do
        for i in "${nodes[@]}"; do
            dealfs plan "$tmp/node$i" epoch=9 ranks=3 batch=4 mode=local layout="$layout" >"$tmp/plan$i" &&
                cmp "$tmp/plan$i" "$tmp/plan0" || return
        done
    done < <(cat "$tmp"/layouts[02])
}
ok 'all nodes plan alike from each of them' agree

# --- a script that is restarted in every epoch, with a server: it asks again, and nothing moves ---
restarted() {
    local e node other layout turn
    for e in 601 602 603; do
        node=$((e % 3)) other=$(((e + 1) % 3))
        exchange $node $e && alike || return
        layout=$(layout_of 0) turn=$(turn_of 0)
        kill -9 "$(pid_of $node server)"
        exchange $other $e || { cat "$tmp/exchange$other.log"; return 1; }
        grep -q "layout $layout" "$tmp/exchange$other.log" && [ "$(turn_of $other)" = "$turn" ] || return
    done
}
ok 'the same request has the same layout' restarted

for i in "${nodes[@]}"; do reads "node $i" "$src" "$tmp/node$i"; done
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
