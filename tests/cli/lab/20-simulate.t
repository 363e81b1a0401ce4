#!/bin/bash
# `dealfs simulate imbalance` against the paper's Figure 6, `dealfs model` against its equations.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap" || exit 99
require python3

# --- simulate ---
ok 'simulate, JSON and picture' sh -c "dealfs simulate imbalance --json --plot '$tmp/boxes.svg' >'$tmp/boxes.json'"
full() { dealfs "$@" >/dev/full; }
exits 1 'an output that cannot be written' full simulate imbalance --nodes 2 --batch 2 --steps 2
exits 1 'nor the model'\''s' full model --samples 900 --nodes 2 --train-rate 1 --storage-rate 1 --cache-rate 1
like 'and this is reported' "$(cat "$tmp/.output")" 'part of it is lost'
mkfifo "$tmp/fifo"
cat "$tmp/fifo" >"$tmp/piped" &
tap_pids+=($!)
dealfs simulate imbalance --nodes 2 --batch 5 --steps 2 --plot "$tmp/fifo" >/dev/null
ok 'a fifo stays one' test -p "$tmp/fifo"
[ -p "$tmp/fifo" ] && wait $!
like 'and gets the picture' "$(cat "$tmp/piped")" '</svg>$'
cat >"$tmp/boxes.py" <<'END'
import json, sys
import xml.etree.ElementTree as xml
boxes = json.load(open(sys.argv[1]))
assert [(b['nodes'], b['batch']) for b in boxes] == [(p, b) for p in (16, 64, 256) for b in (32, 64, 128)], 'the pairs'
for b in boxes:
    expected = {32: 6.9, 64: 4.8, 128: 3.4}[b['batch']]
    assert abs(b['median'] - expected) <= 0.3, b
    assert b['min'] <= b['q1'] <= b['median'] <= b['q3'] <= b['max'], b
    assert set(b) == {'nodes', 'batch', 'mean', 'median', 'q1', 'q3', 'min', 'max', 'transfers', 'transfers_least',
                      'lost'}, b
    assert b['transfers_least'] <= b['transfers'] <= min(2 * b['transfers_least'], b['nodes'] - 1), b
tree = xml.parse(sys.argv[2]).getroot()
space = '{http://www.w3.org/2000/svg}'
assert tree.tag == space + 'svg'
assert len([r for r in tree.iter(space + 'rect') if r.get('fill-opacity')]) == 9, 'nine boxes'
END
ok 'the medians are the figures of the paper' python3 "$tmp/boxes.py" "$tmp/boxes.json" "$tmp/boxes.svg"
table=$(dealfs simulate imbalance --nodes 2,3 --batch 5 --samples 1000 --steps 10)
like 'a table' "$table" 'nodes +batch +min +q1 +median +q3 +max +transfers +at least +lost'
is 'a line each' "$(grep -cE '^ +[0-9]+ +5 ' <<<"$table")" 2
is 'the same again' "$(dealfs simulate imbalance --nodes 2,3 --batch 5 --samples 1000 --steps 10)" "$table"
is 'one node: nothing moves' "$(dealfs simulate imbalance --nodes 1 --batch 5 --samples 10 --steps 3 --json)" \
    '[{"nodes":1,"batch":5,"mean":0.000,"median":0.000,"q1":0.000,"q3":0.000,"min":0.000,"max":0.000,'\
