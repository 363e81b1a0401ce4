#!/bin/bash
# Loaders that know nothing of dealfs, and read as PyTorch's DistributedSampler has them: which epoch that is, is found
# by the reads; validation in between is left alone, and a wrong order noticed.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
python3 - "$src" <<'END'
import os, sys
for i in range(2000):
    folder = f'{sys.argv[1]}/train/class{i % 5}'
    os.makedirs(folder, exist_ok=True)
    with open(f'{folder}/{i:04}.bin', 'wb') as f:
        f.write(i.to_bytes(4, 'little') * 1000)
os.makedirs(sys.argv[1] + '/val')
open(sys.argv[1] + '/val/one', 'w').write('1')
END

# Two ranks with two workers each, which read a batch each at the same time. The lists come from the plans that the
# orders of torch are tested by.
cat >"$tmp/train.py" <<'END'
import os, subprocess, sys, threading
mnt, epoch, seed, part = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
here = [int(rank) for rank in sys.argv[5:]] or [0, 1]
names = [n for n in open(mnt + '/.dealfs/samples').read().splitlines() if n.startswith('train/')]
def read(batches):
    for batch in batches:
        for sample in batch:
            with open(f'{mnt}/{names[sample]}', 'rb') as f:
                f.read()
if seed == 'validation':
    lists = [list(range(2000))]
else:
    lists = [[int(i) for i in open(f'{mnt}/.dealfs/plan/epoch={epoch},ranks=2,batch=8,seed={seed},mode=regular,'
                                   f'under=train,rank={rank}')] for rank in here]
workers = []
for order in lists:
    order = order[:int(len(order) * part)]
    batches = [order[at:at + 8] for at in range(0, len(order), 8)]
    workers += [threading.Thread(target=read, args=(batches[w::2],)) for w in (0, 1)]
for worker in workers: worker.start()
for worker in workers: worker.join()
END
train() { python3 "$tmp/train.py" "$mnt" "$@"; }
state() { [ "$(value "$mnt" feed.sampler.state)" = "$1" ]; }
follows() { state following && [ "$(value "$mnt" feed.sampler.epoch)" = "$1" ]; }
fed() { value "$mnt" fed.reads | python3 -c 'import json, sys; print(sum(json.load(sys.stdin).values()))'; }
fed_more() { [ "$(fed)" -gt "$1" ]; }

one_line 'it needs ranks' 'sampler=torch.* needs ranks=' dealfs mount -o sampler=torch,batch=8 "$src" "$tmp"
one_line 'and batches' 'sampler=torch.* needs batch=' dealfs mount -o sampler=torch,ranks=2 "$src" "$tmp"
one_line 'and a window' 'needs feed= above 0' dealfs mount -o feed=0,sampler=torch,ranks=2,batch=8 "$src" "$tmp"
one_line 'no other sampler' 'must be torch' dealfs mount -o sampler=other "$src" "$tmp"
one_line 'nothing without it' 'needs sampler=torch' dealfs mount -o ranks=3 "$src" "$tmp"
one_line 'a tail that torch has' 'must be pad or drop' dealfs mount -o tail=short "$src" "$tmp"

mount_up -o ram=100M,feed=1M,sampler=torch,ranks=2,batch=8,seed=3,under=train "$src" "$mnt"
feeder_runs() { [ "$(value "$mnt" feed.feeder)" != 0 ]; }
ok 'a feeder runs from the beginning' wait_for feeder_runs
ok 'which waits for reads' wait_for state reading

# What the feeder asks for cannot be written.
refusals() { grep -c 'cannot be planned' "$(value "$mnt" log)"; }
mount --bind /dev/full "$mnt/.dealfs/control"
ok 'an epoch that cannot be planned' train 5 3 0.3
ok 'is seen' wait_for eval '[ "$(refusals)" -gt 0 ]'
ok 'and looked for again after a while' wait_for state reading
before=$(refusals)
for _ in 1 2 3 4 5 6 7 8; do state reading; done
is 'when more is read' "$(refusals)" "$before"
umount "$mnt/.dealfs/control"

