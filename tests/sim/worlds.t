#!/bin/bash
# Worlds of simulated nodes, by seed. `make sim` plays more.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99

run=$top_builddir/tests/sim/run
export TMPDIR=/dev/shm

ok '100 worlds find nothing' env -u MALLOC_PERTURB_ "$run" "--jobs=$(nproc)" --first=1 --seeds=100 --seconds=15
ok 'a seed is played the same way again' "$run" --first=101 --seeds=3 --twice
history() { "$run" 7 --faults=12 --history 2>&1 | grep -v '^#'; } # disks fail: messages name folders
is 'and by another process' "$(history)" "$(history)"
done_testing
