#!/bin/bash
# A small network, trained by four ranks over the mounts of four nodes: dealt by locality, by DistributedSampler's lists
# and by DistributedSampler itself it has the same weights after each epoch, except for rounding; and the same again
# where a run was ended in mid-epoch and half as many ranks went on. With local lists it is so where the same ranks go
# on, also when samples have changed their node meanwhile.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
python=/usr/bin/python3
$python -c 'import torch, torchvision, numpy' 2>/dev/null ||
    plan_skip 'python3-torch, python3-torchvision or python3-numpy is not installed'
export examples=$top_srcdir/etc/examples PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo

# Classes that can be told by their colour, with noise. The last batch is smaller; it is filled up to what ranks divide,
# which two and four do alike.
cat >"$tmp/make.py" <<'END'
import os, sys
import numpy as np
from PIL import Image
rng = np.random.default_rng(1)
for c in range(4):
    os.makedirs(f'{sys.argv[1]}/class{c}')
for i in range(132):
    pixels = rng.integers(0, 160, (20, 20, 3))
    pixels[:, :, :] += np.array([(0, 0, 90), (0, 90, 0), (90, 0, 0), (45, 45, 45)][i % 4])
    Image.fromarray(pixels.astype(np.uint8)).save(f'{sys.argv[1]}/class{i % 4}/{i:03d}.jpg', quality=95)
END
src=$tmp/src
$python "$tmp/make.py" "$src"
world_default=ram=64M,peer_timeout=600
ok 'four nodes' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"

# Several trainings in one process, for it takes longer to load torch than to train. Prints name, epoch, loss and a
# file's name.
cat >"$tmp/compare.py" <<'END'
import os, sys
sys.path.insert(0, os.environ['examples'])
import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler
import train
rank, ranks, tmp, meet, runs = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:]

class Theirs(DistributedSampler):
    next_epoch = 0
    def __init__(self, dataset, seed, batch_size, mode):
        super().__init__(dataset, seed=seed)
    def over(self, loader):
        return loader

dist.init_process_group('gloo', init_method=meet, rank=rank, world_size=ranks)
for run in runs:
    name, sampler, words = run.split(':')
    dist.barrier()  # rank 0 has written its checkpoint
    def keep(epoch, loss, network):
        if rank == 0:
            print(name, epoch, f'{loss:.6f}', flush=True)
            torch.save(network.state_dict(), f'{tmp}/{name}-{epoch}')
    args = train.parse([f'{tmp}/node{rank}', '--pixels', '16', '--workers', '0', *words.split()])
    train.train(args, *[Theirs] * (sampler == 'theirs'), each_epoch=keep)
dist.destroy_process_group()
END
ranks_run() { # ranks, runs
    local ranks=$1 rank status=0 pids=()
    shift
    rm -f "$tmp/meet"
    for ((rank = 0; rank < ranks; rank++)); do
        $python "$tmp/compare.py" $rank "$ranks" "$tmp" "file://$tmp/meet" "$@" >"$tmp/rank$rank.log" 2>&1 &
        pids+=($!)
        tap_pids+=($!)
    done
    for rank in "${!pids[@]}"; do
        wait "${pids[rank]}" && continue
        status=1
        diag "$(tail -n 5 "$tmp/rank$rank.log")"
    done
    diag "$(cat "$tmp/rank0.log")"
    return $status
}

source_before=$(world_sum source.bytes 0 1 2 3) made=$(value "$tmp/node0" plans.made)
if ranks_run 4 'locality:ours:--batch 8' 'regular:ours:--batch 8 --order regular' 'theirs:theirs:--batch 8' \
    'seed:ours:--batch 8 --seed 9' "ended:ours:--batch 8 --checkpoint $tmp/checkpoint --steps 7" \
    'own:ours:--batch 8 --order local' "own-ended:ours:--batch 8 --order local --checkpoint $tmp/own --steps 7" \
    'moved:ours:--batch 8 --order local --exchange 0.3' \
    "own-ended:ours:--batch 8 --order local --checkpoint $tmp/own"; then
    pass 'four ranks train'
else
    fail 'four ranks train'
