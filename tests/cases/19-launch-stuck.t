#!/bin/bash
# dealfs launch when something does not answer: a reader of its output pauses, a scheduler ends one agent alone, a name
# server is silent, or the command waits in the kernel where SIGKILL does not end it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require unshare

src=$tmp/src job=$tmp/job mnt=$tmp/job/data
make_files "$src" 4 50000
pending() { # PID SIGNAL
    local shared
    shared=$(sed -n 's/^ShdPnd:\t//p' "/proc/$1/status")
    (((0x$shared >> ($2 - 1)) & 1))
}
written() { sed -n 's/^wchar: //p' "/proc/$1/io"; }
finish() { # what, the exit status, seconds
    ok "$1: it ends" wait_for "$3" has_ended "$launched" || kill -KILL "$launched"
    wait "$launched"
    is "$1: the exit status" $? "$2"
    nothing_left "$1: nothing is left"
    ok "$1: no folder is left" wait_for 10 is_absent "$job"
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
to_full() { DEALFS_RSH=$tmp/rsh dealfs launch --hosts away "$src" "$mnt" -- echo hello >/dev/full; }
exits 1 'output that cannot be written' to_full
like 'and is reported' "$(cat "$tmp/.output")" 'succeeded, but standard output could not be written: part of it is lost'
mkfifo "$tmp/err"
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=2 dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'seq '$lines' >&2; kill -0 $$ && exit 4' >"$tmp/log" 2>"$tmp/err" &
launched=$!
tap_pids+=("$launched")
exec 9<"$tmp/err"
wait_for 20 runs
launch=$(processes 'dealfs launch' | sort -n | head -n 1)
interrupted() { ! pending "$launch" 2; } # a second SIGINT beside one that is pending would be lost
kill -INT "$launch"
wait_for 10 interrupted
kill -INT "$launch"
finish 'a reader that pauses, and SIGINT twice' 130 20
exec 9<&-

# --- an agent stops ---
# On another "node" it continues afterwards and cleans up.
begin() { # patience, options of launch
    rm -f "$tmp/begun"
    DEALFS_RSH="$tmp/rsh" DEALFS_LAUNCH_PATIENCE=$1 background dealfs launch "${@:2}" "$src" "$mnt" -- \
        sh -c 'touch "$1" && exec sleep 1000' sh "$tmp/begun" >"$tmp/log" 2>&1
    launched=$!
    ok 'the command runs' wait_for 20 test -e "$tmp/begun"
    agent=$(ps -o ppid= -p "$(processes 'dealfs mount' | sort -n | head -n 1)" | tr -d ' ')
    kill -STOP "$agent"
    ok 'the agent is stopped' wait_for 10 is_in "$agent" T
}
begin 2 --hosts away
ok 'launch ends' wait_for 30 has_ended "$launched"
kill -CONT "$agent"
finish 'a silent agent' 1 1
like 'the message' "$(cat "$tmp/log")" 'away: dealfs: no message came for 2 s'
begin 600 --grace 1 --hosts away
kill -HUP "$launched"
ok 'launch ends before an agent confirms the end' wait_for 70 has_ended "$launched"
kill -CONT "$agent"
finish 'an agent that does not confirm' 129 1
like 'the message' "$(cat "$tmp/log")" 'its agent has not confirmed that all was removed: run'
begin 2 --grace 1
kill -HUP "$launched"
finish 'an agent of this node is stopped' 129 80
rm "$tmp/begun"

# --- launch stops ---
# More output is left than a pipe takes.
rm -f "$tmp/begun"
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=2 background dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done; seq '$lines'; exec sleep 1000' \
    sh "$tmp/begun" "$tmp/go" >/dev/null 2>"$tmp/log"
launched=$!
ok 'the command runs' wait_for 20 test -e "$tmp/begun"
agent=$(ps -o ppid= -p "$(processes 'dealfs mount' | head -n 1)" | tr -d ' ')
kill -STOP "$launched"
wait_for 10 is_in "$launched" T
touch "$tmp/go"
ok 'an agent ends although nobody reads what it says' wait_for 30 has_ended "$agent"
kill -CONT "$launched"
finish 'launch continues' 1 20
rm "$tmp/begun"

# --- one agent gets SIGTERM, and `launch` none ---
# `launch` hears that the node is mounted when the agent has already begun to end: the command must not begin.
DEALFS_SOURCE_FAULTS=stat=300 background dealfs launch "$src" "$mnt" -- touch "$tmp/begun" >"$tmp/log" 2>&1
launched=$!
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
like 'which is said' "$(cat "$tmp/log")" 'dealfs: the agent was ended by SIGTERM'
ok 'the command has not begun' test ! -e "$tmp/begun"

# --- a name server that is silent ---
# In a network of its own, where a socket takes its questions. The resolver would wait for minutes.
cat >"$tmp/silent.py" <<'END'
import socket, sys, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 53))
open(sys.argv[1], 'w').close()
print(len(server.recv(512)), file=open(sys.argv[2], 'w'), flush=True)
time.sleep(1000)
END
echo 'nameserver 127.0.0.1
options timeout:30 attempts:5' >"$tmp/resolv.conf"
echo 'hosts: dns' >"$tmp/nsswitch.conf"
# shellcheck disable=SC2016
DEALFS_RSH=$tmp/rsh timeout 60 unshare -n -m sh -c 'ip link set lo up
    touch /etc/resolv.conf && mount --bind "$1/resolv.conf" /etc/resolv.conf || exit 99
    mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf || exit 99
    python3 "$1/silent.py" "$1/listens" "$1/asked" & server=$!
    for i in $(seq 300); do [ ! -e "$1/listens" ] || break; sleep 0.1; done
    dealfs launch --hosts nowhere.example "$2" "$3" -- sh -c "echo \$MASTER_ADDR"; status=$?
    kill $server; exit $status' sh "$tmp" "$src" "$mnt" >"$tmp/out1" 2>"$tmp/log"
