#!/bin/bash
# What the README shows works as it stands there, except for the paths: one node, with a training program that is stood
# in for; a world on one machine, as root too; the control file; the sampler on a part of a mount; the model's
# calibration.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
. "$top_srcdir/tests/lib/sh-readme" || exit 99

src=$tmp/src
mkdir -p "$src"/{train,val}/{a,b}
for i in $(seq 700); do
    printf 'P6 2 2 255\n%012d' "$i" | tee "$src/train/a/$i.ppm" "$src/train/b/$i.ppm" >"$src/val/a/$i.ppm"
done

# --- a world on one machine ---
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
block sh '^mpirun .*oversubscribe' >"$tmp/world"
is 'the README has a world to try' "$(grep -c '^mpirun' "$tmp/world")" 1
world_count=4
# shellcheck disable=SC2016
ok 'which comes up and goes' bash -euc '. "$1"; wait' - "$tmp/world"
nothing_left 'nothing is left of it'

# --- one node ---
mkdir -p "$tmp"/{imagenet,node0}
make_python
bytes=$(cat "$src"/*/*/* | wc -c)
at_exit dealfs umount "$tmp/node0"
run_block 'mount, stage, train, status, unmount' '^dealfs mount /data'
trained 'one node' "$bytes"
is 'the status is shown' "$(grep -c 'joined\|alone' "$tmp/.output")" 1
run_block 'the same in a namespace of its own' '^dealfs run '
trained 'in a namespace' "$bytes"
run_block 'a job' '^dealfs launch '
trained 'a job' "$bytes"
nothing_left 'nothing is left of them'

# --- the control file ---
mount_up -o "state=$tmp/state,ram=16M" "$src" "$tmp/node0" >/dev/null 2>&1
block sh '^exec 3<>' | sed 's|train/n[^\\]*JPEG|train/a/7.ppm|' >"$tmp/block"
# shellcheck disable=SC2016
ok 'a request by the shell' bash -euc '. "$1"' - "$tmp/block"
like 'and its reply' "$(cat "$tmp/.output")" '^[0-9]+.*train/a/7\.ppm$'
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    block python 'order=u32' >"$tmp/snippet"
    cat >>"$tmp/snippet" <<'END'
assert sorted(order) == list(range(2100)), samples
assert len(mine) == 2100 // 4, len(mine)
for step in range(2100 // 128):
    theirs, batch = set(order[128 * step:128 * (step + 1)]), set(mine[32 * step:32 * (step + 1)])
    assert len(batch) == 32 and batch <= theirs, step
END
    ok 'one rank of an own permutation' /usr/bin/python3 "$tmp/snippet"
else
    skip 1 'numpy is not installed'
fi
ok 'unmount' dealfs umount "$tmp/node0"

# --- the sampler ---
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ok 'mount' mount_up -o "state=$tmp/state,ram=16M" "$src" "$tmp/node0"
block python ' Sampler\(' | sed 's/^\( *\)\.\.\.$/\1seen.append(len(labels))/' >"$tmp/snippet"
is 'the README has a sampler' "$(grep -c 'seen.append' "$tmp/snippet")" 1
cat >"$tmp/try.py" <<'END'
import sys, torch, torchvision
import torchvision.transforms as t
transform, batch_size, epochs, seen, orders = t.ToTensor(), 16, 2, [], []
exec(open(sys.argv[1]).read().replace(
    '    sampler.set_epoch(epoch)', '    sampler.set_epoch(epoch); orders.append(list(sampler))'))
assert sum(seen) == epochs * len(dataset) == 2800, seen
assert sorted(orders[0]) == list(range(1400)) and orders[0] != orders[1], orders
END
if /usr/bin/python3 -c 'import torch, torchvision, numpy' 2>/dev/null; then
    ok 'it reads each sample once an epoch, in another order each' \
        env PYTHONPATH="$top_srcdir/etc/python" PYTHONDONTWRITEBYTECODE=1 \
        /usr/bin/python3 "$tmp/try.py" "$tmp/snippet"
else
    skip 1 'python3-torch, python3-torchvision or python3-numpy is not installed'
fi

# --- the model ---
# shellcheck disable=SC2016
calibrate=$(grep -o '`dealfs model --calibrate[^`]*' "$top_srcdir/README.md" | tr -d '`' |
    sed "s|/mnt/imagenet|$tmp/node0|")
fails 'calibrating for a world on a mount that is alone' bash -c "$calibrate --seconds 1"
like 'says what lacks' "$(cat "$tmp/.output")" '--cache-rate is needed: .* in no world'
ok 'and takes it' bash -c "$calibrate --seconds 1 --cache-rate 5000"
ok 'unmount' dealfs umount "$tmp/node0"

# --- samples inside containers ---
mkdir "$tmp/containers"
tar -C "$src" -cf "$tmp/containers/a.tar" train/a
ok 'mount' mount_up -o "state=$tmp/state,ram=16M" "$tmp/containers" "$tmp/node0"
run_block 'an index, and a plan of it' '^dealfs index '
is 'half of the records' "$(grep -c '^[0-9]*$' "$tmp/.output")" 350
ok 'unmount' dealfs umount "$tmp/node0"
nothing_left
done_testing
