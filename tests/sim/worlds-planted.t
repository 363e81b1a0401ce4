#!/bin/bash
# Simulated worlds find each fault that is planted in the product (tests/sim/bugs.c).
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99

run=$top_builddir/tests/sim/run
export TMPDIR=/dev/shm

for bug in save bound checksum leak look patience sync; do
    exits 1 "a planted fault is found: $bug" "$run" "--jobs=$(nproc)" --first=1 --seeds=300 --until-found --no-shrink \
        --nodes=3 --faults=20 --bug="$bug"
done
for bug in feed lists skip catalog refuse; do
    exits 1 "one is found without other faults: $bug" "$run" --first=1 --seeds=300 --until-found --no-shrink --nodes=2 \
        --faults=0 --bug="$bug"
done
done_testing
