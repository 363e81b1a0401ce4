#!/bin/bash
# Streams whose records other nodes own: the bytes of the plan, also when servers and whole nodes die in the middle.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
mkdir -p "$src"
for i in 0 1 2 3 4 5; do head -c 8M /dev/urandom >"$src/$i"; done
settle "$src"
world_default=ram=100M,peer_timeout=3
ok 'three nodes' world_mount 3
for size in 4096 262144; do
    ok "a list of records of $size bytes" dealfs index "$tmp/node0" "rows$size" --format fixed=$size
    dealfs index "$tmp/node0" --output "$tmp/rows$size" --format fixed=$size 2>/dev/null
done
streams() { # what, node, size, words
    python3 "$top_srcdir/tests/lib/streams.py" "$1" "$tmp/node$2" "$src" "rows$3=$tmp/rows$3" "${@:4}" 2>&1
}
of() { echo "epoch=$1,ranks=3,batch=16,samples=rows$2,rank=$3,mode=${4:-regular}"; }
for node in 0 1 2; do
    is "node $node: the bytes of its rank" "$(streams equal $node 4096 "$(of 1 4096 $node)")" same
done
is 'large records' "$(streams equal 0 262144 "$(of 1 262144 0)" "$(of 1 262144 1 locality)")" same
ok 'some came from other nodes' test "$(answered "$tmp/node0" peer)" -gt $((1 << 20))

for size in 4096 262144; do
    is "servers of other nodes are killed, and its own: $size" "$(streams survive 0 $size "$(of 2 $size 0)" \
        "$(pid_of 1 server) $(pid_of 2 server) $(pid_of 0 server)")" same
done
keeper=$(pid_of 2 keeper)
ok 'node 2 has a backup' wait_for pgrep -P "$keeper" dealfs-backup
lost=$(pid_of 2 server)+$keeper+$(pgrep -P "$keeper" dealfs-backup)+$(pid_of 2 courier)
is 'a node is lost' "$(streams survive 0 4096 "$(of 3 4096 0)" "$lost")" same
ok 'the world ends with it' world_ended
is 'and then streams are read from the source' "$(streams equal 1 4096 "$(of 4 4096 1)")" same
for node in 0 1; do dealfs umount "$tmp/node$node"; done
dealfs umount "$tmp/node2" 2>/dev/null
nothing_left 'nothing is left'
done_testing
