#!/bin/bash
# `dealfs model --calibrate`: the rates of live mounts, alone and in a world, and the model with them.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require python3

# Pictures of the demo's codec would do; PIL is what tests have. One name with an escape.
src=$tmp/src mnt=$tmp/alone
pictures=null
/usr/bin/python3 - "$src" <<'END' && pictures=yes
import os, sys
os.makedirs(sys.argv[1] + '/a')
for i in range(300):
    with open(f'{sys.argv[1]}/a/{i:03d}.bin', 'wb') as f:
        f.write(os.urandom(3000))
try:
    from PIL import Image
except ImportError:
    sys.exit(1)
for i in range(100):
    Image.effect_noise((40, 40), 30 + i).convert('RGB').save(f'{sys.argv[1]}/a/\\{i:03d}.jpg', format='JPEG')
END
samples=$(find "$src" -type f | wc -l)
measure() { dealfs model --calibrate "$@" --seconds 1 --json 2>"$tmp/err"; }
cat >"$tmp/check.py" <<'END'
import json, math, sys
got, samples, nodes, pictures, *words = json.load(open(sys.argv[1])), *sys.argv[2:]
m = got['measured']
def measured(*rates): # whatever they are
    return all(0 < rate < math.inf for rate in rates)
assert m['samples'] == int(samples) and m['nodes'] == int(nodes), m
assert m['cached'] == 1, m
assert measured(m['storage_rate'], m['local_rate']), m
peers = int(nodes) > 1
assert (m['cache_rate'] is not None) == (m['balance_rate'] is not None) == peers, m
assert not peers or measured(m['cache_rate'], m['balance_rate']), m
assert (m['preprocess_rate'] is not None) == (pictures == 'yes'), m
assert pictures != 'yes' or measured(m['preprocess_rate']), m
for c in got.get('costs', ()):
    D, R, Rc, p, U = (m['samples'], m['storage_rate'], m['cache_rate'] or 1000, c['nodes'],
                      m['preprocess_rate'] or math.inf)
    assert math.isclose(c['regular']['io'], D / R, rel_tol=1e-3), c
    assert math.isclose(c['distributed']['io'], D / Rc * (p - 1) / p, rel_tol=1e-3, abs_tol=1e-6), c
    assert math.isclose(c['preprocessing'], D / (p * U), rel_tol=1e-3, abs_tol=1e-6), c
    assert math.isclose(c['training'], D / (p * 100), rel_tol=1e-3), c
assert ('costs' in got) == ('model' in words), got.keys()
END
check() { python3 "$tmp/check.py" "$tmp/json" "$samples" "$@"; }

# --- alone ---
ok 'mount' mount_up -o ram=64M "$src" "$mnt"
ok 'stage' dealfs stage "$mnt"
exits 0 'measure' sh -c "dealfs model --calibrate '$mnt' --seconds 1 --json >'$tmp/json' 2>'$tmp/err'"
ok 'what can be measured alone' check 1 $pictures
like 'it says what it is at' "$(cat "$tmp/err")" 'measuring the source'
table=$(dealfs model --calibrate "$mnt" --seconds 1 2>"$tmp/err")
like 'a table' "$table" 'samples D +[0-9]+.*storage rate R +[0-9.e+]+  samples/s, this node alone'
like 'with gaps' "$table" 'cache rate Rc +-'
unlike 'and no model' "$table" training
one_line 'a model without peers' 'cache-rate is needed: this mount is in no world' \
    sh -c "dealfs model --calibrate '$mnt' --seconds 1 --nodes 1 --train-rate 100 2>&1 | grep -F needed >&2; exit 1"
measure "$mnt" --nodes 1,4 --train-rate 100 --cache-rate 1000 --beta 0.1 >"$tmp/json"
ok 'a model with what is measured and what is given' check 1 $pictures model
exits 2 'nodes without a training rate' dealfs model --calibrate "$mnt" --nodes 4
exits 2 'no time' dealfs model --calibrate "$mnt" --seconds 0
one_line 'no mount' "$tmp/src" dealfs model --calibrate "$tmp/src"
ok 'unmount' dealfs umount "$mnt"

# --- three nodes ---
world_default=ram=64M,peer_timeout=600
ok 'three nodes' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
source_before=$(world_sum source.bytes 0 1 2)
measure "$tmp/node1" --nodes 1,3,9 --train-rate 100 --batch 4 >"$tmp/json"
ok 'in a world everything is measured' check 3 $pictures model
diag "$(cat "$tmp/json")"
is 'the mounts ask the source for nothing' "$(world_sum source.bytes 0 1 2)" "$source_before"
isnt 'but the others' "$(value "$tmp/node1" bytes.peer)" 0
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
