#!/bin/bash
# etc/troubleshooting.md: each message that it quotes is one of the sources' or of the kernel's, and each sentence on a
# mount's health is in it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99

messages() { /usr/bin/python3 "$top_srcdir/tests/lib/messages.py" "$top_srcdir" "$1"; }
is 'each message that it quotes exists' "$(messages quoted)" True
is 'each sentence on health is explained' "$(messages health)" True
done_testing
