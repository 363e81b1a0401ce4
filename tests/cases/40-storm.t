#!/bin/bash
# Losses in random order ($KILLS, 14; $SEED): servers, keepers, couriers, mpirun and whole nodes are killed, also in the
# middle of a join and two at once, or mpirun is told to end, while every node reads: no read fails on a survivor, no
# byte is wrong; then they join. And an owner that is busy is not taken for lost.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src
make_files "$src" 120 150000
world_default=ram=32M,peer_timeout=2
all=(0 1 2)
seed=${SEED:-$((EPOCHSECONDS % 32768))}
RANDOM=$seed
diag "SEED=$seed"

# --- readers, one a node; each has an end of its own ---
declare -A reader
reading() {
    rm -f "$tmp/stop$1"
    python3 "$top_srcdir/tests/lib/reader.py" "$src" "$tmp/node$1" "$tmp/stop$1" "$seed$1" >>"$tmp/reader$1.log" 2>&1 &
    reader[$1]=$!
    tap_pids+=($!)
}
reader_ended() { ! kill -0 "${reader[$1]}" || [ "$(ps -o stat= -p "${reader[$1]}")" = Z ]; }
read_right() { # and no more of it
    : >"$tmp/stop$1"
    wait_for 30 reader_ended "$1" && wait "${reader[$1]}" && return
    tail -n 5 "$tmp/reader$1.log"
    return 1
}

join() { # these, in any order
    shuffle "$@"
    world_join "${shuffled[@]}" && wait_for 20 are joined "$@"
}

