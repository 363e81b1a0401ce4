#!/bin/bash
# The other release of Debian: the tests of each change pass there, and each release reads the shard of the other.
. "${top_srcdir:-$(dirname "$0")/..}/tests/lib/sh-mount" || exit 99
require_root
require mmdebstrap
[ -z "${DEALFS_RELEASE-}" ] || plan_skip 'this runs in another release already'

here=$(. /etc/os-release && echo "$VERSION_ID")
other=$((25 - here))
cd "$top_srcdir" || exit 99
there() { tests/release $other "$@"; }

ok "the tests pass on Debian $other" there ./bootstrap check || diag "$(tail -n 40 "$tmp/.output")"
like 'which is what they say' "$(tail -n 1 "$tmp/.output")" '^[0-9]{4,} passed, 0 failed, [0-9]+ skipped$'
diag "$(tail -n 1 "$tmp/.output")"
diag "$(grep '^skipped in' "$tmp/.output")"

src=$tmp/src mnt=$tmp/mnt
make_files "$src" 200 30000
mkdir "$mnt" "$tmp/ssd"
cat >"$tmp/staged" <<'END'
#!/bin/bash
# staged PROGRAM FOLDER: mounts FOLDER/src with an SSD tier, stages it, compares it, prints the bytes from the source.
set -e
"$1" mount -o "ram=0,ssd=$2/ssd,state=$2/state-$(uname -r)-$SRANDOM" "$2/src" "$2/mnt" >&2
"$1" stage "$2/mnt" >&2
diff -r -x .dealfs "$2/src" "$2/mnt" >&2
"$1" status --json "$2/mnt" | python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["bytes"])'
"$1" umount "$2/mnt" >&2
END
chmod +x "$tmp/staged"
isnt 'a shard is filled' "$("$tmp/staged" "$top_builddir/dealfs" "$tmp" 2>"$tmp/log")" 0
is "Debian $other has all that it holds" "$(there "$tmp/staged" ./dealfs "$tmp" 2>"$tmp/log")" 0
is 'and so has this one' "$("$tmp/staged" "$top_builddir/dealfs" "$tmp" 2>"$tmp/log")" 0
rm -rf "$tmp/ssd"
mkdir "$tmp/ssd"
isnt "a shard is filled on Debian $other" "$(there "$tmp/staged" ./dealfs "$tmp" 2>"$tmp/log")" 0
is 'and this one has all that it holds' "$("$tmp/staged" "$top_builddir/dealfs" "$tmp" 2>"$tmp/log")" 0
nothing_left 'nothing is left'
done_testing
