#!/bin/bash
# Layouts of random worlds, against a second computation in Python.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"

for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    command -v "$python" >/dev/null || continue
    tap_done=1 # it prints the plan
    "$python" -B "$top_srcdir/tests/fs/world/layouts.py" "$top_builddir/tests/fs/world/layouts" \
        ${LAYOUT_SEED:+"$LAYOUT_SEED"}
    exit
done
plan_skip 'python3 is not installed'
