#!/bin/bash
# A start that fails takes back everything it has made, and says why in one line.
. "${top_srcdir:-$(dirname "$0")/../../..}/tests/lib/sh-tap"
require_root
require_fuse

src=$tmp/src mnt=$tmp/mnt state=$tmp/state ssd=$tmp/ssd bin=$tmp/bin
mkdir -p "$src/a" "$mnt" "$ssd" "$bin"
echo hello >"$src/a/x"
cp "$top_builddir/dealfs" "$top_builddir/dealfs-keeper" "$bin"

server() { # what stands in for dealfs-server
    printf '#!/bin/sh\n%s\n' "$1" >"$bin/dealfs-server"
    chmod +x "$bin/dealfs-server"
}
nothing() {
    ! mounted "$mnt" && [ ! -e "$state" ] && [ -z "$(ls -A "$ssd")" ] && [ -z "$(ls -A "$mnt")" ] &&
        [ -z "$(processes)" ]
}
fails_with() { # what, regular expression of the last line, command
    local what=$1 expected=$2
    shift 2
    exits 1 "$what" "$@"
    like "$what: it says why" "$(tail -n 1 "$tmp/.output")" "$expected"
    ok "$what: nothing is left" wait_for nothing
}
start() { "$bin/dealfs" mount -o "state=$state,ssd=$ssd" "$src" "$mnt"; }

fails_with 'no server' '^dealfs: dealfs-server: neither .*To do: install' start
server 'exit 2'
fails_with 'a server that refuses' 'the server cannot run' start
server 'kill -9 $$'
fails_with 'a server that dies' 'five servers in a row died' start
fails_with 'run, with a server that dies' 'five servers in a row died' \
    "$bin/dealfs" run -o "state=$state,ssd=$ssd" "$src" "$mnt" -- touch "$tmp/ran"
fails 'and the command is not run' test -e "$tmp/ran"

# One that never says that it is ready, until the command is interrupted.
server 'exec sleep infinity'
"$bin/dealfs" mount -o "state=$state,ssd=$ssd" "$src" "$mnt" >"$tmp/stuck" 2>&1 &
stuck=$!
tap_pids+=("$stuck")
server_hangs() { pgrep -P "$(processes dealfs-keeper)" -x sleep >"$tmp/.output"; }
ok 'a server that hangs' wait_for server_hangs
fails 'nothing is mounted before it answers' mounted "$mnt"
ok 'the command waits' kill -0 $stuck
kill -TERM $stuck
wait $stuck
is 'SIGTERM ends it' $? 1
is 'it says why' "$(tail -n 1 "$tmp/stuck")" 'dealfs: interrupted'
ok 'nothing is left' wait_for nothing

# What was there before stays there.
mkdir "$state"
server 'exit 2'
exits 1 'a state directory of before' start
ok 'stays' test -d "$state"
done_testing
