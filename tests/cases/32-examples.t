#!/bin/bash
# The examples of etc/examples on a real world of four nodes: each rank reads its list, in its order, on its own mount.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require python3
examples=$top_srcdir/etc/examples
export PYTHONDONTWRITEBYTECODE=1
python=/usr/bin/python3

# Images by their names only; one is called as badly as a file can be.
src=$tmp/src
python3 - "$src" <<'END'
import os, sys
for c in range(4):
    os.makedirs(f'{sys.argv[1]}/class{c}')
for i in range(121):
    with open(f'{sys.argv[1]}/class{i % 4}/{i:03d}.jpg', 'wb') as f:
        f.write(os.urandom(1000 + i))
with open(sys.argv[1] + '/class1/a b\\n\\\\c\n\rd%,.jpg', 'wb') as f:
    f.write(b'odd')
END
ok 'four nodes' world_mount 4
keys=(epoch=3 ranks=4 batch=8)

# Number, bytes and path of each sample of a rank, by the list and the source.
cat >"$tmp/expect.py" <<'END'
import os, re, sys
source, samples = sys.argv[1:]
names = [re.sub(r'\\(.)', lambda m: {'n': '\n', 'r': '\r', '\\': '\\'}[m[1]], x)
         for x in open(samples, newline='').read().split('\n')]
for n in map(int, sys.stdin):
    sys.stdout.write(f'{n}\t{os.path.getsize(source + "/" + names[n])}\t{names[n]}\n')
END
for rank in 0 1 2 3; do
    dealfs plan "$tmp/node$rank" "${keys[@]}" "rank=$rank" |
        python3 "$tmp/expect.py" "$src" "$tmp/node0/.dealfs/samples" >"$tmp/expected$rank"
done
is 'the four lists have all samples' \
    "$(cut -f 1 "$tmp"/expected? | grep -xE '[0-9]+' | sort -n | uniq | wc -l)" 122

read -ra compiler <<<"${CC:-cc}"
ok 'the C program compiles without a complaint' \
    "${compiler[@]}" -Wall -Wextra -Werror -O1 -o "$tmp/read-plan" "$examples/read-plan.c"
try() { # what, the example as a function of node and rank
    local rank ranks=()
    for rank in 0 1 2 3; do
        "$2" "$tmp/node$rank" "$rank" >"$tmp/got$rank" 2>"$tmp/got$rank.err" &
        ranks+=($!)
    done
    wait "${ranks[@]}"
    for rank in 0 1 2 3; do
        ok "$1: rank $rank reads its list" cmp "$tmp/got$rank" "$tmp/expected$rank"
        is 'without a complaint' "$(cat "$tmp/got$rank.err")" ''
    done
}
by_shell() { "$examples/read-plan.sh" "$1" "${keys[@]}" "rank=$2"; }
by_python() { $python "$examples/read_plan.py" "$1" "${keys[@]}" "rank=$2"; }
by_c() { "$tmp/read-plan" "$1" "$(IFS=,; echo "${keys[*]}"),rank=$2"; }
try shell by_shell
try Python by_python
try C by_c
one_line 'shell: a refusal has its reason' 'needs `batch=' "$examples/read-plan.sh" "$tmp/node1" epoch=0 ranks=4
one_line 'Python: so has it' 'read_plan.py: .*: plan: .*needs `batch=' $python "$examples/read_plan.py" "$tmp/node1" \
    epoch=0 ranks=4
is 'shell: an empty list is none' \
    "$("$examples/read-plan.sh" "$tmp/node1" epoch=0 ranks=4 batch=8 rank=1 skip=122; echo $?)" 0
one_line 'C: a refusal is led to its reason' 'the reason is in .*/errors' "$tmp/read-plan" "$tmp/node1" epoch=0,ranks=4
like 'which is there' "$(tail -n 1 "$tmp/node1/.dealfs/errors")" 'needs `batch='
is 'nobody is misplaced' "$(world_sum plans.misplaced 0 1 2 3)" 0

# --- the sampler ---
cat >"$tmp/sampler.py" <<'END'
import os, subprocess, sys
import torch.distributed as dist
from torch.utils.data import DataLoader
from dealfs import Refused
from dealfs.torch import PlansDiffer, Sampler
rank, tmp, meet = int(sys.argv[1]), sys.argv[2], sys.argv[3]
# Rank 0 and 1 run on node 2, the others each on one.
place = ['node2', 'node2', 'node0', 'node3'][rank]
mount, count, batch = f'{tmp}/{place}', 122, 8
def plan(*words):
    out = subprocess.run(['dealfs', 'plan', mount, 'samples=imagefolder', 'batch=8', *words],
                         check=True, stdout=subprocess.PIPE)
    return [int(x) for x in out.stdout.split()]
