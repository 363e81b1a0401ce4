#!/bin/bash
# Plans by cost in a world of two nodes: what samples cost, how equal ranks are, single steps, what is left out.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require python3
# Open MPI leaks at its end.
[ -z "${TEST_SANITIZER-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

src=$tmp/src
cat >"$tmp/make.py" <<'END'
import os, random, sys
draw = random.Random(1)
os.makedirs(sys.argv[1] + '/a b')
for i in range(192):
    with open(f'{sys.argv[1]}/a b/{i:03d}', 'wb') as f:
        f.write(b'a ' * min(20000, int(1000 * draw.lognormvariate(0, 0.9))))
END
python3 "$tmp/make.py" "$src"
world_default=ram=64M,peer_timeout=600
ok 'two nodes' world_mount 2
ok 'stage' dealfs stage "$tmp/node0"
ask() { dealfs plan "$tmp/node0" "$@"; }
field() { grep -Eo "\"$1\":[0-9.]*" | head -1 | sed 's/.*://'; }
base=(epoch=1 ranks=4 batch=16 layout="$(value "$tmp/node0" layout)")

# equal.py SOURCE PLAIN BALANCED MOST RATIOS: the same global batches, and no rank costs more than MOST by the mean
cat >"$tmp/equal.py" <<'END'
import os, sys
size = [os.path.getsize(f'{sys.argv[1]}/a b/{i:03d}') for i in range(192)]
plain, balanced = [[list(map(int, line.split())) for line in open(path)] for path in sys.argv[2:4]]
worst = []
for lists in plain, balanced:
    steps = [[one[s:s + 16] for one in lists] for s in range(0, 48, 16)]
    worst.append(max(max(sum(size[x] for x in one) for one in step) * 4 / sum(size[x] for one in step for x in one)
                     for step in steps))
for s in range(0, 48, 16):
    union = [sorted(x for one in lists for x in one[s:s + 16]) for lists in (plain, balanced)]
    assert union[0] == union[1], s
assert all(len(one) == 48 for one in balanced)
assert worst[0] > 1.1 and worst[1] <= float(sys.argv[4]), worst
open(sys.argv[5], 'w').write('%.2f %.2f' % tuple(worst))
END
ask "${base[@]}" >"$tmp/plain"
ask "${base[@]}" cost=bytes >"$tmp/bytes"
ok 'by bytes the ranks of each step cost the same' \
    python3 "$tmp/equal.py" "$src" "$tmp/plain" "$tmp/bytes" 1.02 "$tmp/ratios"
summary=$(ask "${base[@]}" cost=bytes reply=summary)
is 'the summary shows the worst step before and after' \
    "$(printf '%.2f %.2f' "$(field worst_before <<<"$summary")" "$(sed 's/.*worst_before//' <<<"$summary" |
        field worst)")" \
    "$(<"$tmp/ratios")"
like 'and what the swaps moved' "$summary" '"swaps":\{"count":[1-9][0-9]*,"moved":-?[0-9]+,"moved_bytes":-?[0-9]+\}'
digest() { grep -o '"digest":"[0-9a-f]*"'; }
is 'the other node deals the same' "$(dealfs plan "$tmp/node1" "${base[@]}" cost=bytes reply=summary | digest)" \
    "$(digest <<<"$summary")"
is 'none is the default' "$(ask "${base[@]}" cost=none)" "$(<"$tmp/plain")"
is 'a window larger than the epoch is the epoch' "$(ask "${base[@]}" cost=bytes window=4096)" \
    "$(ask "${base[@]}" cost=bytes window=3)"
of_node() { cut -d' ' -f$((16 * $1 + 1))-$((16 * $1 + 16)) | sed -n "$2p" | tr ' ' '\n' | sort; } # step, lines
ask "${base[@]}" mode=local >"$tmp/local"
ask "${base[@]}" mode=local cost=bytes >"$tmp/local-bytes"
isnt 'in the mode local ranks swap' "$(<"$tmp/local-bytes")" "$(<"$tmp/local")"
for lines in 1,2 3,4; do
    is "only with those of their node: $lines" "$(of_node 1 $lines <"$tmp/local-bytes")" \
        "$(of_node 1 $lines <"$tmp/local")"
done
isnt 'another limit is another plan' "$(ask "${base[@]}" cost=bytes balance=1.2)" "$(<"$tmp/bytes")"
windows=$(ask "${base[@]}" cost=bytes window=3 rank=2)
is 'resumed in the middle of a window: the rest' "$(ask "${base[@]}" cost=bytes window=3 rank=2 skip=64)" \
    "$(tail -n +17 <<<"$windows")"

# --- uploaded costs ---
cat >"$tmp/upload.py" <<'END'
import os, struct, sys
control, line, numbers = sys.argv[1], sys.argv[2], sys.argv[3].split()
fd = os.open(control, os.O_RDWR)
os.write(fd, line.encode() + b'\n' + struct.pack(f'<{len(numbers)}I', *map(int, numbers)))
try:
    print(os.read(fd, 4096).decode(), end='')
except OSError:
    print(os.read(fd, 4096).decode(), end='')
END
upload() { python3 "$tmp/upload.py" "$tmp/node$1/.dealfs/control" "$2" "$3"; } # node, line, numbers
sizes=$(for ((i = 0; i < 192; i++)); do stat -c %s "$src/a b/$(printf %03d "$i")"; done)
like 'costs are uploaded on one node' "$(upload 0 'costs name=tokens' "$sizes")" $'^192\t[0-9a-f]{32}$'
is 'the other node deals by them' "$(dealfs plan "$tmp/node1" "${base[@]}" cost=tokens)" "$(<"$tmp/bytes")"
file="$tmp/node1/.dealfs/plan/$(tr ' ' , <<<"${base[*]}"),cost=tokens"
is 'also in a file' "$(cat "$file")" "$(<"$tmp/bytes")"
is 'costs are no list of samples' "$(cat "$tmp/node0/.dealfs/samples.d/tokens" 2>/dev/null)" ''
like 'nor named as one' "$(ask "${base[@]}" samples=tokens 2>&1)" '`tokens`'
upload 1 'costs name=tokens' "$(seq 1 192)" >/dev/null
isnt 'replaced on the other node: another plan' "$(ask "${base[@]}" cost=tokens)" "$(<"$tmp/bytes")"
isnt 'and another file' "$(cat "$file")" "$(<"$tmp/bytes")"
upload 0 'costs name=few samples=imagefolder' '' >"$tmp/few"
like 'none of an empty list' "$(<"$tmp/few")" 'needs numbers'
like 'too few' "$(upload 0 'costs name=tokens' '1 2 3')" \
    'one little-endian 32-bit number for each of the 192 samples of the list: 768 bytes, not 12'
like 'a name that means something else' "$(upload 0 'costs name=bytes' "$sizes")" 'are reserved'
like 'too many' "$(upload 0 'costs name=tokens' "$sizes 1")" '768 bytes, not 772'
for name in ../tokens /etc/passwd a/b . .. .tokens; do
    like "a name like a path: $name" "$(upload 0 "costs name=$name" "$sizes")" 'a name consists of 1 to 64 of'
done
like 'of no list' "$(upload 0 'costs name=more samples=none' '1')" '`none`'
like 'the name of a sample list' "$(printf 'samples name=tokens\na b/000\n' >"$tmp/line"
    python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(fd, sys.stdin.buffer.read())
try: os.read(fd, 99)
except OSError: print(os.read(fd, 999).decode())' "$tmp/node0/.dealfs/control" <"$tmp/line")" \
    'a cost list has this name: `tokens`'
like 'costs of all are not those of some' "$(ask "${base[@]}" under='a b' match='00*' cost=tokens 2>&1)" \
    'the costs `tokens` belong to another list'
for cost in 0 4294967295; do
    upload 0 'costs name=tokens' "$(yes $cost | head -192)" >/dev/null
    is "where all samples cost $cost, nothing is swapped" "$(ask "${base[@]}" cost=tokens window=3)" "$(<"$tmp/plain")"
    like 'and the summary is sound' "$(ask "${base[@]}" cost=tokens window=3 reply=summary)" '"swaps":\{"count":0,'
done
upload 0 'costs name=tokens' "$(seq 0 191 | sed '192s/.*/4294967295/')" >/dev/null
like 'one sample that costs more than all others' "$(ask "${base[@]}" cost=tokens reply=summary |
    sed 's/.*worst_before//' | field worst)" '^(4|3\.99)'
