#!/bin/bash
# Plans of a world of four nodes: the same everywhere, and what the ranks then read is nearly all their own node's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require python3

# Reads a list of sample numbers, in its order, through a mount, and compares with the source. By O_DIRECT: each byte is
# asked of the server once, whatever the kernel reclaims.
cat >"$tmp/read.py" <<'END'
import os, sys
mount, source, request = sys.argv[1:]
names = open(f'{mount}/.dealfs/samples').read().split('\n')
numbers = [int(x) for x in open(f'{mount}/.dealfs/plan/{request}')]
for n in numbers:
    fd = os.open(f'{mount}/{names[n]}', os.O_RDONLY | os.O_DIRECT)
    with open(f'{source}/{names[n]}', 'rb') as b:
        assert os.read(fd, 8192) == b.read(), names[n]
    os.close(fd)
assert len(numbers) == 256, len(numbers)
END
src=$tmp/src
make_files "$src" 1024 8192
world_default=ram=64M,peer_timeout=600
ok 'four nodes' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
layout=$(value "$tmp/node0" layout)
base="epoch=5 ranks=4 batch=64 layout=$layout"
ask() { # node, words
    local node=$1
    shift
    # shellcheck disable=SC2086
    dealfs plan "$tmp/node$node" "$@"
}

field() { grep -o "\"$1\":[0-9.]*" | head -1 | sed 's/.*://'; }

planned() { sed 's/"held_percent":[0-9.]*//'; } # that is of the asking node, and of this moment
# shellcheck disable=SC2086
summary=$(ask 0 $base reply=summary | planned)
for i in 1 2 3; do
    # shellcheck disable=SC2086
    is "node $i plans the same" "$(ask $i $base reply=summary | planned)" "$summary"
done
is 'in four steps' "$(field steps <<<"$summary")" 4
is 'of all samples' "$(field samples <<<"$summary")" 1024
ok 'little moves' test "$(field moved <<<"$summary")" -lt 100
isnt 'but some' "$(field moved <<<"$summary")" 0
is 'as many bytes' "$(field moved_bytes <<<"$summary")" $(($(field moved <<<"$summary") * 8192))
is 'nothing lacks an owner' "$(field unowned <<<"$summary")" 0

# Each step's batches together are those of the regular lists.
cat >"$tmp/union.py" <<'END'
import sys
ours, regular = [[list(map(int, line.split())) for line in open(path)] for path in sys.argv[1:]]
assert len(ours) == len(regular) == 4
for s in range(4):
    step = [[x[s * 64:(s + 1) * 64] for x in lists] for lists in (ours, regular)]
    assert sorted(sum(step[0], [])) == sorted(sum(step[1], [])), s
    assert all(len(x) == 64 for x in step[0])
END
# shellcheck disable=SC2086
{ ask 2 $base >"$tmp/ours"; ask 3 $base mode=regular >"$tmp/regular"; }
ok 'every step has the samples that DistributedSampler gives it' python3 "$tmp/union.py" "$tmp/ours" "$tmp/regular"

# --- four ranks read their lists at once ---
source_before=$(world_sum source.bytes 0 1 2 3)
peer_before=$(world_sum bytes.peer 0 1 2 3)
ram_before=$(world_sum bytes.ram 0 1 2 3)
readers=()
for i in 0 1 2 3; do
    python3 "$tmp/read.py" "$tmp/node$i" "$src" "${base// /,},rank=$i" >"$tmp/read$i.log" 2>&1 &
    readers+=($!)
done
for i in 0 1 2 3; do
    ok "rank $i reads its list in order" wait "${readers[i]}"
    is 'without a complaint' "$(cat "$tmp/read$i.log")" ''
done
peer=$(($(world_sum bytes.peer 0 1 2 3) - peer_before)) ram=$(($(world_sum bytes.ram 0 1 2 3) - ram_before))
ok 'nine tenths of the bytes, or more, are from the own shard' test $((ram * 10)) -ge $(((ram + peer) * 9))
is 'what came from peers is what the plan moves' "$peer" "$(field moved_bytes <<<"$summary")"
is 'nothing came from the source' "$(world_sum source.bytes 0 1 2 3)" "$source_before"
is 'nobody is misplaced' "$(world_sum plans.misplaced 0 1 2 3)" 0

# --- ranks elsewhere ---
# shellcheck disable=SC2086
turned=$(ask 0 $base nodes=3,2,1,0)
is 'ranks the other way round: the same lists' "$(tac <<<"$turned")" "$(cat "$tmp/ours")"
# shellcheck disable=SC2086
ask 0 $base nodes=3,2,1,0 rank=0 >/dev/null
is 'one that asks at another node is counted' "$(value "$tmp/node0" plans.misplaced)" 1
# shellcheck disable=SC2086
like 'a name that all nodes have is refused' "$(ask 0 $base "nodes=$(hostname),1,2,3" 2>&1)" 'host with several nodes'
like 'ranks that cannot be divided, too' \
    "$(ask 0 epoch=0 ranks=6 batch=4 2>&1)" '6 ranks cannot be divided evenly over 4 nodes'
is 'unless it is said where they are' "$(ask 0 epoch=0 ranks=6 batch=4 nodes=0,0,0,1,2,3 | wc -l)" 6
is 'two ranks a node' "$(ask 0 epoch=0 ranks=8 batch=32 | tr ' ' '\n' | sort -n | uniq | wc -l)" 1024
local=$(ask 1 epoch=0 ranks=4 batch=64 mode=local reply=summary)
is 'local: every read is' "$(field moved <<<"$local")" 0

# --- the world goes, and comes again smaller ---
ok 'the world ends' world_leave
ok 'each node is alone' wait_for are degraded 0 1 2 3
# shellcheck disable=SC2086
is 'a node alone plans with its last world' "$(ask 2 $base reply=summary | planned)" "$summary"
ok 'three join' world_join 0 1 2
isnt 'under another layout' "$(value "$tmp/node0" layout)" "$layout"
# shellcheck disable=SC2086
is 'the one before is known still' "$(ask 1 $base reply=summary | planned)" "$summary"
is 'now ranks are on three' "$(ask 1 epoch=0 ranks=3 batch=64 | wc -l)" 3
like 'one that never was is not' \
    "$(ask 1 epoch=0 ranks=3 batch=64 layout=00112233445566778899aabbccddeeff 2>&1)" 'is not known here'
ok 'the fourth is unmounted' world_drop 3
ok 'umount --world' world_umount

# --- groups: a sample has two owners, and less must move ---
rm -rf "$tmp"/state*
world_default=ram=64M,peer_timeout=600,groups=2
ok 'four nodes in two groups' world_mount 4
two=$(ask 3 epoch=5 ranks=4 batch=64 reply=summary | planned)
is 'the same at another node' "$(ask 0 epoch=5 ranks=4 batch=64 reply=summary | planned)" "$two"
ok 'less is moved' test "$(field moved <<<"$two")" -lt "$(field moved <<<"$summary")"
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
