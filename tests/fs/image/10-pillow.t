#!/bin/bash
# Photographs of Debian's package lomiri-wallpapers-16.04: decoded and resized as Pillow does it.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"

photographs=(/usr/share/backgrounds/{analogpattern_by_Peter_Nerlich,free_by_Peter_Nerlich,Picture_0B_by_freespace}.jpg)
[ -e "${photographs[0]}" ] || plan_skip 'lomiri-wallpapers-16.04 is not installed'
for python in /usr/bin/python3 ${PYTHON:+"$PYTHON"} python3; do
    command -v "$python" >/dev/null && "$python" -c 'import PIL, numpy' 2>/dev/null || continue
    tap_done=1 # it prints the plan
    "$python" -B "$top_srcdir/tests/fs/image/pillow.py" "$top_builddir/tests/bench/shrinker" "$tmp" "${photographs[@]}"
    exit
done
plan_skip 'python3-pil is not installed'
