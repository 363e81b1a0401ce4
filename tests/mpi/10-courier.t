#!/bin/bash
# Couriers under mpirun, each with a server that is none (fake-server): how a world forms, carries, suffers and ends.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap"
require mpirun strace eu-stack
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
# What Open MPI has not freed at its end is not ours.
[ -z "${TEST_SANITIZER-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
courier=$top_builddir/dealfs-courier fake=$top_builddir/tests/mpi/fake-server

# A world has a folder w with, for node i, the state si and what its server says in outi. What couriers say is in mpi.
world=0 w='' server=() launcher=''
new_world() {
    world=$((world + 1)) w=$tmp/w$world server=()
    mkdir "$w"
    : >"$w/mpi"
}
serve() { # node, arguments of its server
    mkdir -p "$w/s$1"
    "$fake" "$w/s$1" "${id-node$1}" "${@:2}" >>"$w/out$1" 2>&1 &
    server[$1]=$!
    tap_pids+=($!)
    wait_for test -S "$w/s$1/courier"
}
serve_all() { # nodes, arguments
    local i
    for ((i = 0; i < $1; i++)); do serve $i "${@:2}"; done
}
launch() { # nodes, arguments of mpirun, --, arguments of the courier
    local n=$1 mpi=()
    shift
    while [ "${1---}" != -- ]; do mpi+=("$1"); shift; done
    shift
    : >"$w/mpi" # that of the last world said "ready"
    # shellcheck disable=SC2016
    mpirun -n "$n" "${mpi[@]}" sh -c 'state=$1 courier=$2; shift 2
        echo $$ >"$state/pid$OMPI_COMM_WORLD_RANK"
        exec "$courier" --state "$state/s$OMPI_COMM_WORLD_RANK" --mountpoint /none "$@"' sh "$w" "$courier" "$@" \
        >"$w/mpi" 2>&1 &
    launcher=$!
    tap_pids+=($!)
}
said() { grep -q -- "$2" "$w/$1"; }          # by whom, what
live() { wait_for said mpi '^ready$'; }
all_said() { # nodes, what
    local i
    for ((i = 0; i < $1; i++)); do said "out$i" "$2" || return; done
}
hung_up() { # the servers of nodes 0 to 2, how often
    [ "$(grep -c hang-up "$w"/out? | grep -c ":$1\$")" = 3 ]
}
ended() { # status of mpirun
    wait "$launcher"
    local status=$?
    [ $status = "$1" ] || { echo "mpirun ended with $status"; cat "$w/mpi"; return 1; }
}
end_servers() {
    local i
    for i in "${!server[@]}"; do kill "${server[i]}" 2>/dev/null; done
}

# --- it carries ---
for transport in default tcp; do
    new_world
    serve_all 3 fetch=300 depth=16 value=113000 held=3
    case $transport in
    tcp) launch 3 --mca btl tcp,self -- ;;
    *) launch 3 -- ;;
    esac
    ok "3 nodes, $transport: ready" live
    like "a line per node" "$(cat "$w/mpi")" $'node 0 fake 1 GiB\nnode 1 fake 1 GiB\nnode 2 fake 1 GiB\nready'
    ok 'all fetches end' wait_for all_said 3 fetched
    ok 'and all that came was right' all_said 3 '^fetched: 300 right, 0 waits, 0 open, 0 down, 0 bad, 0 errors'
    ok 'news come from the others' wait_for said out0 'news from 2'
    end_servers
    ok 'when all servers have ended the world ends in order' ended 0
done

new_world
serve_all 2 fetch=40 depth=40 value=131000 values=8
launch 2 --mca btl tcp,self --
ok 'long spans' wait_for all_said 2 '^fetched: 40 right'
end_servers
ok 'leave in order' ended 0

# With process_vm_readv the kernel looks up each page of a sample.
cat >"$tmp/traced" <<EOF
#!/bin/sh
exec strace -f -qq -e trace=process_vm_readv -o "$tmp/calls.\$\$" "$courier" "\$@"
EOF
chmod +x "$tmp/traced"
new_world
serve_all 2 fetch=100 depth=8 value=131072
courier=$tmp/traced launch 2 --
ok 'values of 128 KiB in shared memory' wait_for all_said 2 '^fetched: 100 right'
is 'are copied without a system call' "$(cat "$tmp"/calls.*)" ''
end_servers
ok 'leave in order' ended 0