'"transfers":0.000,"transfers_least":0.000,"lost":0.000}]'
cat >"$tmp/steps.py" <<'END'
import json, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from model import randperm
nodes, batch, samples, steps = 7, 5, 200, 12
each, moved, transfers, least, lost = samples // (nodes * batch), [], 0, 0, 0
for step in range(steps):
    at = step % each * nodes * batch
    part = randperm(samples, step // each)[at:at + nodes * batch]
    surplus = [sum(i * nodes // samples == v for i in part) - batch for v in range(nodes)]
    moved.append(100 * sum(x for x in surplus if x > 0) / len(part))
    least += max(sum(x > 0 for x in surplus), sum(x < 0 for x in surplus))
    lost += 100 * max(surplus) / batch
    while max(surplus) > 0:
        size, giver, taker = min(max(surplus), -min(surplus)), surplus.index(max(surplus)), surplus.index(min(surplus))
        surplus[giver] -= size
        surplus[taker] += size
        transfers += 1
got, = json.load(open(sys.argv[2]))
for key, value in ('mean', sum(moved) / steps), ('min', min(moved)), ('max', max(moved)), \
        ('transfers', transfers / steps), ('transfers_least', least / steps), ('lost', lost / steps):
    assert abs(got[key] - value) < 0.001, (key, got[key], value)
assert got['transfers'] > got['transfers_least'] > 0, got
END
dealfs simulate imbalance --nodes 7 --batch 5 --samples 200 --steps 12 --json >"$tmp/steps.json"
ok 'transfers, the least of them, and what is lost, step by step' \
    python3 "$tmp/steps.py" "$top_srcdir/tests/fs/plan" "$tmp/steps.json"
exits 1 'a batch larger than the dataset' dealfs simulate imbalance --nodes 4 --batch 5 --samples 19
like 'is named' "$(dealfs simulate imbalance --nodes 4 --batch 5 --samples 19 2>&1)" '5 on 4 nodes: .*19 samples'
exits 1 'a picture that cannot be written' \
    dealfs simulate imbalance --nodes 2 --batch 5 --steps 2 --plot "$tmp/none/x.svg"
for wrong in '' 'deals' 'imbalance more' 'imbalance --nodes 0' 'imbalance --nodes 1,,2' 'imbalance --nodes 16385' \
    'imbalance --nodes' 'imbalance --batch x' 'imbalance --samples 0' 'imbalance --steps 0' 'imbalance --nodes 1,' \
    'imbalance --fast'; do
    read -ra words <<<"$wrong"
    exits 2 "simulate $wrong" dealfs simulate "${words[@]}"
done

# --- simulate cost ---
cat >"$tmp/cost.py" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
assert [(r['ranks'], r['batch'], r['window']) for r in rows] == [(p, b, w) for p in (16, 64, 1024) for b in (4, 32)
                                                                 for w in (1, 8)]
for r in rows:
    slowest = {16: 1.37, 64: 1.51, 1024: 1.75}[r['ranks']]
    if r['batch'] == 32 and r['window'] == 1:
        assert abs(r['regular'] - slowest) < 0.09 and abs(r['locality'] - slowest) < 0.09, r
        assert r['moved_cost'] <= 1.6 * r['moved'], r
    if r['batch'] == 32 or r['window'] == 8:
        assert r['cost'] <= r['bound'], r
    assert 1 <= r['cost'] < r['locality'] and r['bound'] >= 1.05, r
END
dealfs simulate cost --batch 4,32 --steps 10 --samples 800000 --json >"$tmp/cost.json"
ok 'swaps by cost make ranks equal, and move little' python3 "$tmp/cost.py" "$tmp/cost.json"
like 'as a table' "$(dealfs simulate cost --ranks 4 --batch 8 --window 1 --samples 1000 --distribution uniform)" \
    'ranks +batch +window .*uniform|uniform costs'
fails 'a window larger than the dataset' dealfs simulate cost --ranks 4 --batch 8 --window 8 --samples 200
numbers() { python3 -c 'import struct, sys
sys.stdout.buffer.write(b"".join(struct.pack("<I", eval(sys.argv[1])) for i in range(4000)))' "$1" >"$tmp/numbers"; }
of_file() { dealfs simulate cost --ranks 8 --batch 4 --window 1,2 --costs "$tmp/numbers" "$@" 2>&1; }
numbers 7
like 'costs of a file, which are all the same' "$(of_file | tail -2 | tr -s ' ')" \
    '^ 8 4 1 1\.000 1\.000 1\.000 [^a-z]* 8 4 2 1\.000 1\.000 1\.000 '
numbers 0
like 'and nothing' "$(of_file | tail -1 | tr -s ' ')" '^ 8 4 2 1\.000 1\.000 1\.000 1\.050 '
numbers '1 + i % 100 * (i % 7)'
of_file --json >"$tmp/costs.json"
ok 'costs that differ' python3 -c 'import json, sys
assert all(1.1 < row["regular"] and row["cost"] <= row["bound"] for row in json.load(open(sys.argv[1])))' \
    "$tmp/costs.json"
numbers 4294967295
like 'as large as numbers can be' "$(of_file --json)" '"regular":1\.0000,"locality":1\.0000,"cost":1\.0000'
like 'there are as many samples as numbers' "$(of_file --batch 1000)" \
    '1 steps of 8 ranks with 1000 .* exceed the dataset.s 4000 samples'
printf 12345 >"$tmp/numbers"
exits 1 'a file of other numbers' of_file
like 'says so' "$(of_file)" 'has 5 bytes, not a multiple of 4'
: >"$tmp/numbers"
exits 1 'an empty file' of_file
like 'a file that is not there' "$(dealfs simulate cost --costs "$tmp/none" 2>&1)" 'none: No such file or directory$'
fails 'another distribution' dealfs simulate cost --distribution normal

# --- model ---
cat >"$tmp/model.py" <<'END'
import json, math, subprocess, sys
import xml.etree.ElementTree as xml
D, V, R, Rc, Rb, U, A = 1281167, 1400, 20000, 300000, 250000, 9000, 0.75
nodes = [1, 2, 14, 15, 64, 256]
base = ['dealfs', 'model', '--samples', D, '--nodes', ','.join(map(str, nodes)), '--train-rate', V, '--storage-rate', R,
        '--cache-rate', Rc]
def model(*more):
    return json.loads(subprocess.run([str(a) for a in [*base, '--json', *more]],
                                     check=True, stdout=subprocess.PIPE).stdout)
def near(a, b):
    assert math.isclose(a, b, rel_tol=1e-5, abs_tol=2e-6), (a, b)
def check(got, Rb, U, A, beta):
    near(got['binds_above'], R / V)
    for p, c in zip(nodes, got['costs']):
        assert c['nodes'] == p
        b = c['beta'] if beta is None else beta
        near(c['beta'], b)
        near(c['training'], D / (p * V))
        io = {'regular': D / R, 'distributed': (1 - A) * D / R + A * D / Rc * (p - 1) / p,
              'locality': (1 - A) * D / R + A * D / Rb * b}
        for way, seconds in io.items():
            near(c[way]['io'], seconds)
            near(c[way]['loading'], seconds + D / (p * U))
            near(c[way]['epoch'], max(D / (p * V), seconds + D / (p * U)))
        assert c['storage_binds'] == (p > R / V), p
check(model('--balance-rate', Rb, '--preprocess-rate', U, '--cached', A, '--beta', 0.05, '--plot', sys.argv[1]),
      Rb, U, A, 0.05)
check(model('--beta', 0), Rc, math.inf, 1, 0)
simulated = model('--batch', 64)
check(simulated, Rc, math.inf, 1, None)
assert abs(simulated['costs'][-1]['beta'] - 0.048) < 0.003, simulated
space = '{http://www.w3.org/2000/svg}'
def lines_in(svg):
    return len(list(xml.parse(svg).getroot().iter(space + 'polyline')))
assert lines_in(sys.argv[1]) == 4, 'four lines'

# Partial-local shuffling: what an exchange takes, and what of it an epoch does not hide.
for Q in 0, 0.01, 0.1, 0.3, 1:
    got = model('--preprocess-rate', U, '--cached', A, '--beta', 0.05, '--exchange', Q, '--plot', sys.argv[1])
    check(got, Rc, U, A, 0.05)
    for p, c in zip(nodes, got['costs']):
        exchange = A * Q * D / Rc * (p - 1) / p
        hidden = max(D / (p * V), (1 - A) * D / R + D / (p * U))
        near(c['exchange'], exchange)
        near(c['visible'], max(0, exchange - hidden))
        near(c['local']['epoch'], max(exchange, hidden))
visible = model('--beta', 0, '--exchange', 1)['costs']
assert visible[0]['visible'] == 0 and visible[-1]['visible'] > 0, visible
assert lines_in(sys.argv[1]) == 5, 'five lines'

# Echoes.
factors, batch, upstream = [1, 1.5, 3.5, 4, 8], 256, 400
got = model('--beta', 0, '--batch', batch, '--echo', ','.join(map(str, factors)), '--upstream-rate', upstream,
            '--plot-echo', sys.argv[1])['echo']
near(got['free_up_to'], V / upstream)
for e, c in zip(factors, got['costs'], strict=True):
    near(c['e'], e)
    near(c['upstream'], batch / upstream)
    near(c['training'], e * batch / V)
    near(c['step'], max(batch / upstream, e * batch / V))
    near(c['fresh'], batch / c['step'])
assert lines_in(sys.argv[1]) == 2, 'two lines'
END
ok 'equations 1 to 8, exchange and echo' python3 "$tmp/model.py" "$tmp/lines.svg"
given=(--samples 1281167 --nodes "16,256" --train-rate 1400 --storage-rate 20000 --cache-rate 200000)
like 'the table says where storage binds' "$(dealfs model "${given[@]}")" 'above R/V = 14\.29 nodes: .*64\.06 s'
like 'and marks what loading costs more' "$(dealfs model "${given[@]}")" ' 256 .* 64\.06\* .*\* +3\.575 '
like 'an exchange has its columns' "$(dealfs model "${given[@]}" --exchange 1)" ' 256 .* 3\.575 +6\.381 +6\.381 +2\.806'
like 'echoes have a table' "$(dealfs model "${given[@]}" --echo 1,4 --upstream-rate 700)" ' 4 .*\* .*Up to e = V/U = 2 '
for missing in samples nodes train-rate storage-rate cache-rate; do
    words=()
    for ((i = 0; i < ${#given[@]}; i += 2)); do
        [ "${given[i]}" = "--$missing" ] || words+=("${given[@]:i:2}")
    done
    exits 2 "model without $missing" dealfs model "${words[@]}"
done
for wrong in '--beta 2' '--cached -1' '--train-rate 0' '--train-rate nan' '--train-rate 1x' \
    '--batch 0' '--nodes 0' '--exchange 1.1' '--exchange -1' '--echo 2' '--upstream-rate 5' '--plot-echo x' \
    '--echo 1,,2 --upstream-rate 5' '--echo 0.5 --upstream-rate 5' '--echo 1x --upstream-rate 5' 'more'; do
    read -ra words <<<"$wrong"
    exits 2 "model $wrong" dealfs model "${given[@]}" "${words[@]}"
done
done_testing
