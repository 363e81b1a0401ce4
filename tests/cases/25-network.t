#!/bin/bash
# Real nodes: network namespaces with host names of their own, joined by a bridge, over TCP. A link is cut in silence
# and by reset, for shorter and longer than peer_timeout, and healed. What goes over the wire is counted. In worlds that
# must not end, every timeout is so long that a slow machine is no silent node. The slowest read: make bench (cut).
#
#   switch: bridge 10.99.0.100 ── veth ── node0: 10.99.0.1, node1: 10.99.0.2, node2: 10.99.0.3
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
require ip nsenter unshare

export DEALFS_PING_LOST=600

src=$tmp/src
make_files "$src" 100 114688

# --- the machines ---
machine() { # name: a process that holds its namespaces
    # shellcheck disable=SC2016
    unshare -n -u sh -c 'hostname "$1" && : >"$2.up" && exec sleep infinity' - "$1" "$tmp/$1" 2>"$tmp/$1.err" &
    tap_pids+=($!)
    echo $! >"$tmp/$1.pid"
    wait_for test -e "$tmp/$1.up"
}
inside() { # name: the words that lead into it
    local pid
    pid=$(cat "$tmp/$1.pid")
    way=(nsenter --net="/proc/$pid/ns/net" --uts="/proc/$pid/ns/uts")
}
at() { # name, command…
    inside "$1"
    "${way[@]}" "${@:2}"
}
machine switch || plan_skip "no network namespaces: $(cat "$tmp/switch.err")"
at switch ip link set lo up
at switch ip link add bridge type bridge 2>"$tmp/bridge.err" || plan_skip "no bridge: $(cat "$tmp/bridge.err")"
at switch ip address add 10.99.0.100/24 dev bridge
at switch ip link set bridge up
for i in 0 1 2; do
    machine "node$i" || bail_out "no namespace: $(cat "$tmp/node$i.err")"
    at switch ip link add "port$i" type veth peer name eth0 netns "$(cat "$tmp/node$i.pid")" ||
        plan_skip 'no veth'
    at switch ip link set "port$i" master bridge up
    at "node$i" ip link set lo up
    at "node$i" ip address add "10.99.0.$((i + 1))/24" dev eth0
    at "node$i" ip link set eth0 up
done
cat >"$tmp/agent" <<END
#!/bin/sh
# As ssh is called: HOST COMMAND…, the command for a shell. A machine that is lost does not answer.
[ ! -e "$tmp/lost-\$1" ] || exit 255
pid=\$(cat "$tmp/node\$((\${1##*.} - 1)).pid")
shift
exec nsenter --net="/proc/\$pid/ns/net" --uts="/proc/\$pid/ns/uts" sh -c "\$*"
END
chmod +x "$tmp/agent"
for i in 0 1 2; do
    # shellcheck disable=SC2016
    wait_for at "node$i" sh -c 'ip -o link show eth0 | grep -q "state UP"' || plan_skip 'the links do not come up'
done

