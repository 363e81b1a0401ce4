#!/bin/bash
# README's training loop, with 1 to 4 ranks and 0 to 4 workers, persistent or not, stopped early, with validation
# between epochs, two jobs, skipped files, strangers, and a feeder that is killed: no word about its epochs is false.
# Twelve runs; LOOPS=200 for more. A plain loop is repeated until all of its epochs are complete: that is not known of
# one at whose end the feeder is late.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

python=/usr/bin/python3
$python -c 'import torch, torchvision, numpy' 2>/dev/null ||
    plan_skip 'python3-torch, python3-torchvision or python3-numpy is not installed'
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo PYTHONPATH=$top_srcdir/etc/python
$python - "$tmp/src" <<'EOF'
import os, sys
for i in range(240):
    os.makedirs(f'{sys.argv[1]}/train/class{i % 5}', exist_ok=True)
    with open(f'{sys.argv[1]}/train/class{i % 5}/{i:03}.jpg', 'wb') as f:
        f.write(os.urandom(9000))
EOF
settle "$tmp/src"
runs=${LOOPS:-12}
$python "$top_srcdir/tests/lib/loops.py" "$tmp" 0 "$runs" 3 >"$tmp/said" 2>&1
diag "$(cat "$tmp/said")"
read -r all again false < <(grep -v '^#' "$tmp/said" | tail -n 1)
is 'all have run' "$all" "$runs"
is 'no word is false' "$false" 0
diag "$again runs of the plain loop were not complete, and were repeated"
nothing_left
done_testing
