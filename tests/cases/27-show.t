#!/bin/bash
# What a world shows of itself: status, nodes, owners, metrics; and staging it from any node, stopped from any node.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
mkdir "$src"
make_files "$src" 90 100000
truncate -s 150M "$src/striped"
files=$(find "$src" -type f | wc -l)
bytes=$(find "$src" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
faults=$tmp/faults
: >"$faults"
export DEALFS_SOURCE_FAULTS="file=$faults" DEALFS_STAGE_PATIENCE=3600
world_default=ram=160M,peer_timeout=600

# The state that node $2 has in the eyes of node $1.
seen() { awk -F'\t' -v number="$2" '$1 == number { print $4 }' "$tmp/node$1/.dealfs/nodes"; }
# Node $1's word on node $2, as key $3 of its status.
told() {
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1] + "/.dealfs/status"))["world"][int(sys.argv[2])]
for key in sys.argv[3].split("."): value = value[key]
print(value)' "$tmp/node$1" "$2" "$3"
}
stage_state() { value "$tmp/node$1" stage.state; }
stage_is() { [ "$(stage_state "$1")" = "$2" ]; }
held_is_told() { [ "$(told 0 "$1" held)" = "$(value "$tmp/node$1" ram.held)" ]; }
reads_are_told() { [ "$(told 0 "$1" reads.peer)" = "$(value "$tmp/node$1" reads.peer)" ]; }
all_stages() { local i; for i in 0 1 2; do stage_is $i "$1" || return; done; }

ok 'three nodes' world_mount 3

# --- a fresh world ---
for i in 0 1 2; do
    is "node $i knows its number" "$(cat "$tmp/node$i/.dealfs/node")" "$i"
    is 'its status has a line for each' "$(told "$i" 2 node)" 2
    like 'so has what people see' "$(dealfs status "$tmp/node$i")" ' 2  .* joined .*
  health +good'
    is 'its file of nodes, too' "$(cut -f1,4 "$tmp/node$i/.dealfs/nodes")" $'0\tjoined\n1\tjoined\n2\tjoined'
done
is 'ids are told right' "$(cut -f2 "$tmp/node2/.dealfs/nodes")" "$(for i in 0 1 2; do value "$tmp/node$i" id; done)"
ok 'all are well' dealfs status "$tmp/node1"
ok 'wait for all' dealfs wait --nodes 3 "$tmp/node0"
one_line 'wait for more than there are' '3 of 4 nodes' dealfs wait --nodes 4 --timeout 0.2 "$tmp/node0"
like 'metrics tell the state' "$(cat "$tmp/node1/.dealfs/metrics")" 'dealfs_state\{state="joined"\} 1'

# --- owners ---
mapfile -t paths < <(cd "$src" && find . -type f -printf '%P\n' | sort)
owners=$(dealfs where "$tmp/node0" "${paths[@]}" | cut -f2)
is 'every file has an owner before anything is read' "$(wc -l <<<"$owners")" "$files"
is 'which is one of the nodes' "$(sort -u <<<"$owners" | tr '\n' ' ')" '0 1 2 '
is 'each node says the same' "$(dealfs where "$tmp/node2" "${paths[@]}" | cut -f2)" "$owners"
is 'nobody keeps anything yet' "$(dealfs where "$tmp/node1" "${paths[@]}" | cut -f3 | sort -u)" -
is 'that read nothing' "$(world_sum source.samples 0 1 2)" 0

# --- stopped ---
set_faults hang
env --default-signal=INT dealfs stage "$tmp/node1" >"$tmp/stage.log" 2>&1 &
stage=$!
tap_pids+=("$stage")
ok 'staging at one node stages all' wait_for all_stages running
kill -INT "$stage"
status=0
wait "$stage" || status=$?
is 'Ctrl-C ends it with 1' "$status" 1
like 'it says how to go on' "$(cat "$tmp/stage.log")" 'was stopped; .dealfs stage .*. resumes it'
ok 'and stops all' wait_for all_stages stopped
set_faults ''

# --- staged ---
before=$(world_sum source.bytes 0 1 2)
is 'staging is not over' "$((before < bytes))" 1
like 'from another node it goes on to the end' \
    "$(dealfs stage "$tmp/node2" 2>/dev/null)" "^$files of $files files checked.*
  3 nodes hold "
is 'every byte was read once in the world' "$(world_sum source.bytes 0 1 2)" "$bytes"
for i in 0 1 2; do
    is "node $i keeps its own" "$(dealfs where "$tmp/node$i" "${paths[@]}" |
        awk -F'\t' '$3 == "ram" && $4 != "striped" { print $2 }' | sort -u)" $i
    is 'and all of it' \
        "$(dealfs where "$tmp/node$i" "${paths[@]}" | awk -F'\t' -v me=$i '$2 == me && $3 != "ram"' | wc -l)" 0
    like 'each has a part of the large file' "$(value "$tmp/node$i" source.samples)" '^[1-9]'
    is 'and tells how full it is' "$(told 0 $i capacity)" "$(value "$tmp/node$i" ram.capacity)"
    ok 'as it is' wait_for held_is_told $i
done
ok 'staged again' dealfs stage "$tmp/node0"
is 'nothing was read for that' "$(world_sum source.bytes 0 1 2)" "$bytes"
reads 'node 1 reads all' "$src" "$tmp/node1"
is 'from nobody but nodes' "$(world_sum source.bytes 0 1 2)" "$bytes"
ok 'and others hear of it' wait_for reads_are_told 1

# --- over ---
ok 'the world ends' world_leave
for i in 0 1 2; do
    ok "node $i is degraded" wait_for state_is $i degraded
    is 'it remembers the others' "$(value "$tmp/node$i" nodes) $(seen "$i" $(((i + 1) % 3)))" '3 lost'
    is 'and who owned what' "$(dealfs where "$tmp/node$i" "${paths[@]}" | cut -f2)" "$owners"
    exits 3 'its status says so' dealfs status "$tmp/node$i"
    like 'with what is lost, and the way back' \
        "$(dealfs status "$tmp/node$i")" "2 of 3 nodes .*%.* dealfs join '$tmp/node%r'"
    like 'in metrics, too' "$(cat "$tmp/node$i/.dealfs/metrics")" 'dealfs_nodes_gone 2'
done
sh -c "exec $(value "$tmp/node1" lost.rejoin)" >"$tmp/world.log" 2>&1 </dev/null &
world_pid=$!
ok 'the way back works when it is pasted' wait_for are joined 0 1 2
is 'all are well again, with the numbers they had' \
    "$(dealfs status "$tmp/node1" | grep -c 'node 1 of 3\|health *good')" 2
ok 'it ends' world_leave
for i in 0 1 2; do wait_for state_is $i degraded; done
one_line 'wait does not take it for a world' '1 of 3 nodes' dealfs wait --nodes 3 --timeout 0.2 "$tmp/node0"
ok 'one that is alone stages what it owns' dealfs stage "$tmp/node0"
is 'which is there' "$(world_sum source.bytes 0 1 2)" "$bytes"
ok 'join' world_join 2 0
is 'numbers are those of the new world' "$(cat "$tmp/node2/.dealfs/node" "$tmp/node0/.dealfs/node")" $'0\n1'
is 'each is well' "$(value "$tmp/node0" state) $(value "$tmp/node2" state)" 'joined joined'
ok 'umount' world_drop 0 1 2
nothing_left 'nothing is left'
done_testing