# --- what they hold ---
for groups in 1 3; do
    new_world
    serve 0 held=3
    serve 1
    serve 2 held=4
    launch 3 -- --groups $groups
    ok "$groups groups of nodes that hold something: ready" live
    case $groups in
    1) expected='held 3 by 0;held 4 by 0;held 5 by 2' ;;
    *) expected='held 3 by 0;held 4 by 0;held 4 by 2;held 5 by 2' ;;
    esac
    for i in 0 1 2; do
        is "node $i hears who holds what" "$(grep ^held "$w/out$i" | paste -sd ';')" "$expected"
    done
    end_servers
    ok 'leave in order' ended 0
done

new_world
serve 0 held=3 claim=1
serve 1 held=3 claim=2
serve 2 held=4 claim=3
launch 3 --
ok 'nodes with other claims: ready' live
is 'who holds all goes before who holds a part, then who was the owner' \
    "$(grep ^held "$w/out0" | paste -sd ';')" 'held 3 by 1;held 4 by 2;held 5 by 2'
end_servers
ok 'leave in order' ended 0

# A world of so many extents is formed again when its nodes have cached something.
new_world
serve 0 extents=70000000 held=3
serve 1 extents=70000000
launch 2 --
ok 'more extents than 67,108,864: ready' live
is 'and what is held is known' "$(grep ^held "$w/out1" | paste -sd ';')" 'held 3 by 0;held 4 by 0'
end_servers
ok 'leave in order' ended 0

# --- what is asked while samples move ---
new_world
serve 0 fetch=20 flags=1
serve 1 fetch=20 flags=2 values=60000
launch 2 --
ok 'what is held of what was kept before: nothing' wait_for said out0 \
    '^fetched: 0 right, 0 waits, 0 open, 0 down, 0 bad, 20 errors'
ok 'what is stored of many extents' wait_for said out1 '^fetched: 20 right'
end_servers
ok 'leave in order' ended 0

# --- what is slow, what fails ---
new_world
serve_all 2 fetch=8 depth=8 slow=1 timeout_ms=400
launch 2 --
ok 'a slow source: WAIT is said repeatedly' wait_for all_said 2 '^waits 100$'
fails 'and nothing else' all_said 1 fetched
kill -USR2 "${server[@]}"
ok 'all come in the end' wait_for all_said 2 '^fetched: 8 right, [0-9]* waits, 0 open, 0 down, 0 bad, 0 errors'
end_servers
ok 'leave in order' ended 0

new_world
serve_all 2 fetch=50 error=5
launch 2 --
ok 'an error of the owner reaches who asks' wait_for all_said 2 \
    '^fetched: 0 right, 0 waits, 0 open, 0 down, 0 bad, 50 errors'
end_servers
ok 'leave in order' ended 0

new_world
serve_all 2 fetch=60 lost=3
launch 2 -x DEALFS_COURIER_FAULTS=damage:6,short:5,twice:4,never:10 --
ok 'answers damaged, short, doubled or missing' wait_for all_said 2 fetched
is 'those that are damaged or short are seen, three do not come' \
    "$(grep -o '^fetched: [0-9]* right.* errors' "$w/out0")" \
    'fetched: 47 right, 0 waits, 3 open, 0 down, 10 bad, 0 errors'
end_servers
ok 'leave in order' ended 0

# Questions that only a courier may answer (FETCH_SHARED, 64), from the RAM tier; these servers share none.
new_world
serve_all 2 fetch=50 flags=64
launch 2 --
ok 'questions for couriers alone' wait_for all_said 2 fetched
is 'are refused at once, although the servers could answer' "$(grep -o '^fetched: [0-9]* right.* errors' "$w/out0")" \
    'fetched: 0 right, 0 waits, 0 open, 0 down, 0 bad, 50 errors'
end_servers
ok 'leave in order' ended 0

