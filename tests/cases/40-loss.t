#!/bin/bash
# Losses in a table: what the world does, who is lost at that moment, and what then holds. Each node has a reader: no
# read fails on a survivor, and no byte is wrong. The rows are played in random order ($SEED; $KILLS: so many of them).
# All moments of a turn and of a move, and servers and couriers that are stopped: tests/sim.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

# Several processes are lost at once, each on the next node: +. One after the other: `then`.
table='
reading        server                stays
reading        server+server+server  stays
reading        keeper                stays
reading        keeper-then-server    stays
reading        server+courier        ends
reading        courier               ends
reading        courier-then-mpirun   ends
reading        mpirun                ends
reading        mpirun:TERM           ends
reading        mpirun:INT            ends
reading        node                  returns
joining        server                stays-or-ends
joining        courier               ends
joining        mpirun                ends
turn/computed  server+keeper         stays
turn/taken     server+keeper         stays
turn/begin     courier               ends
turn/settle    courier               ends
moving         server                stays
moving/come    server                stays
moving         courier               ends
'

src=$tmp/src all=(0 1 2) files=90 bytes=$((90 * 100000))
make_compressible "$src" $files 100000
# Some files find no room, as they are; compressed all do.
# No answer of a node that lives is late, however slow the machine is.
world_default=ram=3500K,peer_timeout=60,exchange,exchange_rate=1M
export DEALFS_HALT=$tmp/halt
mkdir "$tmp/halt"
seed=${SEED:-$((EPOCHSECONDS % 32768))}
RANDOM=$seed
diag "SEED=$seed"

# --- readers, one per node; each has an end of its own ---
declare -A reader
reading() {
    rm -f "$tmp/stop$1"
    background python3 "$top_srcdir/tests/lib/reader.py" "$src" "$tmp/node$1" "$tmp/stop$1" "$seed$1" \
        >>"$tmp/reader$1.log" 2>&1
    reader[$1]=$!
}
reader_ended() { ! kill -0 "${reader[$1]}" || [ "$(ps -o stat= -p "${reader[$1]}")" = Z ]; }
read_right() { # and no more of it
    : >"$tmp/stop$1"
    wait_for reader_ended "$1" && wait "${reader[$1]}" && return
    tail -n 5 "$tmp/reader$1.log"
    return 1
}

# --- what is looked at ---
from_source() { world_sum source.bytes "${all[@]}"; }
turn_of() { value "$tmp/node$1" turn.number; }
layout_of() { value "$tmp/node$1" layout; }
at_rest() { # all nodes have the same layout, and what they own
    local k
    for k in "${all[@]}"; do
        [[ $(value "$tmp/node$k" move.state) = @(done|none) ]] || return
    done
    all_alike turn_of "${all[@]}" && all_alike layout_of "${all[@]}"
}
without_owner() {
    (cd "$src" && find . -type f -printf '%P\n' | sort) | xargs dealfs where "$tmp/node0" | cut -f 2 | grep -c -- - || :
}

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
join() { # these, in any order
    shuffle "$@"
    world_join "${shuffled[@]}" && wait_for are joined "$@"
}

