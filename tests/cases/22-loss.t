#!/bin/bash
# Servers, keepers, couriers, mpirun and whole nodes are killed while every node reads: no read fails, no byte is wrong.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
. "$top_srcdir/tests/lib/sh-world" || exit 99
require_fuse

src=$tmp/src
make_files "$src" 120 150000
world_default=ram=32M,peer_timeout=2
all=(0 1 2)

state_is() { [ "$(value "$tmp/node$1" state)" = "$2" ]; }
all_are() {
    local i
    for i in "${all[@]}"; do
        state_is "$i" "$1" || return
    done
}
# Readers have got on by some files each: a line of theirs is not looked at, but the server's counts.
read_on() {
    local i
    for i in "${all[@]}"; do
        before[i]=$(reads_of "$i")
    done
    for i in "${all[@]}"; do
        wait_for 30 read_more "$i" || return
    done
}
reads_of() { python3 -c '
import json, sys
print(sum(json.load(open(sys.argv[1]))["reads"].values()))' "$tmp/node$1/.dealfs/status"; }
read_more() { [ "$(reads_of "$1")" -gt $((before[$1] + 20)) ]; }
declare -A before

ok 'mount' world_mount 3

# --- a server: the world goes on ---
readers_start 0 1 2
for i in 1 0; do
    ok 'reading' read_on
    server=$(pid_of $i server)
    kill -9 "$server"
    other_server() { now=$(pid_of "$i" server) && [ "$now" != "$server" ]; }
    ok "the server of node $i is replaced" wait_for 20 other_server
    ok "and node $i is in the world still" wait_for 20 state_is $i joined
done
ok 'reading' read_on
readers_end 'kill -9 of servers: no reader saw it'
ok 'all are in the world' all_are joined
ok 'mpirun runs still' kill -0 "$world_pid"

# --- a keeper ---
readers_start 0 1 2
ok 'reading' read_on
keeper=$(pid_of 1 keeper)
kill -9 "$keeper"
other_keeper() { [ "$(pid_of 1 keeper)" != "$keeper" ]; }
ok 'the keeper of node 1 is replaced' wait_for 20 other_keeper
ok 'reading' read_on
readers_end 'kill -9 of a keeper: no reader saw it'
ok 'all are in the world' all_are joined

# --- a courier ---
readers_start 0 1 2
ok 'reading' read_on
kill -9 "$(pid_of 2 courier)"
ok 'mpirun ends' wait_for 30 world_gone
world_pid=''
ok 'all say so' wait_for 20 all_are degraded
ok 'reading' read_on
ok 'they join again, beside readers' world_join 0 1 2
ok 'all are in the world' all_are joined
ok 'reading' read_on
readers_end 'kill -9 of a courier: no reader saw it'

# --- mpirun ---
readers_start 0 1 2
ok 'reading' read_on
kill -9 "$world_pid"
world_pid=''
ok 'mpirun is killed: all say so' wait_for 30 all_are degraded
ok 'reading' read_on
ok 'they join again' world_join 0 1 2
ok 'reading' read_on
readers_end 'kill -9 of mpirun: no reader saw it'

readers_start 0 1 2
ok 'reading' read_on
kill -STOP "$world_pid" # it tells nobody who is lost
kill -9 "$(pid_of 1 courier)"
ok 'mpirun hangs, and a courier is killed: all say so' wait_for 30 all_are degraded
kill -9 "$world_pid"
wait_for 10 world_gone
world_pid=''
ok 'they join again' world_join 0 1 2
ok 'reading' read_on
readers_end 'no reader saw it'

readers_start 0 1 2
ok 'reading' read_on
ok 'SIGTERM to mpirun' world_leave
ok 'all say so' wait_for 30 all_are degraded
ok 'reading' read_on
ok 'they join again' world_join 0 1 2
readers_end 'SIGTERM to mpirun: no reader saw it'
ok 'SIGINT to mpirun' world_leave -INT
ok 'the mounts stay' mounted "$tmp/node0"
ok 'they join again' world_join 0 1 2

# --- a whole node ---
readers_start 0 1
all=(0 1)
ok 'reading' read_on
ok 'a node is killed' kill_whole 2
ok 'mpirun ends' wait_for 30 world_gone
world_pid=''
is 'nothing follows' "$(processes "$tmp/state2 ")" ''
ok 'the others say so' wait_for 20 all_are degraded
ok 'reading' read_on
ok 'the two join without it' world_join 0 1
ok 'reading' read_on
readers_end 'kill -9 of a whole node: no survivor saw it'
is 'they are two' "$(value "$tmp/node0" nodes)" 2
ok 'what the dead node left is replaced' dealfs mount -o "state=$tmp/state2,$world_default" "$src" "$tmp/node2"
ok 'leave' world_leave
ok 'and all three join' world_join 0 1 2
same 'every byte of the node that is back' "$src" "$tmp/node2"
ok 'unmount' world_umount

# --- an owner stops answering, its source being slow: busy is not gone ---
rm -rf "$tmp"/state*
all=(0 1)
echo 'delay=6000' >"$tmp/faults"
world_default=ram=32M,peer_timeout=2
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