mpirun_by "$tmp/agent" 10.99.0.0/24
# shellcheck disable=SC2054 # the comma is mpirun's
over_tcp=(--mca btl tcp,self --bind-to none --map-by ppr:1:node)
launch() { # hosts, command…
    : >"$tmp/world.log"
    inside switch
    "${way[@]}" mpirun "${over_tcp[@]}" --host "$1" "${@:2}" >"$tmp/world.log" 2>&1 </dev/null &
    world_pid=$!
    world_await
}
hosts=10.99.0.1,10.99.0.2,10.99.0.3
joined() { are joined 0 1 2; }
reads_of() {
    local place sum=0
    for place in ram ssd peer source; do
        sum=$((sum + $(value "$tmp/node$1" "reads.$place")))
    done
    echo $sum
}
received() { at "node$1" cat /proc/net/dev | awk '/eth0/ { print $2 }'; } # bytes
metrics_sum() { # name
    cat "$tmp"/node[012]/.dealfs/metrics | awk -v name="dealfs_$1" '$1 == name { n += $2 } END { print n + 0 }'
}
# Nobody asks the source for what another holds. A peer that is suspected is tried again after a pause.
from_peers() {
    local i before came
    before=$(world_sum source.samples 0 1 2)
    for i in 0 1 2; do
        drop_cache "$tmp/node$i"/*/*
        diff -r -x .dealfs "$src" "$tmp/node$i" || return
    done
    came=$(($(world_sum source.samples 0 1 2) - before))
    [ $came = 0 ] || { echo "$came files came from the source"; return 1; }
}

# --- what goes over the wire: the values asked for, as they are stored ---
mkdir "$tmp"/wide "$tmp"/wide{0,1}
head -c 24M /dev/urandom >"$tmp/wide/random"
seq 1200000 >"$tmp/wide/text"
# A PING may take three times as long as the slow link, below, needs.
DEALFS_PING_LOST=20
ok 'mount on two machines' \
    launch 10.99.0.1,10.99.0.2 dealfs mount -o "ram=64M,peer_timeout=600,state=$tmp/wide-%h" "$tmp/wide" "$tmp/wide%r"
at_exit dealfs umount --world "$tmp/wide0"
ok 'stage' dealfs stage "$tmp/wide0"
for file in random text; do
    reader=$((1 - $(dealfs where "$tmp/wide0" $file | cut -f 2)))
    before=$(received $reader)
    # shellcheck disable=SC2016
    got=$(python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
os.write(1, os.pread(fd, 4096, 5 << 20))' "$tmp/wide$reader/$file" | md5sum)
    came=$(($(received $reader) - before))
    is "$file: a page of a file that another machine has" \
        "$got" "$(tail -c +$((5 * 1048576 + 1)) "$tmp/wide/$file" | head -c 4096 | md5sum)"
    ok "takes the value that it is in: $came bytes" test $came -lt 400000
done
before=$(received $reader)
ok 'a text of another machine' cmp "$tmp/wide/text" "$tmp/wide$reader/text"
came=$(($(received $reader) - before))
ok "comes as it is stored: $came bytes" test $((came * 2)) -lt "$(stat -c %s "$tmp/wide/text")"
is 'all of that from a peer' "$(value "$tmp/wide$reader" bytes.source)" 0

# --- a slow link: a PONG waits behind what is asked for at once ---
# TCP has sent everything, and the other machine has received it.
all_arrived() { at "node$owner" ss -tnH dst 10.99.0.0/24 | awk '{ n += $3 } END { exit n > 0 }'; }
owner=$(dealfs where "$tmp/wide0" random | cut -f 2)
reader=$((1 - owner))
if at "node$owner" tc qdisc add dev eth0 root tbf rate 8mbit burst 64kb latency 100ms; then
    drop_cache "$tmp/wide$reader/random"
    # shellcheck disable=SC2016
    ok 'much at once over a slow link' python3 -c '
import concurrent.futures, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
with concurrent.futures.ThreadPoolExecutor(7) as pool:
    list(pool.map(lambda i: os.pread(fd, 1 << 20, i << 20), range(7)))' "$tmp/wide$reader/random"
    ok 'all of it arrives, sooner or later' wait_for all_arrived
    is 'both are still joined' "$(value "$tmp/wide0" state), $(value "$tmp/wide1" state)" 'joined, joined'
    at "node$owner" tc qdisc del dev eth0 root
else
    skip 3 'no slow links'
fi
ok 'unmount' dealfs umount --world "$tmp/wide0"
ok 'mpirun ends' wait_for world_gone

DEALFS_PING_LOST=600
world_count=3
mkdir "$tmp"/node{0,1,2}
options="ram=32M,peer_timeout=600,state=$tmp/state-%h"
ok 'mount on three machines' launch $hosts dealfs mount -o "$options" "$src" "$tmp/node%r"
is 'each by its own name' "$(cd "$tmp" && echo state-*)" 'state-node0 state-node1 state-node2'
like 'which the list of nodes has' "$(cat "$tmp/node0/.dealfs/nodes")" 'node0.*node1.*node2'
for i in 0 1 2; do
    same "every byte of node $i" "$src" "$tmp/node$i"
done
is 'each file was opened once' "$(world_sum source.samples 0 1 2)" 100
isnt 'over TCP' "$(at node1 sh -c 'cat /proc/net/dev' | awk '/eth0/ { print ($2 > 1000000) }')" 0

read_some() { [ "$(reads_of 1)" -gt $((before + 50)) ]; }

# --- cut in silence, shorter than peer_timeout ---
before=$(reads_of 1)
readers_start 0 1 2
ok 'all read' wait_for read_some
at node2 ip link set eth0 down
all_wait() {
    local i
    for i in 0 1 2; do [ "$(value "$tmp/node$i" parked)" -ge 1 ] || return; done
}
ok 'a short cut: a read on each node waits' wait_for all_wait
at node2 ip link set eth0 up
ok 'all read again' read_on 0 1 2
ok 'all are in the world' joined
ok 'all comes from peers' from_peers
readers_end 'no reader saw it'
is 'none waited in vain' "$(metrics_sum peer_timeouts_total)" 0
is 'and the source was not asked' "$(world_sum source.samples 0 1 2)" 100
ok 'unmount' world_umount

# --- longer ---
DEALFS_PING_LOST=10
over_tcp+=(--mca oob_tcp_keepalive_time 3 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3)
options="ram=32M,peer_timeout=2,state=$tmp/state-%h"
ok 'mount with short timeouts' launch $hosts dealfs mount -o "$options" "$src" "$tmp/node%r"
ok 'stage' dealfs stage "$tmp/node0"
readers_start 0 1 2
late() { awk '$1 == "dealfs_peer_timeouts_total" { print $2 }' "$tmp/node0/.dealfs/metrics"; }
timeouts() { [ "$(late)" -gt "$before" ]; }
before=$(late)
at node2 ip link set eth0 down
ok 'a long cut: node 0 has waited in vain' wait_for timeouts
ok 'all read on while it lasts' read_on 0 1 2
at node2 ip link set eth0 up
readers_end 'no reader saw an error'
# A daemon of mpirun that it has lost without hearing of it makes it wait for that without end, whatever it is told; the
# world is over all the same, which the mounts say.
no_courier() { ! cat "$tmp"/node[012]/.dealfs/status | grep -q '"courier": *[1-9]'; }
states() { cat "$tmp"/node[012]/.dealfs/nodes | cut -f 1,4 | tr '\n\t' ' :'; }
world_end() {
    world_gone || kill "$world_pid"
    wait_for world_gone && return
    diag "mpirun hangs; its world: $(states)"
    wait_for no_courier && kill -9 "$world_pid" && wait_for world_gone
}
settled() { joined || world_gone || no_courier; }
# The world is whole, or joined again by us, and all comes from peers. A round of this takes as long as it takes.
healed() {
    local rounds=0
    until joined && from_peers; do
        echo "$((rounds += 1)): $(states)"
        ((EPOCHSECONDS < tap_deadline)) || { cat "$tmp/world.log"; return 1; }
        wait_for settled && joined && continue
        world_end && launch $hosts dealfs join "$tmp/node%r" && continue
        echo 'not joined:'
        tail -n 5 "$tmp/world.log"
    done
}
ok 'healed: the world is whole, or joined again, and all comes from peers' healed

# --- by reset: connections of one machine die, once and repeatedly whenever they are made again ---
reset() { at node1 ss -K "$@" >>"$tmp/killed" 2>&1; }
reset_repeatedly() { # for about as long as peer_timeout
    local i
    for ((i = 0; i < 100; i++)); do
        reset "$@"
        sleep 0.02 # so that connections are made in between
    done
}
among_nodes=(dst 10.99.0.1 or dst 10.99.0.3)
for cut in 'reset among_nodes' 'reset_repeatedly among_nodes' 'reset all' 'reset_repeatedly all'; do
    read -r how whom <<<"$cut"
    what="${how//_/ }, ${whom//_/ }"
    readers_start 0 1 2
    before=$(reads_of 1)
    ok "$what: all read" wait_for read_some
    : >"$tmp/killed"
    if [ "$whom" = all ]; then $how dst 10.99.0.0/24; else $how "${among_nodes[@]}"; fi
    ok "connections are reset: $(grep -c ESTAB "$tmp/killed")" grep -q 'ESTAB.*10\.99\.0' "$tmp/killed"
    ok 'all read on' read_on 0 1 2
    readers_end 'no reader saw an error'
    ok 'healed: the world is whole, or joined again, and all comes from peers' healed
done

# --- a connection that passes nothing on while it lives, as after a reset with which a message was lost ---
if at node1 ip rule add pref 10 to 10.99.0.3 ipproto tcp blackhole; then
    readers_start 0 1 2
    ok 'no message reaches another machine, which lives: the couriers end the world' wait_for are degraded 0 1 2
    ok 'and say why' wait_for grep -q 'messages to or from node [12] were lost' "$tmp/world.log"
    ok 'all read on' read_on 0 1 2
    readers_end 'no reader saw an error'
    at node1 ip rule del pref 10
    ok 'healed: the world is joined again, and all comes from peers' healed
else
    skip 5 'no rules of routing'
fi

# --- a machine is lost for good: the others go on, and join without it ---
readers_start 0 1
at switch ip link set port2 down
: >"$tmp/lost-10.99.0.3"
here=$(readlink "/proc/$(cat "$tmp/node2.pid")/ns/net")
for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    [ "$(readlink "/proc/$pid/ns/net")" = "$here" ] && [ "$pid" != "$(cat "$tmp/node2.pid")" ] && kill -9 "$pid"
done
# Its connections were not closed: only that nothing comes tells it.
ok 'mpirun ends' wait_for world_gone
ok 'the two say so' wait_for are degraded 0 1
ok 'they read on' read_on 0 1

# --- unattended: over the hosts that still answer, and again when somebody ends mpirun ---
# The loop may join them again sooner than we look at their state; their logs tell of each world that has ended.
ends_of() { grep -c 'is read from the source until' "$tmp/state-node$1/log"; }
note_ends() { ended=("$(ends_of 0)" "$(ends_of 1)"); }
both_ended() { [ "$(ends_of 0)" -gt "${ended[0]}" ] && [ "$(ends_of 1)" -gt "${ended[1]}" ]; }
export DEALFS_RSH=$tmp/agent DEALFS_PAUSE=0 DEALFS_LOOK=1
export DEALFS_MPIRUN='--mca btl tcp,self'
inside switch
"${way[@]}" "$top_srcdir/etc/slurm/join-loop" "$tmp/%h" 10.99.0.1 10.99.0.2 10.99.0.3 \
    >"$tmp/world.log" 2>&1 </dev/null &
world_pid=$!
ok 'the loop joins the two' wait_for are joined 0 1
like 'and no more' "$(head -n 1 "$tmp/world.log")" 'joining 2 of 3: 10.99.0.1 10.99.0.2$'
note_ends
kill "$(pgrep -P "$world_pid" "mpirun|prterun")"
ok 'mpirun is ended' wait_for both_ended
ok 'the loop joins them again' wait_for are joined 0 1
orted=$(processes 'ess_base_vpid 2 ' | head -n 1) # of node 1
note_ends
ok 'a daemon of mpirun hangs, and tells nobody who is lost' kill -STOP "$orted"
kill -9 "$(pid_of 0 courier)"
ok 'both miss each other all the same' wait_for both_ended
ok 'the loop ends what hangs, and joins them' wait_for are joined 0 1
ok 'and says so of both' test "$(grep -c 'the world has ended' "$tmp/world.log")" -ge 2
if [ "$mpi_major" = 4 ]; then # that of 5.0 does not hang
    like 'and that it was killed' "$(cat "$tmp/world.log")" 'mpirun or srun hangs: killed'
fi
kill -9 "$orted"
readers_end 'no survivor saw an error'
is 'two nodes' "$(value "$tmp/node0" nodes)" 2
wait_for grep -q ready "$tmp/world.log"
ok 'what the dead machine has left is taken away' dealfs umount "$tmp/node2"
ok 'unmount, and the loop ends with 0' world_umount
nothing_left 'nothing is left'
done_testing
