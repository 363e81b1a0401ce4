#!/bin/bash
# Training from local parts, as the paper found: parts drawn at random train as well as global shuffling does; parts
# that were sorted by class do not; and do again when a tenth of them is exchanged before each epoch.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
python=/usr/bin/python3
$python -c 'import torch, numpy' 2>/dev/null || plan_skip 'python3-torch or python3-numpy is not installed'
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
training=$top_srcdir/tests/figures/training.py

src=$tmp/src nodes=("$tmp"/node{0,1,2,3}) epochs=20
world_default=ram=64M,exchange,peer_timeout=600
ok 'a dataset of 8 classes' $python "$training" make "$src" 160 1000
settle "$src"
train() { # what is exchanged; prints the mean accuracy of the last epochs
    $python "$training" train $epochs 8 "$1" "${nodes[@]}" >"$tmp/train.log" 2>&1 ||
        cat "$tmp/train.log" >&2
    tail -n 4 "$tmp/train.log" | awk 'NF == 5 { n++; sum += $2 } END { if (n == 4) print sum / n }'
}
holds() { awk "BEGIN { exit !($1) }"; }

ok 'four nodes' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
source=$(world_sum source.bytes 0 1 2 3)
global=$(train global)
local=$(train 0)
diag "random parts: global $global, Q = 0 $local"
ok 'global shuffling learns' holds "${global:-0} > 0.8"
ok 'random parts are as good' holds "${local:-0} > ${global:-1} - 0.04"
is 'nothing came from the source' "$(world_sum source.bytes 0 1 2 3)" "$source"
ok 'unmount' world_umount

# Node i reads classes 2i and 2i + 1 before it is joined.
sorted() {
    local i
    rm -rf "$tmp"/state*
    for i in 0 1 2 3; do
        dealfs mount -o "state=$tmp/state$i,$world_default" "$src" "$tmp/node$i" || return
        cat "$tmp/node$i"/class$((2 * i))/* "$tmp/node$i"/class$((2 * i + 1))/* >/dev/null
    done
    world_join 0 1 2 3
}
owners() { dealfs where "$tmp/node0" "${nodes[0]}/class$1"/* | cut -f 2 | sort | uniq -c | tr -s ' \n' ' '; }
ok 'parts that are sorted by class' sorted
is 'class 0 is all with node 0' "$(owners 0)" ' 160 0 '
is 'class 7 with node 3' "$(owners 7)" ' 160 3 '
source=$(world_sum source.bytes 0 1 2 3)
sorted=$(train 0)
exchanged=$(train 0.1)
diag "sorted parts: Q = 0 $sorted, Q = 0.1 $exchanged"
ok 'they train worse' holds "${sorted:-1} < ${global:-0} - 0.05"
ok 'with a tenth exchanged before each epoch they are as good' holds "${exchanged:-0} > ${global:-1} - 0.05"
isnt 'samples of class 0 are elsewhere now' "$(owners 0)" ' 160 0 '
is 'nothing came from the source' "$(world_sum source.bytes 0 1 2 3)" "$source"
ok 'unmount' world_umount
nothing_left 'nothing is left'
done_testing