like 'more ranks than samples' "$(ask epoch=1 ranks=400 batch=3 nodes="$(printf '%d,' {1..399} | sed 's/[0-9]*/0/g')1" \
    tail=short cost=tokens reply=summary)" '"samples":192,'

# Uploads, removals and plans at the same time. A plan is of the one costs or of the other, or there are none.
cat >"$tmp/storm.py" <<'END'
import os, struct, sys, threading
nodes, line, rounds = sys.argv[1:3], sys.argv[3], 6
up, down = [struct.pack('<192I', *numbers) for numbers in (range(192), range(192, 0, -1))]

def request(node, line, payload=b''):
    """The reply, or after an error its reason."""
    fd = os.open(f'{node}/.dealfs/control', os.O_RDWR)
    try:
        os.write(fd, line.encode() + b'\n' + payload)
        pieces = []
        while True:
            try:
                piece = os.read(fd, 1 << 16)
            except OSError:
                continue
            if not piece:
                return b''.join(pieces)
            pieces.append(piece)
    finally:
        os.close(fd)

right, wrong = set(), []
for payload in up, down:
    request(nodes[0], 'costs name=storm', payload)
    right.add(request(nodes[0], f'plan {line} cost=storm'))
assert len(right) == 2, right

def put():
    for i in range(rounds):
        for payload in up, down:
            request(nodes[i % 2], 'costs name=storm', payload)
        request(nodes[i % 2], 'costs name=storm action=remove')