# --- what the world does: `asked` is a request that has been begun, if there is one ---
number=0 asked='' halted=()
ask() { # words for dealfs; where nobody is lost
    [ "$1" = stage ] || set -- "$@" wait=3600
    dealfs "$1" "$tmp/node$(((i + 2) % 3))" "${@:2}" >"$tmp/asked.log" 2>&1 &
    asked=$!
}
# The server or courier of each victim stops when it comes to a point; a keeper goes as its server stands there.
halts() { # point, victims
    local k=$i process
    for process in ${2//+/ }; do
        [ "$process" = courier ] || process=server
        halted+=("$(pid_of "$k" "$process")")
        echo "$1 stop" >"$tmp/halt/${halted[-1]}"
        k=$(((k + 1) % 3))
    done
}
have_halted() {
    local pid
    for pid in "${halted[@]}"; do is_in "$pid" T || return; done
}
begin_reading() { moment 300; }
stages() { [ "$(value "$tmp/node0" stage.state)" != idle ]; }
begin_staging() {
    ask stage
    wait_for stages
}
has_begun() { [ "$(pgrep -cP "$world_pid")" -ge 3 ]; }
begin_joining() {
    world_leave -TERM && wait_for are degraded "${all[@]}" || return
    world_launch -n 1 dealfs join "$tmp/node0" : -n 1 dealfs join "$tmp/node1" : -n 1 dealfs join "$tmp/node2"
    wait_for has_begun && moment 900
}
begin_turn() { # point, victims
    halts "$@"
    ask exchange epoch=$((number += 1)) fraction=0.05 seed=7
    wait_for have_halted
}
# What readers read moves at once, so that they can end a move before it is looked at: then there is another one.
begin_moving() { # point, victims
    if [ -n "$1" ]; then
        halts "$@"
        ask shuffle seed=$((number += 1))
        wait_for have_halted
        return
    fi
    until [ "$(value "$tmp/node0" move.state)" = moving ]; do
        dealfs shuffle "$tmp/node0" seed=$((number += 1)) wait=3600 || return
    done
}

# --- who is lost: of node i, and of those after it ---
declare -A lost # the processes that others are to follow, by node:process
victims=()
choose() { # before one of them is stopped, and says nothing
    local k=$i process
    for process in ${1//+/ }; do
        victims+=("$(pid_of "$k" "$process")")
        [ "$process" = courier ] || lost[$k:$process]=${victims[-1]}
        k=$(((k + 1) % 3))
    done
}
lose() {
    local pid
    [ "$doing$1" != joiningcourier ] || victims=("$(pgrep -P "$world_pid" | sed -n "$((i + 1))p")")
    kill -9 "${victims[@]}"
    for pid in "${halted[@]}"; do kill -CONT "$pid" 2>/dev/null || :; done
}
# The server has made itself a new keeper by then, or is about to.
lose_keeper_then_server() {
    local server keeper
    server=$(pid_of "$i" server) keeper=$(pid_of "$i" keeper)
    kill -9 "$keeper"
    wait_for follows "$i" keeper "$keeper" && kill -9 "$server" && lost[$i:server]=$server
}
# mpirun tells nobody who is lost.
lose_courier_then_mpirun() {
    kill -STOP "$world_pid" && kill -9 "$(pid_of "$i" courier)" && wait_for are degraded "${all[@]}" || return
    kill -9 "$world_pid"
}
none_of_node() { [ -z "$(processes "$tmp/state$i ")" ]; }
# Its own reader ends before: what it would see is the end of its machine.
lose_node() {
    local left=() k
    for k in "${all[@]}"; do [ "$k" = "$i" ] || left+=("$k"); done
    read_right "$i" && kill_whole "$i" && world_ended && wait_for none_of_node || return
    wait_for are degraded "${left[@]}" && read_on "${left[@]}" &&
        join "${left[@]}" && [ "$(value "$tmp/node${left[0]}" nodes)" = 2 ] && read_on "${left[@]}" &&
        world_leave -TERM || return
    dealfs mount -o "state=$tmp/state$i,$world_default" "$src" "$tmp/node$i" && reading "$i"
}

# --- what then holds ---
others_follow() {
    local k
    for k in "${!lost[@]}"; do wait_for follows "${k%:*}" "${k#*:}" "${lost[$k]}" || return; done
}
then_stays() {
    others_follow && wait_for are joined "${all[@]}" || return
    [ -z "$asked" ] || wait "$asked" || { cat "$tmp/asked.log"; return 1; }
    [ "$doing" != turn ] || [ "$(turn_of 0)" = $((turns + 1)) ] || { echo "$turns, now $(turn_of 0) turns"; return 1; }
    # Who is stopped for too long is not asked: then much comes from the source.
    [ "$doing$point" != moving ] || [ $(($(from_source) - before)) -le $((bytes / 2)) ] ||
        { echo "read again: $(($(from_source) - before)) of $bytes bytes"; return 1; }
}
then_ends() {
    [ -z "$asked" ] || wait "$asked" || : # its turn may have been taken before
    { [ -z "$world_pid" ] || world_ended; } && others_follow && wait_for are degraded "${all[@]}" &&
        read_on "${all[@]}" && join "${all[@]}"
}
then_returns() { join "${all[@]}" && dealfs stage "$tmp/node$i"; }
# Whether that join comes to life depends on the moment; the next one does.
lives_or_ends() { world_gone || { world_ready && are joined "${all[@]}"; }; }
then_stays_or_ends() {
    others_follow && wait_for lives_or_ends || return
    ! world_gone || then_ends
}

row() { # doing[/point], victims, what then holds
    local point
    doing=${1%/*} point='' asked='' halted=() victims=() lost=()
    [ "$doing" = "$1" ] || point=${1#*/}
    i=$((RANDOM % 3)) turns=$(turn_of 0) before=$(from_source)
    case $2 in mpirun* | *-then-* | node) ;; *) choose "$2" ;; esac
    "begin_$doing" "$point" "$2" || { echo "not begun: $1"; return 1; }
    case $2 in
    mpirun) kill -9 "$world_pid" ;;
    mpirun:*) kill -"${2#*:}" "$world_pid" ;;
    *-then-* | node) "lose_${2//-/_}" ;;
    *) lose "$2" ;;
    esac || return
    "then_${3//-/_}" && wait_for at_rest
}

ok 'mount' world_mount 3
for i in "${all[@]}"; do reading "$i"; done
none=$(without_owner)
ok "of $files files $none have no owner" test "$none" -gt 5
ok 'lost while staging: server' row staging server stays
ok 'stage' dealfs stage "$tmp/node0"
is 'all files have owners' "$(without_owner)" 0
mapfile -t rows < <(grep . <<<"$table")
shuffle "${rows[@]}"
for what in "${shuffled[@]:0:${KILLS:-${#rows[@]}}}"; do
    read -r doing victims holds <<<"$what"
    ok 'every node reads' read_on "${all[@]}"
    ok "lost while $doing: $victims; the world $holds" row "$doing" "$victims" "$holds" && continue
    diag "$(tail -n 20 "$tmp/world.log")"
    diag "$(for pid in $(processes); do ps -o pid=,stat=,wchan=,args= -p "$pid"; done)"
    break
done
for i in "${all[@]}"; do
    ok "no reader of node $i saw a fault" read_right "$i"
    diag "$(tail -n 20 "$tmp/reader$i.log")"
done

# --- nothing is lost for good ---
ok 'stage' dealfs stage "$tmp/node1"
is 'all files have owners' "$(without_owner)" 0
before=$(from_source)
everywhere 'every byte' "${all[@]}"
is 'nothing comes from the source' "$(from_source)" "$before"
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