# --- servers die ---
new_world
serve 0 endless=1 depth=8
serve 1
serve 2
launch 3 --
ok 'a world whose servers die: ready' live
lines() { grep -c -- "$2" "$w/$1"; }               # of whom, what
said_more() { [ "$(lines "$1" "$2")" -gt "$3" ]; } # by whom, what, than how often
kill_next() { # arguments of the server after it
    local waits resumed
    waits=$(lines out0 'told to wait') resumed=$(lines out1 resumed)
    kill -9 "${server[1]}"
    wait "${server[1]}" 2>/dev/null
    wait_for said_more out0 'told to wait' "$waits" || return
    serve 1 "$@"
    wait_for said_more out1 resumed "$resumed"
}
for _ in 1 2 3; do ok 'a server dies: who fetches is told to wait, and the next server takes over' kill_next; done
ok 'one that has no memory for a courier is asked again' kill_next lacks=3
kill -USR2 "${server[0]}"
ok 'who fetches' wait_for said out0 fetched
like 'saw nothing but WAIT' "$(cat "$w/out0")" \
    'fetched: [1-9][0-9]* right, [1-9][0-9]* waits, 0 open, 0 down, 0 bad, 0 errors'
kill -9 "${server[2]}"
ok 'a server that no other follows is gone after a while' wait_for said mpi 'node 2 no longer has a server'
kill -TERM "${server[0]}" "${server[1]}"
ok 'and the world ends when the others do' ended 0

# While the world forms: without peers after many deaths, and at each question (enum message_kind).
new_world
serve 0
serve 1 quiet=1
DEALFS_JOIN_NOTICE=1 launch 2 --
ok 'node 0 names the node that is waited for' wait_for said mpi "the join has waited for node 1 .* for [0-9]* s"
ok 'a server without peers: the courier waits for it, and says so' wait_for said mpi 'does not answer yet: waiting'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1
ok 'the world forms with the next one' live
end_servers
ok 'and ends in order' ended 0
new_world
serve 0
serve 1 quiet=1
DEALFS_JOIN_SILENCE=3 launch 2 --
wait_for test -s "$w/pid1"
ok 'a courier waits for its server' wait_for said out1 quiet
kill -STOP "$(cat "$w/pid1")"
ok 'a node that has become silent ends the join' wait_for has_ended "$launcher"
like 'which is said' "$(cat "$w/mpi")" 'node 1.*: nothing was heard from it for 3 s'
end_servers
for kind in 1 4 5 7; do
    new_world
    serve 0
    serve 1 dies=$kind
    launch 2 --
    wait "${server[1]}" 2>/dev/null
    serve 1
    ok "a server dies of message $kind: the world forms with the next one" live
    end_servers
    ok 'and ends in order' ended 0
done

new_world
serve 0 endless=1 depth=4
serve 1
serve 2
launch 3 --
ok 'a world that one mount leaves: ready' live
kill -TERM "${server[1]}"
ok 'who fetches hears that a server has gone' wait_for said out0 '^gone 1'
ok 'and that what it asks of that is down' wait_for said out0 '^down$'
kill -USR2 "${server[0]}"
ok 'and fetches' wait_for said out0 fetched
like 'from the others' "$(cat "$w/out0")" \
    'fetched: [1-9][0-9]* right, 0 waits, 0 open, [1-9][0-9]* down, 0 bad, 0 errors'
ok 'the couriers are all there' kill -0 "$(cat "$w/pid0")" "$(cat "$w/pid1")" "$(cat "$w/pid2")"
end_servers
ok 'the world ends in order' ended 0

# --- commands ---
new_world
serve 0
serve 1 command=3 last=1
serve 2
launch 3 --
ok 'a command reaches all others' wait_for eval \
    'said out0 "command 3 from 1 token 77" && said out2 "command 3 from 1 token 77"'
ok 'and not who gave it' eval '! said out1 ^command'
kill -TERM "${server[1]}"
ok 'also the last word of a server that ends' wait_for eval \
    'said out0 "command 1 from 1" && said out2 "command 1 from 1"'
end_servers
ok 'the world ends in order' ended 0
unlike 'without a word after ready' "$(sed '1,/^ready$/d' "$w/mpi")" .

