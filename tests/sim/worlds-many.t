#!/bin/bash
# A thousand simulated worlds: seeds that were played before, and as many that nobody has played.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99

run=$top_builddir/tests/sim/run
fresh=$((1000000 * 10#$(date +%j) + 10 * RANDOM))
seeds=${SIM_SEEDS:-500}
new=${SIM_FRESH:-$seeds}
export TMPDIR=/dev/shm

ok "$seeds seeds that were played before find nothing" \
    env -u MALLOC_PERTURB_ "$run" "--jobs=$(nproc)" --first=1 --seeds="$seeds" --seconds=15
[ "$new" = 0 ] || ok "nor do $new new ones: --first=$fresh --seeds=$new --seconds=15" \
    env -u MALLOC_PERTURB_ "$run" "--jobs=$(nproc)" --first="$fresh" --seeds="$new" --seconds=15
ok 'nor do worlds with RocksDB' "$run" --first=1 --seeds=3 --rocks
done_testing
