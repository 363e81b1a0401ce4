#!/bin/bash
# dealfs launch when something does not answer: a reader of its output pauses, or a scheduler ends one agent
# alone.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require_fuse

src=$tmp/src job=$tmp/job mnt=$tmp/job/data
make_files "$src" 4 50000
state_of() { sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status"; }
is_in() { [[ $(state_of "$1") == ["$2"] ]]; } # PID STATES
pending() { # PID SIGNAL
    local shared
    shared=$(sed -n 's/^ShdPnd:\t//p' "/proc/$1/status")
    (((0x$shared >> ($2 - 1)) & 1))
}
written() { sed -n 's/^wchar: //p' "/proc/$1/io"; }
ended() { ! kill -0 "$launched" 2>/dev/null; }
finish() { # what, the exit status, seconds
    ok "$1: it ends" wait_for "$3" ended || kill -KILL "$launched"
    wait "$launched"
    is "$1: the exit status" $? "$2"
    nothing_left "$1: nothing is left"
    ok "$1: no folder is left" test ! -e "$job"
    [ "$tap_failed" = 0 ] || diag "$(tail -n 20 "$tmp/log")"
}

# --- a reader that pauses ---
# On another "node", so that the output goes through `launch`. Both directions of the channel are as patient.
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$tmp/rsh"
chmod +x "$tmp/rsh"
mkfifo "$tmp/out"
lines=400000
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=2 dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'seq '$lines' && echo end >&2 && exit 4' >"$tmp/out" 2>"$tmp/log" &
launched=$!
tap_pids+=("$launched")
exec 9<"$tmp/out"
runs() { [ -n "$(processes seq)" ]; }
ok 'the command runs' wait_for 20 runs
exits 124 'nobody reads for three times as long as an agent may be silent: it waits' \
    timeout 6 tail -f /dev/null --pid="$launched"
is 'the whole output arrives' "$(wc -l <&9)" $lines
exec 9<&-
finish 'a reader that pauses' 4 20
ok 'its errors, too' grep -qx end "$tmp/log"
mkfifo "$tmp/err"
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=2 dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'seq '$lines' >&2; kill -0 $$ && exit 4' >"$tmp/log" 2>"$tmp/err" &
launched=$!
tap_pids+=("$launched")
exec 9<"$tmp/err"
wait_for 20 runs
launch=$(processes 'dealfs launch' | sort -n | head -n 1)
kill -INT "$launch"
kill -INT "$launch"
finish 'a reader that pauses, and SIGINT twice' 130 20
exec 9<&-

# --- one agent gets SIGTERM, and `launch` none ---
# `launch` hears that the node is mounted when the agent has already begun to end: the command must not begin.
DEALFS_SOURCE_FAULTS=stat=300 dealfs launch "$src" "$mnt" -- touch "$tmp/begun" >"$tmp/log" 2>&1 &
launched=$!
tap_pids+=("$launched")
mounts() { agent=$(pgrep -P "$launched") && mount=$(pgrep -P "$agent" -f 'dealfs mount'); }
wait_for 20 mounts
kill -STOP "$launched"
unlike 'launch is stopped while it mounts' "$(cat "$tmp/log")" 'is mounted on'
ok 'it is mounted' wait_for 20 grep -q 'is mounted on' "$tmp/log"
kill -STOP "$mount"
wait_for 10 is_in "$mount" T
kill -TERM "$agent"
ok 'the agent ends' wait_for 10 pending "$mount" 1
before=$(written "$launched")
kill -CONT "$launched"
says() { [ "$(written "$launched")" -gt "$before" ]; }
ok 'launch says that the command is to begin' wait_for 10 says
kill -CONT "$mount"
finish 'an agent gets SIGTERM alone' 1 30
like 'which is said' "$(cat "$tmp/log")" 'dealfs: the agent was told to end'
ok 'the command has not begun' test ! -e "$tmp/begun"
done_testing
