#!/bin/bash
# Costs where something goes wrong: a disk that is full or fails, a server that dies, damaged files, a removal while a
# plan is made by them.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
require python3 strace
[ -z "${TEST_SANITIZER-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

src=$tmp/src
make_files "$src" 120 3000
mkdir "$tmp/state0"
mount -t tmpfs -o size=8M tmpfs "$tmp/state0" || bail_out 'no small disk'
at_exit umount -l "$tmp/state0"
world_default=ram=64M,peer_timeout=600 # no answer is late, and no stopped courier is given up
ok 'two nodes, of which one has a small disk' world_mount 2
kept=$tmp/state0/samples
layout=$(value "$tmp/node0" layout)

python3 - "$tmp" <<'END'
import struct, sys
for name, numbers in ('up', range(120)), ('down', range(120, 0, -1)), ('other', [5] * 60 + [900] * 60):
    open(f'{sys.argv[1]}/{name}', 'wb').write(struct.pack('<120I', *numbers))
END
put() { request "$1" "$tmp/$2" costs name=tokens; } # node, numbers
ask() { dealfs plan "$tmp/node$1" epoch=1 ranks=4 batch=5 layout="$layout" cost=tokens 2>&1; }
list_of() { # numbers: the plan by them, made on node 1
    put 1 "$1" >/dev/null
    ask 1
}
up=$(list_of up) down=$(list_of down)
isnt 'plans by other costs' "$up" "$down"
like 'costs are put' "$(put 0 up)" $'^120\t'
is 'and used' "$(ask 0)" "$up"

# --- a full disk ---
fill_disk() { ! cat /dev/zero >"$tmp/state0/full" 2>/dev/null; }
rejoined() { restart "$tmp/node$1" server && wait_for state_is "$1" joined; } # the server of a node
ok 'the disk is full' fill_disk
like 'costs cannot be put' "$(put 0 down)" 'No space left on device: save the list `tokens`'
is 'those before are used' "$(ask 0)" "$up"
is 'also on the other node' "$(ask 1)" "$up"
is 'nothing half-written is left' "$(ls -A "$kept")" tokens
ok 'the server restarts' rejoined 0
is 'with the costs as they were' "$(ask 0)" "$up"
is 'costs can be removed' "$(request 0 /dev/null costs name=tokens action=remove)" removed
like 'they are gone' "$(ask 0)" '`tokens`'
like 'also on the other node' "$(ask 1)" '`tokens`'
ok 'the server restarts' rejoined 0
like 'they stay gone' "$(ask 0)" '`tokens`'
put 1 down >"$tmp/put" &
putting=$!
refused() { grep -q 'sample list tokens of node 1: No space left on device' "$(value "$tmp/node0" log)"; }
ok 'costs from the other node find no room' wait_for refused
rm "$tmp/state0/full"
wait "$putting"
like 'their upload waits for room' "$(<"$tmp/put")" $'^120\t'
is 'and they are used' "$(ask 0)" "$down"
like 'with room again costs are put' "$(put 0 up)" $'^120\t'
is 'and used' "$(ask 0)" "$up"
is 'also on the other node' "$(ask 1)" "$up"

# --- a disk that fails, and a server that dies while it writes ---
traced() { [ -z "$(grep -L '^TracerPid:[[:space:]]*[1-9]' /proc/"$1"/task/*/status)" ]; } # all of its threads
inject() { # rule: of the server of node 0, until let_go
    background strace -f -qq -o "$tmp/trace" -p "$(pid_of 0 server)" -e "inject=$1"
    tracer=$!
    wait_for traced "$(pid_of 0 server)"
}
let_go() {
    kill "$tracer" 2>/dev/null
    wait "$tracer" 2>/dev/null
    true
}
for rule in fsync:error=EIO renameat:error=EIO; do
    ok "${rule%%:*} fails" inject "$rule"
    like 'costs cannot be put' "$(put 0 down)" 'Input/output error: save the list `tokens`'
    let_go
    is 'those before are used' "$(ask 0)" "$up"
    is 'nothing half-written is left' "$(ls -A "$kept")" tokens
done
old=$(pid_of 0 server)
ok 'the server dies before the file has its name' inject 'renameat:signal=SIGKILL'
put 0 down >"$tmp/died" 2>&1
let_go
ok 'another one follows' wait_for follows 0 server "$old"
is 'the costs are as they were' "$(ask 0)" "$up"
is 'nothing half-written is left' "$(ls -A "$kept")" tokens

# --- damaged files ---
damage() { # command with the file: it runs on what node 0 keeps, and its server restarts
    "${@:2}" "$kept/tokens" && rejoined 0
}
halve() { truncate -s $(($(stat -c %s "$1") / 2)) "$1"; }
flip() { printf '\377' | dd of="$1" bs=1 seek=100 conv=notrunc status=none; }
grow() { printf '\377\377\377\377' >>"$1"; }
empty() { : >"$1"; }
for how in halve flip grow empty rm; do
    ok "the file of the costs: $how" damage 0 "$how"
    is 'the other node still has them' "$(ask 0)" "$up"
done
like 'the log names the file' "$(<"$(value "$tmp/node0" log)")" 'samples/tokens: not loaded: the file is damaged'

# --- a server that is not yet in its world cannot say what other nodes have ---
courier=$(pid_of 0 courier)
kill -STOP "$courier"
rm "$kept/tokens"
ok 'another server follows' restart "$tmp/node0" server
unknown='could not get the lists of all other nodes: see `dealfs status`'
like 'it does not know whether there are such costs' "$(ask 0)" "does not have the cost list \`tokens\`, and $unknown"
like 'nor such a list' "$(dealfs plan "$tmp/node0" epoch=1 ranks=4 batch=5 samples=none 2>&1)" "sample list .*$unknown"
like 'nor can it remove them' "$(request 0 /dev/null costs name=tokens action=remove 2>&1)" "cost list .*$unknown"
ok 'another server follows' restart "$tmp/node0" server
answered() {
    answer=$(ask 0)
    [[ $answer != *'could not get'* ]]
}
kill -CONT "$courier"
ok 'the next server waits for its courier' wait_for answered
is 'and gets the costs from the other node' "$answer" "$up"
ok 'it is in the world again' wait_for state_is 0 joined

# --- removed while a plan is made by them ---
cat >"$tmp/long.py" <<'END'
import os, random, struct, sys, threading
from tap import wait_for
node, other, server, layout = sys.argv[1:]
draw = random.Random(1)
costs = struct.pack('<120I', *(1000 * draw.randint(1, 7) + draw.randint(0, 5) for _ in range(120)))
def line_of(epoch):
    nodes = ','.join('01'[r % 2] for r in range(1024))
    return (f'plan epoch={epoch} ranks=1024 nodes={nodes} batch=4 rank=7 order=u32 distinct=no layout={layout} '
            'cost=long balance=1 reply=u32')

def request(node, line, payload=b''):
    fd = os.open(f'{node}/.dealfs/control', os.O_RDWR)
    try:
        os.write(fd, line.encode() + b'\n' + payload)
        pieces = []
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
        return b''.join(pieces)
    finally:
        os.close(fd)

def worked():
    fields = open(f'/proc/{server}/stat').read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

def removed_meanwhile(line, order):
    """The plan, and whether the costs were removed and replaced while it was made. b'': they were removed before."""
    def plan():
        try:
            found.append(request(node, line, order))
        except FileNotFoundError:
            found.append(b'')
    request(node, 'costs name=long', costs)
    found = []
    began = worked()
    planning = threading.Thread(target=plan)
    planning.start()
    wait_for(lambda: worked() >= began + 0.3 or not planning.is_alive(), pause=0.01)
    request(node, 'costs name=long action=remove')
    meanwhile = planning.is_alive()
    request(node, 'costs name=long', costs[::-1])
    planning.join()
    return found[0], meanwhile

count, epoch, found, meanwhile = 400000, 0, b'', False
while not (found and meanwhile):
    epoch += 1
    count += count // 2 * (found != b'') # a longer one, if the plan was made before
    order = struct.pack(f'<{count}I', *(draw.randrange(120) for _ in range(count)))
    line = line_of(epoch)
    found, meanwhile = removed_meanwhile(line, order)
assert len(found) == 4 * ((count + 1023) // 1024), len(found)
request(other, 'costs name=long', costs)
assert request(other, line, order) == found, 'another plan'
END
ok 'a plan is made by costs that are removed and replaced meanwhile' \
    env PYTHONPATH="$top_srcdir/tests/lib" \
    python3 -B "$tmp/long.py" "$tmp/node0" "$tmp/node1" "$(pid_of 0 server)" "$layout"

ok 'umount --world' world_umount
umount "$tmp/state0"
nothing_left 'nothing is left'
done_testing