fi
is 'nothing came from the source' "$(world_sum source.bytes 0 1 2 3)" "$source_before"
isnt 'plans were made for them' "$(value "$tmp/node0" plans.made)" "$made"
is 'nobody is misplaced' "$(world_sum plans.misplaced 0 1 2 3)" 0
if ranks_run 2 "ended:ours:--batch 16 --checkpoint $tmp/checkpoint"; then
    pass 'two of them go on where four were ended'
else
    fail 'two of them go on where four were ended'
fi

cat >"$tmp/differ.py" <<'END'
import sys, torch
a, b = [torch.load(path) for path in sys.argv[1:3]]
print(max((a[key] - b[key]).abs().max().item() for key in a))
END
differ() { $python "$tmp/differ.py" "$tmp/$1" "$tmp/$2"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 < b + 0) }'; }
for epoch in 0 1; do
    is "epoch $epoch: regular lists are DistributedSampler's, to the last bit" \
        "$(differ regular-$epoch theirs-$epoch)" 0.0
    far=$(differ locality-$epoch seed-$epoch) near=$(differ locality-$epoch regular-$epoch)
    diag "epoch $epoch: weights differ by $near, with another seed by $far"
    ok "epoch $epoch: locality has the same weights" below "$near" 2e-6
    ok 'which another order has not' below 2e-4 "$far"
done
near=$(differ locality-1 ended-1)
diag "ended and gone on with: $near"
ok 'nor does an end in the middle change them' below "$near" 2e-6

# What each node keeps. Between the end of a run and its resumption another one has exchanged samples.
near=$(differ own-1 own-ended-1) far=$(differ own-1 locality-1) moved=$(differ own-1 moved-1)
diag "ended and gone on with: $near; with other batches: $far, with samples exchanged: $moved"
ok 'an end in the middle of local lists changes nothing, with any owners of the samples' below "$near" 2e-6
is 'the exchange was for the second epoch, and then for the third' "$(value "$tmp/node0" turn.epoch)" 2
is 'before the first epoch nothing moves' "$(differ own-0 moved-0)" 0.0
ok 'before the second samples did' below 2e-4 "$moved"
unlike 'nobody was warned' "$(cat "$tmp"/rank?.log)" 'none was exchanged'
ok 'which are other batches' below 2e-4 "$far"

# --- as a program, as it would be started by hand ---
$python "$examples/train.py" "$tmp/node1" --pixels 16 --workers 2 --batch 16 --epochs 6 \
    >"$tmp/train.log" 2>&1
is 'the program, alone and with workers' $? 0
diag "$(cat "$tmp/train.log")"
is 'a line per epoch' "$(grep -c '^epoch [0-9]: loss ' "$tmp/train.log")" 6
ok 'it learns' \
    below "$(awk 'END { print $NF }' "$tmp/train.log")" "$(awk '/^epoch 0:/ { print $NF * 0.9 }' "$tmp/train.log")"
# What torchrun tells its ranks; Debian 12's own does not start any.
export MASTER_ADDR=127.0.0.1 MASTER_PORT WORLD_SIZE=2
as_rank() {
    RANK=$1 $python "$examples/train.py" "$tmp/node2" --pixels 16 --workers 0 --batch 16 --epochs 1
}
two_ranks() {
    local status=0
    MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    background as_rank 1 >"$tmp/second.log" 2>&1
    as_rank 0 >"$tmp/first.log" 2>&1 || status=1
    if [ $status = 0 ]; then
        wait $! || status=2
    else # its partner waits for it
        pkill -P $! && wait $! || :
    fi
    return $status
}
# Somebody else may take the port in the meantime: then with another one.
ranks_end() { until two_ranks; do grep -qi 'address already in use' "$tmp/first.log" || return; done; }
ok 'two ranks of one node, as torchrun starts them' ranks_end || diag "$(tail -n 5 "$tmp/first.log" "$tmp/second.log")"
like 'one of them says how it goes' "$(cat "$tmp/first.log")" '^epoch 0: loss [0-9.]+$'
is 'and is silent' "$(cat "$tmp/second.log")" ''
is 'nobody is misplaced' "$(world_sum plans.misplaced 0 1 2 3)" 0
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