def plan(i):
    for _ in range(rounds):
        reply = request(nodes[i % 2], f'plan {line} cost=storm')
        if reply not in right and b'there is no cost list `storm`' not in reply:
            wrong.append(reply)

threads = [threading.Thread(target=put)] + [threading.Thread(target=plan, args=(i,)) for i in range(64)]
for one in threads:
    one.start()
for one in threads:
    one.join()
assert not wrong, (len(wrong), wrong[0])
for payload in up, down:
    request(nodes[1], 'costs name=storm', payload)
assert {request(node, f'plan {line} cost=storm') for node in nodes} <= right
assert request(nodes[0], 'costs name=storm action=remove').strip() == b'removed'
END
ok '64 clients plan while costs are put and removed' \
    python3 "$tmp/storm.py" "$tmp/node0" "$tmp/node1" "${base[*]}"
is 'removed' "$(upload 1 'costs name=tokens action=remove' '')" 'removed'
like 'gone on all nodes' "$(ask "${base[@]}" cost=tokens 2>&1)" 'there is no cost list `tokens`'
like 'not removed twice' "$(upload 0 'costs name=tokens action=remove' '')" 'there is no cost list `tokens`'

# --- samples that are left out ---
printf 'samples name=broken\na b/003\na b/100\na b/007\n' >"$tmp/line"
python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(fd, sys.stdin.buffer.read())
os.read(fd, 99)' "$tmp/node0/.dealfs/control" <"$tmp/line"
is 'samples of a list are left out, the others keep their numbers' \
    "$(ask "${base[@]}" without=broken order=natural tail=short count=192 | tr ' ' '\n' | sort -n)" \
    "$(seq 0 191 | grep -vxE '3|7|100')"
cat >"$tmp/left.py" <<'END'
import sys
sys.path[:0] = [sys.argv[1]]
sys.dont_write_bytecode = True
from model import randperm
left = [i for i in range(192) if i not in (3, 7, 100)]
print(*[left[i] for i in randperm(len(left), 1)], sep='\n')
END
is 'the permutation is one of those that are left' \
    "$(ask epoch=1 ranks=1 nodes=0 batch=7 without=broken mode=regular rank=0)" \
    "$(python3 "$tmp/left.py" "$top_srcdir/tests/fs/plan")"
is 'the other node leaves them out as well' "$(dealfs plan "$tmp/node1" "${base[@]}" without=broken)" \
    "$(ask "${base[@]}" without=broken)"
is 'also of an order that is given' \
    "$(seq 191 -1 0 | ask epoch=0 ranks=1 nodes=0 batch=4 rank=0 order=text without=broken mode=regular)" \
    "$(seq 191 -1 0 | grep -vxE '3|7|100')"