# --- the layout turns ---
ask_turn() { kill -USR1 "${server[${1-0}]}"; }
new_world
serve 0 room=10
serve 1 room=0
serve 2 room=5
launch 3 --
ok 'a world that turns: ready' live
ask_turn
ok 'all are asked, hear of all rooms, and turn' wait_for all_said 3 '^settled 100 again'
ok 'the rooms are those of all' all_said 3 '^compute 100 of 15'
ask_turn
ok 'and again' wait_for all_said 3 '^settled 101'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1 wrong=1
ok 'a new server comes with the layout of now' wait_for said out1 '^settled 101 as before'
ask_turn
ok 'one that computes another one: all stay' wait_for all_said 3 '^settled 102 as before'
ok 'and it is said' wait_for said mpi 'computed another layout' # of whichever answers last
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1 mute=1
ok 'another server' wait_for eval '[ "$(grep -c resumed "$w/out1")" = 2 ]'
ask_turn
ok 'it does not answer' wait_for said out1 '^ready? 103'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
ok 'a server that dies when it is asked for its room: all stay' wait_for eval \
    'said out0 "^settled 103 as before" && said out2 "^settled 103 as before"'
serve 1 room=1 mute=2
ok 'another server' wait_for said out1 '^settled 103 as before'
ask_turn
ok 'it computes and does not say what came of it; meanwhile another turn is wanted' wait_for said out1 '^compute 104'
ask_turn
wait_for said out0 '^wanted 105'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
ok 'a server that dies while it computes: all stay' wait_for eval \
    'said out0 "^settled 104 as before" && said out2 "^settled 104 as before"'
serve 1 room=1 wrong=2
ok 'another server' wait_for eval '[ "$(grep -c "^settled 104 as before" "$w/out1")" = 1 ]'
ask_turn
ok 'a server that cannot compute: all stay' wait_for all_said 3 '^settled 106 as before'
kill -TERM "${server[2]}"
ok 'a node leaves' wait_for said mpi 'node 2 no longer has a server'
ask_turn
ok 'without it nothing turns' wait_for eval \
    'said out0 "^settled 107 as before" && said out1 "^settled 107 as before"'
end_servers
ok 'the world ends in order' ended 0

# What node 0 sent in a turn that is over reaches a courier together with the next one.
new_world
serve 0 room=1
serve 1 room=1 wrong=2
serve 2 room=1
DEALFS_DEBUG=courier launch 3 --
ok 'a world with a slow courier: ready' live
kill -STOP "${server[1]}"
ask_turn
# WIRE_READY is 9: the courier that is stopped next has said it.
ok 'a turn waits for one server' wait_for said mpi 'courier 0: courier: node 2: message 9,'
kill -STOP "$(cat "$w/pid2")"
kill -CONT "${server[1]}"
ok 'the turn fails, while a courier does not look' wait_for said out0 '^settled 100 as before'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1
ok 'a server that can compute comes' wait_for eval '[ "$(grep -c "^settled 100 as before" "$w/out1")" = 2 ]'
ask_turn
ok 'another one has begun' wait_for said out0 '^ready? 101'
kill -CONT "$(cat "$w/pid2")"
ok 'it finds its way through both' wait_for said out2 '^compute 101 of 3'
ok 'and comes to an end' wait_for said out2 '^settled 101 again'
kill -TERM "${server[1]}"
ok 'a node leaves' wait_for said mpi 'node 1 no longer has a server'
ok 'of which the servers hear' wait_for eval 'said out0 "^gone 1" && said out2 "^gone 1"'
kill -9 "${server[2]}"
wait "${server[2]}" 2>/dev/null
serve 2
ok 'and new ones as well' wait_for eval '[ "$(grep -c "^gone 1" "$w/out2")" = 2 ]'
end_servers
ok 'the world ends in order' ended 0