def make(count=count, batch=batch, **keys):
    return Sampler(range(count), batch_size=batch, mount=mount, **keys)
def refused(sampler, kind=Refused):
    try:
        sampler.set_epoch(0)
    except kind as error:
        return str(error)
    raise AssertionError('not refused')

if meet == 'alone':
    sampler = make()
    assert list(sampler) == plan('epoch=0', 'ranks=1', 'rank=0', 'nodes=2') and len(sampler) == count
    sys.exit()
dist.init_process_group('gloo', init_method=meet, rank=rank, world_size=4)
where = ['ranks=4', f'rank={rank}', 'nodes=2,2,0,3']
sampler = make()
assert len(sampler) == 31, len(sampler)
assert list(sampler) == list(sampler) == plan('epoch=0', *where), 'epoch 0'
sampler.set_epoch(7)
whole = list(sampler)
assert whole == plan('epoch=7', *where), 'epoch 7'
steps = [indices.tolist() for indices in sampler.over(DataLoader(range(count), batch, sampler=sampler))]
assert sum(steps, []) == whole and [len(step) for step in steps] == [8, 8, 8, 7], 'steps'
for steps, _ in enumerate(sampler.over(DataLoader(range(count), batch, sampler=sampler)), 1):
    if steps == 2:
        break
half, resumed = sampler.state_dict(), make()
resumed.load_state_dict(half)
resumed.set_epoch(7)
assert list(resumed) == whole[2 * batch:], 'resumed'
other = make(seed=6, mode='regular')
other.set_epoch(1)
everyone = [None] * 4
dist.all_gather_object(everyone, (list(other), list(resumed)))
assert list(other) == plan('epoch=7', 'mode=regular', *where), 'keys'
why = refused(make(count - 1))
assert 'has 122 samples' in why and '1 of 4' in why, why
why = refused(make(seed=rank // 3), PlansDiffer)
assert 'the ranks have different plans' in why and 'rank 3' in why, why
why = refused(make(count - (rank == 1)))
assert '1 of 4' in why and 'rank 1: ' in why and 'has 122 samples' in why, why
why = refused(make(catalog='0' * 32))
assert 'the mount has another dataset' in why, why
sampler.set_epoch(8)
assert list(sampler) == plan('epoch=8', *where), 'and on'
try:
    make(num_replicas=8)
    raise AssertionError('not of the process group')
except ValueError as error:
    assert 'give group=' in str(error), error
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
pair = make(group=pairs[rank // 2])
assert (pair.rank, pair.num_replicas) == (rank % 2, 2), 'of a group'
assert list(pair) == plan('epoch=0', 'ranks=2', f'rank={rank % 2}', f'nodes={["2,2", "0,3"][rank // 2]}'), 'group'
sampler.pace.wait, sampler.pace.step = rank + 1, 1
sampler.fix_echo()
sampler.set_epoch(9)
assert len(sampler) == 61 and list(sampler) == plan('epoch=9', 'echo=2', *where), 'all ranks with the echo of rank 0'
resumed = make()
resumed.load_state_dict({**half, 'epoch': 9, 'consumed': 8 * 4, 'echo': 2, 'order': sampler.order})
assert len(list(resumed)) == 53, 'resumed within an echoed epoch'
dist.destroy_process_group()
END
if $python -c 'import torch, numpy' 2>/dev/null; then
    export PYTHONPATH=$top_srcdir/etc/python OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
    ranks=()
    for rank in 0 1 2 3; do
        $python "$tmp/sampler.py" $rank "$tmp" "file://$tmp/meet" >"$tmp/sampler$rank.log" 2>&1 &
        ranks+=($!)
        tap_pids+=($!)
    done
    for rank in 0 1 2 3; do
        ok "sampler: rank $rank" wait "${ranks[rank]}" || diag "$(tail -n 5 "$tmp/sampler$rank.log")"
    done
    ok 'sampler: without a process group' $python "$tmp/sampler.py" 0 "$tmp" alone
else
    skip 5 'python3-torch or python3-numpy is not installed'
fi
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