like 'as many bytes fewer' "$(ask epoch=1 ranks=1 nodes=0 batch=7 without=broken reply=summary)" \
    "\"samples\":189,\"fresh\":189,\"fresh_bytes\":$(cat "$src/a b/"* | wc -c | awk -v gone="$(
        cat "$src/a b/"{003,007,100} | wc -c)" '{ print $1 - gone }')"
contents() { while read -r n; do cat "$src/a b/$(printf %03d "$n")"; done; } # of samples
rank=("${base[@]}" without=broken cost=bytes rank=1)
ok 'a stream has what is left, in the order of equal costs' \
    cmp "$tmp/node0/.dealfs/plan/$(tr ' ' , <<<"${rank[*]}"),reply=bytes" <(ask "${rank[@]}" | contents)
feeding() { python3 "$top_srcdir/tests/lib/feeding.py" "$@"; }
seq 0 191 >"$tmp/all"
printf '%d\n' 3 7 100 >"$tmp/left"
feeding drop "$tmp/node0" "$tmp/all"
ask epoch=5 ranks=1 nodes=0 batch=16 rank=0 without=broken feed=yes >"$tmp/fed"
is_fed() { [ "$(feeding cached "$tmp/node0" "$tmp/fed" 0 189 --seen "$tmp/seen")" = 189 ]; }
ok 'what is left is read ahead' wait_for is_fed
is 'and nothing else' "$(feeding cached "$tmp/node0" "$tmp/left" 0 3)" 0
like 'an unknown list' "$(ask "${base[@]}" without=none 2>&1)" '`none`'
like 'nothing would be left' "$(ask "${base[@]}" without=all 2>&1)" '`without`: this list leaves no samples'

# --- ranks that share samples ---
shared=$(ask epoch=1 ranks=2 batch=32 nodes=0+1,1+0 layout="$(value "$tmp/node0" layout)" reply=summary)
like 'what any node of a rank owns is local' "$shared" '"local_percent":100.000.*"moved":0,'
is 'on the other node, too' "$(dealfs plan "$tmp/node1" epoch=1 ranks=2 batch=32 nodes=0+1,1+0 \
    layout="$(value "$tmp/node0" layout)" reply=summary | digest)" "$(digest <<<"$shared")"
misplaced=$(value "$tmp/node1" plans.misplaced)
dealfs plan "$tmp/node1" epoch=1 ranks=2 batch=32 nodes=0+1,1+0 rank=0 >/dev/null
is 'and no rank is misplaced there' "$(value "$tmp/node1" plans.misplaced)" "$misplaced"
like 'nodes that overlap' "$(ask epoch=1 ranks=2 batch=32 nodes=0,0+1 2>&1)" 'named twice'

# --- single steps ---
is 'a step is that of the whole plan' "$(ask "${base[@]}" cost=bytes step=1)" "$(cut -d' ' -f17-32 "$tmp/bytes")"
is 'also with windows' "$(ask "${base[@]}" cost=bytes window=2 rank=2 step=1)" \
    "$(ask "${base[@]}" cost=bytes window=2 rank=2 | sed -n 17,32p)"
is 'several' "$(ask "${base[@]}" steps=1-2)" "$(cut -d' ' -f17-48 "$tmp/plain")"
is 'with names' "$(ask "${base[@]}" step=2 rank=3 reply=paths)" \
    "$(sed -n 4p "$tmp/plain" | cut -d' ' -f33- | tr ' ' '\n' |
        while read -r n; do printf '2\t3\t%d\ta b/%03d\n' "$n" "$n"; done)"
is 'of all ranks' "$(ask "${base[@]}" reply=paths | cut -f1,2 | uniq -c | xargs)" \
    "$(for s in 0 1 2; do for r in 0 1 2 3; do echo "16 $s $r"; done; done | xargs)"