# An exchange: any node asks, and asks again; one that fails is as if it had not been asked for.
new_world
serve 0 room=1 cause=2 epoch=102
serve 1 room=1 cause=2
serve 2 room=1 cause=2 epoch=100
launch 3 --
ok 'a world with an exchange: ready' live
ask_turn 2
ok 'any node asks for it' wait_for all_said 3 '^settled 100 again'
ask_turn 1
wait_for said out1 '^wanted 100'
ask_turn 2
wait_for eval '[ "$(grep -c "^wanted 100" "$w/out2")" = 2 ]'
ask_turn 1
ok 'another one' wait_for all_said 3 '^settled 101 again'
is 'what was asked for again was not done again' "$(cat "$w"/out? | grep -c '^ready? 100')" 3
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1 wrong=3 cause=2
ok 'a new server knows where the world is' wait_for said out1 '^resumed at 2'
ask_turn
ok 'a server that is busy' wait_for said out1 '^ready? 102'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1 mute=2 cause=2
ok 'another one' wait_for eval '[ "$(grep -c "^resumed at 2" "$w/out1")" = 2 ]'
ask_turn
ok 'one that does not say what it computed' wait_for said out1 '^compute 102'
kill -9 "${server[1]}"
wait "${server[1]}" 2>/dev/null
serve 1 room=1 cause=2
ok 'is followed by another one' wait_for eval '[ "$(grep -c "^resumed at 2" "$w/out1")" = 3 ]'
ok 'who asked hears where it failed' wait_for all_said 3 '^failed 102 on node 1'
unlike 'nobody has turned' "$(cat "$w"/out?)" 'settled 102 again'
asked_until_settled() {
    ask_turn
    said out2 '^settled 102 again'
}
ok 'the same is asked for until it is done' wait_for asked_until_settled
ok 'on all nodes' wait_for all_said 3 '^settled 102 again'
is 'what was busy has not failed' "$(grep -c '^failed 102' "$w/out0")" 1
end_servers
ok 'the world ends in order' ended 0

new_world
serve_all 1 room=7
launch 1 --
ok 'a world of one: ready' live
ask_turn
ok 'turns as well' wait_for said out0 '^settled 100 again'
end_servers
ok 'and ends in order' ended 0

new_world
serve 0 room=1
serve 1 room=1 mute=1
launch 2 --
ok 'a world with a turn that does not end: ready' live
ask_turn
ok 'it has begun' wait_for said out1 '^ready? 100'
kill -TERM "$(cat "$w/pid0")"
ok 'can be left in order' ended 0
end_servers

# --- couriers die ---
new_world
serve_all 3
launch 3 --
ok 'a world whose courier is asked to leave: ready' live
kill -TERM "$(cat "$w/pid1")"
ok 'all leave in order' ended 0
ok 'and hang up' wait_for all_said 3 hang-up
launch 3 --
ok 'a new world forms over the same servers' live
kill -9 "$(cat "$w/pid1")"
ok 'a killed courier takes the others along' eval '! ended 0 >"$tmp/ended"'
ok 'and all servers see it' wait_for hung_up 2
launch 3 --
ok 'and again' live
kill -TERM "$launcher"
ok 'a signal to mpirun' eval '! ended 0 >"$tmp/ended"'
ok 'the servers see that too' wait_for hung_up 3

# --- idle ---
new_world
serve_all 2
launch 2 --
ok 'an idle world: ready' live
ok 'hears news' wait_for said out0 'news from 1'
ok 'and sleeps' wait_for is_in "$(cat "$w/pid0")" S
end_servers
ok 'leave in order' ended 0

# --- refused, in one line that says who and what ---
host=$(uname -n)
refused() { # what, a match of the line, the node with a server of its own, that one's arguments, --, the courier's
    local what=$1 expected=$2 node=$3 arguments=() i
    shift 3
    while [ "${1---}" != -- ]; do arguments+=("$1"); shift; done
    shift
    new_world
    for i in 0 1 2; do
        if [ "$i" = "$node" ]; then serve "$i" "${arguments[@]}"; else id=node$i serve "$i"; fi
    done
    launch 3 -- "$@"
    ended 1 >"$tmp/ended"
    like "refused: $what" "$(grep '^dealfs-courier' "$w/mpi")" "^dealfs-courier: $expected\$"
    end_servers
    for i in "${server[@]}"; do wait "$i"; done
}
refused 'another catalog' \
    "node 2 \($host\): its catalog \([0-9a-f]{8}\) differs from that of node 0 \($host\) \([0-9a-f]{8}\): .*" \
    2 catalog=two --