ok 'a part of epoch 5' train 5 3 0.3
ok 'is recognized' wait_for follows 5
ok 'more of it' train 5 3 0.6
ok 'and what comes next is read ahead' wait_for fed_more 50
ok 'all of it' train 5 3 1
next_is_guessed() { [ "$(value "$mnt" feed.plans | grep -c '"epoch": 6')" = 1 ]; }
ok 'the next epoch is guessed' wait_for next_is_guessed
cat "$src"/val/one "$mnt/val/one" >/dev/null
ok 'validation' train 0 validation 1
before=$(value "$mnt" feed.sampler.wrong)
ok 'the next epoch' train 6 3 0.5
ok 'is followed' wait_for follows 6
is 'nothing was wrong' "$(value "$mnt" feed.sampler.wrong)$before" 00
like 'status says so' "$(dealfs status "$mnt")" 'feed .*epoch 6 of the sampler'
top_shows() { dealfs top --once "$mnt" | grep -qE 'rank [01] +6\?'; }
ok 'and top' wait_for top_shows
ok 'another order' train 0 77 0.5
wrong() { [ "$(value "$mnt" feed.sampler.wrong)" = 1 ]; }
ok 'is noticed' wait_for wrong
ok 'and said' grep -q 'reads do not match epoch 6' "$(value "$mnt" log)"
again() { train 8 3 1 && follows 8; }
ok 'the right one is found again' wait_for again
ok 'umount' dealfs umount "$mnt"

# Ranks that the training has not: nothing is read ahead, and status says why, until it is mounted as it should be.
health() { value "$mnt" health; }
mount_up -o ram=100M,feed=1M,sampler=torch,ranks=3,batch=8,seed=3,under=train "$src" "$mnt"
ok 'a feeder that expects three ranks runs' wait_for state reading
is 'it has nothing to say yet' "$(value "$mnt" condition)" good
mismatch() { train 4 3 0.5 1 && [[ $(health) == *'no epoch of ranks=3, batch=8, seed=3'*'match ranks=2.'* ]]; }
ok 'one of two ranks is noticed' wait_for mismatch
is 'in numbers, too' "$(value "$mnt" feed.sampler.fitting_ranks)" 2
exits 3 'status exits with 3' dealfs status "$mnt"
ok 'umount' dealfs umount "$mnt"
mount_up -o ram=100M,feed=1M,sampler=torch,ranks=2,batch=36,seed=3,under=train "$src" "$mnt"
ok 'a feeder that expects larger batches runs' wait_for state reading
batches() { train 4 3 0.5 && [[ $(health) == *'read batches of batch=36 samples, but of '*[02468]' or a divisor'* ]]; }
ok 'smaller batches are noticed' wait_for batches
ok 'umount' dealfs umount "$mnt"

# PyTorch itself: two ranks, each a process with two workers.
cat >"$tmp/torch_train.py" <<'END'
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler
class Files(Dataset):
    def __init__(self, root):
        self.paths = sorted(os.path.join(d, n) for d, _, names in os.walk(root) for n in names)
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, i):
        time.sleep(0.001)
        with open(self.paths[i], 'rb') as f:
            return torch.frombuffer(bytearray(f.read(4)), dtype=torch.int32)[0]
torch.set_num_threads(1)
files = Files(sys.argv[1])
sampler = DistributedSampler(files, num_replicas=2, rank=int(sys.argv[2]), seed=3)
loader = DataLoader(files, batch_size=8, num_workers=2, sampler=sampler)
seen, first = 0, int(sys.argv[3])
for epoch in range(first, first + 3):
    sampler.set_epoch(epoch)
    seen += sum(len(batch) for batch in loader)
assert seen == 3000
END
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    mnt=$tmp/torch
    mount_up -o ram=100M,feed=1M,sampler=torch,ranks=2,batch=8,seed=3,under=train "$src" "$mnt"
    ok 'another feeder runs' wait_for state reading
    # Where the feeder lags behind the loaders, it finds their epoch too late to feed it: then they go on.
    epoch=40 failed=0
    rank() { env OMP_NUM_THREADS=1 /usr/bin/python3 "$tmp/torch_train.py" "$mnt/train" "$1" $epoch; }
    torch_is_followed() {
        background rank 0
        local other=$! look
        rank 1 || failed=$((failed + 1))
        wait "$other" || failed=$((failed + 1))
        epoch=$((epoch + 3))
        for ((look = 0; look < 50; look++)); do ! follows $((epoch - 1)) || ! fed_more 50 || return 0; done
        find "$mnt/train" -type f -exec dd if={} iflag=nocache count=0 status=none \;
        return 1
    }
    ok 'PyTorch trains: its epoch is found and fed' wait_for torch_is_followed
    is 'both ranks have all samples' $failed 0
    is 'nothing was wrong' "$(value "$mnt" feed.sampler.wrong)" 0
    one_line 'of guesses nothing is claimed' "$mnt: " dealfs status --epoch "$mnt"
    ok 'umount' dealfs umount "$mnt"
else
    skip 6 'python3-torch is not installed'
fi
nothing_left
done_testing
