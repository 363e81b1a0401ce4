#!/bin/bash
# The Python package by itself, without a mount.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"

for python in /usr/bin/python3 ${PYTHON:+"$PYTHON"} python3; do
    command -v "$python" >/dev/null && "$python" -c 'import numpy, torch' 2>/dev/null || continue
    tap_done=1 # it prints the plan
    PYTHONPATH=$top_srcdir/etc/python:$top_srcdir/tests/lib OMP_NUM_THREADS=1 \
        "$python" -B "$top_srcdir/tests/etc/python/units.py" "$top_srcdir"
    exit
done
plan_skip 'python3-torch or python3-numpy is not installed'
