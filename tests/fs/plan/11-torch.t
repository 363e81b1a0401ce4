#!/bin/bash
# Orders and regular lists against PyTorch's own.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"

for python in /usr/bin/python3 ${PYTHON:+"$PYTHON"} python3; do
    command -v "$python" >/dev/null && "$python" -c 'import torch' 2>/dev/null || continue
    tap_done=1 # it prints the plan
    "$python" -B "$top_srcdir/tests/fs/plan/torch-order.py" "$top_builddir/tests/fs/plan/planner"
    exit
done
plan_skip 'python3-torch is not installed'
