#!/bin/bash
# Worlds of simulated nodes, by seed. `make sim` plays more.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99

run=$top_builddir/tests/sim/run
fresh=$((1000000 * 10#$(date +%j) + 10 * RANDOM))
seeds=${SIM_SEEDS:-$([ -z "${TEST_SANITIZER-}" ] && echo 500 || echo 20)}
new=${SIM_FRESH:-$seeds} # seeds that nobody has played
jobs=--jobs=$(nproc)
export TMPDIR=/dev/shm

ok "$seeds seeds that were played before find nothing" \
    env -u MALLOC_PERTURB_ "$run" "$jobs" --first=1 --seeds="$seeds" --seconds=15
[ "$new" = 0 ] || ok "nor do $new new ones: --first=$fresh --seeds=$new --seconds=15" \
    env -u MALLOC_PERTURB_ "$run" "$jobs" --first="$fresh" --seeds="$new" --seconds=15
ok 'nor do worlds with RocksDB' "$run" --first=1 --seeds=3 --rocks
ok 'a seed is played the same way again' "$run" --first=101 --seeds=3 --twice
history() { "$run" 7 --faults=12 --history 2>&1 | grep -v '^#'; } # disks fail: messages name folders
is 'and by another process' "$(history)" "$(history)"
for bug in save bound checksum leak look patience sync; do
    exits 1 "a planted fault is found: $bug" "$run" "$jobs" --first=1 --seeds=300 --until-found --no-shrink --nodes=3 \
        --faults=20 --bug="$bug"
done
for bug in feed lists skip catalog refuse; do
    exits 1 "one is found without other faults: $bug" "$run" --first=1 --seeds=300 --until-found --no-shrink --nodes=2 \
        --faults=0 --bug="$bug"
done
done_testing