is 'a silent name server: the exit status' $? 0
ok 'it was asked' test -s "$tmp/asked"
is 'ranks get an address' "$(cat "$tmp/out1")" 127.0.0.1
nothing_left 'nothing is left'
ok 'no folder is left' test ! -e "$job"

# --- a command that SIGKILL does not end ---
# It reads another mount, whose server has the request and is stopped.
other=$tmp/other faults=$tmp/faults
set_faults 'hang=*'
DEALFS_PATIENCE=300 DEALFS_SOURCE_FAULTS="file=$faults" mount_up -o ram=8M "$src" "$other"
server=$(value "$other" pids.server)
background dealfs launch --grace 1 "$src" "$mnt" -- \
    dd if="$other/class0/000.bin" of=/dev/null bs=1M iflag=direct >"$tmp/log" 2>&1
launched=$!
is_dd() { grep -qsx dd "/proc/$1/comm"; }
command_waits() {
    command=$(processes 'dd if=' | while read -r pid; do ! is_dd "$pid" || echo "$pid"; done)
    [ -n "$command" ] && [ "$(value "$other" parked)" -gt 0 ]
}
ok 'the command waits for the source' wait_for 20 command_waits
kill -STOP "$server"
ok 'its server is stopped' wait_for 10 is_in "$server" T
kill -HUP "$launched"
ok 'it waits in the kernel' wait_for 20 is_in "$command" D
ok 'launch ends all the same' wait_for 60 has_ended "$launched" || kill -KILL "$launched"
wait "$launched"
is 'its exit status' $? 129
like 'the message' "$(cat "$tmp/log")" 'processes of the job do not end after SIGKILL: they wait for a disk'
ok 'the command has not ended' is_in "$command" D
set_faults ''
kill -CONT "$server"
command_gone() { [ ! -e "/proc/$command" ] || is_in "$command" Z; }
ok 'it ends when the server answers' wait_for 20 command_gone
ok 'unmount' dealfs umount "$other"
nothing_left 'nothing is left'
done_testing