# --- the kills ---
draw() { i=$((RANDOM % ${#all[@]})); } # not in a subshell, which has a RANDOM of its own
shuffle() { # in `shuffled`, by this seed
    local k n swap
    shuffled=("$@")
    for ((k = $# - 1; k > 0; k--)); do
        n=$((RANDOM % (k + 1)))
        swap=${shuffled[k]} shuffled[k]=${shuffled[n]} shuffled[n]=$swap
    done
}
# The moment is what is tried here: nothing is waited for.
moment() { printf -v pause '0.%03d' $((RANDOM % $1)) && sleep "$pause"; }
replaced() { # process, nodes: killed at once, and others follow them
    local i
    declare -A pids
    for i in "${@:2}"; do pids[$i]=$(pid_of "$i" "$1"); done
    kill -9 "${pids[@]}"
    for i in "${@:2}"; do
        wait_for 20 follows "$i" "$1" "${pids[$i]}" || return
    done
    wait_for 20 are joined "${all[@]}"
}
kill_server() { draw && replaced server "$i"; }
kill_servers() { replaced server 0 1 2; }
kill_keeper() { draw && replaced keeper "$i"; }
kill_keeper_then_server() { # the server has made itself a new keeper by then, or is about to
    local server keeper
    draw
    server=$(pid_of "$i" server) keeper=$(pid_of "$i" keeper)
    kill -9 "$keeper"
    wait_for 20 follows "$i" keeper "$keeper" && kill -9 "$server" && wait_for 20 follows "$i" server "$server" &&
        wait_for 20 are joined "${all[@]}"
}
lost_and_found() { wait_for 20 are degraded "${all[@]}" && read_on "${all[@]}" && join "${all[@]}"; }
kill_courier() { draw && kill -9 "$(pid_of "$i" courier)" && world_ended && lost_and_found; }
kill_mpirun() { kill -9 "$world_pid" && world_ended && lost_and_found; }
kill_courier_of_hanging_mpirun() { # it tells nobody who is lost
    kill -STOP "$world_pid" && kill -9 "$(pid_of 1 courier)" && wait_for 30 are degraded "${all[@]}" || return
    kill -9 "$world_pid"
    world_ended && lost_and_found
}
kill_mpirun_by_SIGTERM() { world_leave -TERM && lost_and_found; }
kill_mpirun_by_SIGINT() { world_leave -INT && lost_and_found; }
kill_courier_and_server() {
    local server
    draw
    server=$(pid_of "$i" server)
    kill -9 "$(pid_of $(((i + 1) % 3)) courier)" "$server" && wait_for 20 follows "$i" server "$server" &&
        world_ended &&
        lost_and_found
}
has_begun() { [ "$(pgrep -cP "$world_pid")" -ge 3 ]; }
# Whether that join comes to life depends on the moment; the next one does.
kill_in_join() { # server, courier or mpirun
    local what=$1 old
    world_leave && wait_for 20 are degraded "${all[@]}" || return
    draw
    world_launch -n 1 dealfs join "$tmp/node0" : -n 1 dealfs join "$tmp/node1" : -n 1 dealfs join "$tmp/node2"
    wait_for 10 has_begun || return
    moment 900
    case $what in
    server) old=$(pid_of "$i" server) && kill -9 "$old" && wait_for 20 follows "$i" server "$old" || return ;;
    courier) kill -9 "$(pgrep -P "$world_pid" | sed -n "$((i + 1))p")" ;;
    mpirun) kill -9 "$world_pid" ;;
    esac
    wait_for 60 world_settled || return
    if world_ready && [ "$what" = server ]; then
        wait_for 20 are joined "${all[@]}" && return
        kill "$world_pid"
    fi
    world_ended && read_on "${all[@]}" && join "${all[@]}"
}
kill_server_in_join() { kill_in_join server; }
kill_courier_in_join() { kill_in_join courier; }
kill_mpirun_in_join() { kill_in_join mpirun; }
# Its own reader ends before: what it would see is the end of its machine.
kill_node() {
    local left=() k
    draw
    for k in "${all[@]}"; do [ "$k" = "$i" ] || left+=("$k"); done
    read_right "$i" || return
    kill_whole "$i" && world_ended && [ -z "$(processes "$tmp/state$i ")" ] || return
    wait_for 20 are degraded "${left[@]}" && read_on "${left[@]}" &&
        join "${left[@]}" && [ "$(value "$tmp/node${left[0]}" nodes)" = 2 ] &&
        read_on "${left[@]}" || return
    timeout 60 dealfs mount -o "state=$tmp/state$i,$world_default" "$src" "$tmp/node$i" || return
    reading "$i"
    world_leave && join "${all[@]}"
}

ok 'mount' world_mount 3
for i in "${all[@]}"; do reading "$i"; done
deck=(server servers keeper keeper_then_server courier mpirun courier_and_server server_in_join courier_in_join
    mpirun_in_join node courier_of_hanging_mpirun mpirun_by_SIGTERM mpirun_by_SIGINT)
kills=${KILLS:-${#deck[@]}}
while [ ${#deck[@]} -lt "$kills" ]; do deck+=("${deck[@]}"); done
shuffle "${deck[@]:0:kills}"
deck=("${shuffled[@]}")
for what in "${deck[@]}"; do
    ok 'every node reads' read_on "${all[@]}"
    moment 300
    ok "killed: ${what//_/ }" "kill_$what" && continue
    diag "$(tail -n 20 "$tmp/world.log")"
    diag "$(for pid in $(processes); do ps -o pid=,stat=,wchan=,args= -p "$pid"; done)"
    break
done
for i in "${all[@]}"; do
    ok "no reader of node $i saw a fault" read_right "$i"
    diag "$(tail -n 1 "$tmp/reader$i.log")"
done
for i in "${all[@]}"; do
    same "every byte of node $i" "$src" "$tmp/node$i"
done
ok 'unmount' world_umount

# --- an owner stops answering, its source being slow ---
rm -rf "$tmp"/state*
echo 'delay=6000' >"$tmp/faults"
export DEALFS_SOURCE_FAULTS=file=$tmp/faults
ok 'mount over a source that takes 6 s' world_mount 2
unset DEALFS_SOURCE_FAULTS
file=$(cd "$src" && find . -type f -printf '%P\n' | xargs dealfs where "$tmp/node0" |
    awk -F '\t' '$2 == 1 { print $4; exit }')
ok "node 0 asks node 1 for $file" timeout 60 cmp "$src/$file" "$tmp/node0/$file"
is 'which has read it' "$(value "$tmp/node1" source.samples)" 1
is 'and node 0 has not' "$(value "$tmp/node0" source.samples)" 0
: >"$tmp/faults"
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
