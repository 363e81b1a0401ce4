#!/bin/bash
# The list `imagefolder` against torchvision's ImageFolder, over random trees of tricky names.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"

for python in /usr/bin/python3 ${PYTHON:+"$PYTHON"} python3; do
    command -v "$python" >/dev/null || continue
    tap_done=1 # it prints the plan
    PYTHONUTF8=1 "$python" "$top_srcdir/tests/fs/catalog/imagefolder.py" \
        "${LIST_SAMPLES:-$top_builddir/tests/fs/catalog/list-samples}" "$tmp"
    exit
done
plan_skip 'python3 is not installed'