refused 'other options' \
    "node 1 \($host\): its mount options differ from those of node 0 \($host\) where they must be the same" \
    1 options=5 --
refused 'the number of nodes' "node 0 \($host\): it requires nodes=4, but the world has 3 nodes" - -- --nodes 4
refused 'more groups than nodes' 'groups=4: more groups than nodes \(3\)' - -- --groups 4
id=node0 refused 'the same id' "node 1 \($host\): it has the same id as node 0 \($host\) \([0-9a-f]{32}\): .*" 1 --
new_world
serve_all 1
mkdir "$w/s1"
DEALFS_JOIN_NOTICE=600 launch 2 --
ended 1
is 'refused: a node without a mount' "$(grep '^dealfs-courier' "$w/mpi")" \
    "dealfs-courier: node 1 ($host): no live mount answers at $w/s1/courier"
end_servers

exits 1 'refused: the mpirun of another version' \
    env PRTE_LAUNCHED=1 OMPI_VERSION=9.1.0 "$courier" --state "$w/s0" --mountpoint /none
like 'with both versions' "$(cat "$tmp/.output")" \
    'the mpirun that started it is of Open MPI 9, but dealfs-courier uses Open MPI [45]:'

# --- the command that mounts ---
cat >"$tmp/mount" <<'END_OF_MOUNT'
env | grep -qE '^(OMPI|PMIX|PMI)_' && echo 'the launcher is seen' >&2
[ "$(nproc)" = "$(nproc --all)" ] || echo 'it is bound to a processor' >&2
ls /proc/$$/fd >"$0.fds"
grep -qvxE '0|1|2|255' "$0.fds" && echo 'descriptors are open' >&2
echo 'so far so good' >&2
echo 'mount /none: nothing works here' >&2
exit 1
END_OF_MOUNT
new_world
mkdir "$w/s0" "$w/s1"
launch 2 --bind-to core --use-hwthread-cpus -- --mount -- bash "$tmp/mount"
ended 1
is 'refused: a mount that fails, with its last words' "$(grep '^dealfs-courier' "$w/mpi")" \
    "dealfs-courier: node 0 ($host): mount /none: nothing works here"
is 'the words before are passed on' "$(grep '^node' "$w/mpi")" "node 0 ($host): so far so good"

# --- a rank that never comes: MPI_Init waits for it without end, and a signal ends that ---
new_world
mkdir "$w/s0"
# shellcheck disable=SC2016
DEALFS_JOIN_NOTICE=1 mpirun -n 2 sh -c 'case $OMPI_COMM_WORLD_RANK in
    0) echo $$ >"$1/pid0"; exec "$2" --state "$1/s0" --mountpoint /none ;;
    *) exec sleep infinity ;;
    esac' sh "$w" "$courier" >"$w/mpi" 2>&1 &
launcher=$!
tap_pids+=($!)
ok 'it says that it waits' wait_for said mpi 'MPI_Init waits for processes of other nodes'
in_init() { eu-stack -p "$(cat "$w/pid0")" 2>/dev/null | grep -q MPI_Init; }
ok 'a courier waits in MPI_Init' wait_for in_init
kill -TERM "$(cat "$w/pid0")"
ok 'SIGTERM ends it' wait_for has_ended "$(cat "$w/pid0")"
ok 'and the world' wait_for has_ended "$launcher"

exits 1 'refused: a launcher that starts worlds of one' \
    env SLURM_STEP_NUM_TASKS=4 "$courier" --state "$w/s0" --mountpoint /none
like 'and it says why' "$(cat "$tmp/.output")" \
    'the launcher started 4 processes \(SLURM_STEP_NUM_TASKS\), but each is alone'
exits 2 'no state directory' "$courier" --mountpoint /none
exits 2 'a command and no word what it is for' "$courier" --state x --mountpoint /none -- true
exits 2 'nothing to mount with' "$courier" --state x --mountpoint /none --mount

done_testing