refuse() { # regex, words
    like "refused: ${*:2}" "$(ask "${base[@]}" "${@:2}" 2>&1)" "$1"
}
refuse 'there is no step 3: the plan has 3 steps' step=3
refuse 'two whole numbers' steps=2-1
refuse 'only one of `step` and `steps`' step=1 steps=1-2
refuse 'needs `cost`' window=2
refuse 'needs `cost`' balance=1.1
for balance in 0 0.5 0.9 1000.1; do refuse 'must be 1 to 1000' cost=bytes balance=$balance; done
for balance in -1 nan 1e3 1.0000001 ''; do refuse 'must be a number' cost=bytes balance=$balance; done
for window in 0 4097 -1 x; do refuse 'must be a whole number of 1 to 4096' cost=bytes window=$window; done
refuse 'there is no cost list `../../state0`' cost=../../state0
refuse '`window` must be 1 with `echo_at=batch`' cost=bytes window=2 echo=2 echo_at=batch
refuse 'needs the whole epoch' step=1 feed=yes

# --- the Python package ---
cat >"$tmp/sampler.py" <<'END'
import os, sys
from dealfs import Mount
from dealfs.torch import Sampler
node, source, layout = sys.argv[1:]
mount = Mount(node)
names = mount.samples()
mount.costs('sizes', [os.path.getsize(f'{source}/{name}') for name in names])
keys = dict(samples='all', cost='sizes', window=2, without='broken', layout=layout)
plan = dict(epoch=1, ranks=4, batch=16, count=192, tail='pad', seed=0)
dealt = mount.plan(**plan, **keys)
assert [list(one) for one in mount.plan(**plan, **{**keys, 'cost': 'bytes'})] == [list(one) for one in dealt]
sampler = Sampler(range(192), 4, 1, batch_size=16, mount=mount, feed=False, **keys)
sampler.set_epoch(1)
assert list(sampler) == list(dealt[1]), 'the sampler deals by cost'
assert len(sampler) == 48 and not set(sampler) & {3, 7, 100}, 'without those that are left out'
explained = sampler.explain(2)
assert [(x.step, x.rank, x.sample) for x in explained] == \
    [(2, rank, sample) for rank in range(4) for sample in dealt[rank][32:48]], explained
assert all(x.path == names[x.sample] and x.offset is None for x in explained)
END
# Processes 0 and 1 are data-parallel rank 0, as under tensor parallelism, 2 and 3 rank 1; of each one on either node.
cat >"$tmp/pairs.py" <<'END'
import os, sys
import torch.distributed as dist
from dealfs import Mount
from dealfs.torch import Sampler
nodes, layout, meet = sys.argv[1:3], sys.argv[3], sys.argv[4]
os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
children = []
for process in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        break
else:
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
mount = Mount(nodes[process in (1, 2)])
dist.init_process_group('gloo', init_method=meet, rank=process, world_size=4)
replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
sampler = Sampler(range(192), batch_size=16, mount=mount, feed=False, samples='all', cost='bytes',
                  nodes=['0+1', '1+0'], group=replicas[process % 2])
sampler.set_epoch(1)
assert (sampler.rank, sampler.num_replicas, len(sampler)) == (process // 2, 2, 96)
found = [None] * 4
dist.all_gather_object(found, (list(map(int, sampler)), sampler.layout))
dealt = mount.plan(epoch=1, ranks=2, batch=16, nodes='0+1,1+0', layout=layout, cost='bytes')
assert found == [(list(map(int, dealt[i // 2])), layout) for i in range(4)], found
dist.destroy_process_group()
END
sampled=''
for python in /usr/bin/python3 ${PYTHON:+"$PYTHON"} python3; do
    "$python" -c 'import numpy, torch' 2>/dev/null || continue
    ok 'a sampler deals by cost, and explains a step' env PYTHONPATH="$top_srcdir/etc/python" OMP_NUM_THREADS=1 \
        "$python" -B "$tmp/sampler.py" "$tmp/node0" "$src" "${base[3]#layout=}"
    ok 'a group of ranks that have two nodes each: partners read the same samples' \
        env PYTHONPATH="$top_srcdir/etc/python" OMP_NUM_THREADS=1 \
        "$python" -B "$tmp/pairs.py" "$tmp/node0" "$tmp/node1" "${base[3]#layout=}" "file://$tmp/meet"
    like 'the example uploads costs' "$("$python" -B "$top_srcdir/etc/examples/costs.py" "$tmp/node1" words 4 16)" \
        '^words: the slowest rank costs 1\.0[0-2] times the mean \(without cost=: 1\.[1-9][0-9]\)$'
    sampled=1
    break
done
[ "$sampled" ] || skip 3 'PyTorch and NumPy are not installed'

ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
