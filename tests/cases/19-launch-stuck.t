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
finish() { # what, the exit status
    ok "$1: it ends" wait_for has_ended "$launched" || kill -KILL "$launched"
    wait "$launched"
    is "$1: the exit status" $? "$2"
    nothing_left "$1: nothing is left"
    ok "$1: no folder is left" wait_for is_absent "$job"
    [ "$tap_failed" = 0 ] || diag "$(tail -n 20 "$tmp/log")"
}

# --- a reader that pauses ---
# On another "node", so that the output goes through `launch`. Both directions of the channel are as patient.
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$tmp/rsh"
chmod +x "$tmp/rsh"
mkfifo "$tmp/out"
lines=400000 patience=4
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=$patience dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'touch "$1" && seq '$lines' && echo end >&2 && exit 4' sh "$tmp/writes" >"$tmp/out" 2>"$tmp/log.reader" &
reader=$!
tap_pids+=("$reader")
exec 9<"$tmp/out"
ok 'the command runs' wait_for test -e "$tmp/writes"

# --- an agent stops ---
# On another "node" it continues afterwards and cleans up.
begin() { # patience, options of launch
    rm -f "$tmp/begun"
    DEALFS_RSH="$tmp/rsh" DEALFS_LAUNCH_PATIENCE=$1 DEALFS_LAUNCH_END=5 \
        background dealfs launch "${@:2}" "$src" "$mnt" -- \
        sh -c 'touch "$1" && exec sleep 1000' sh "$tmp/begun" >"$tmp/log" 2>&1
    launched=$!
    ok 'the command runs' wait_for test -e "$tmp/begun"
    agent=$(ps -o ppid= -p "$(mount_at "$mnt")" | tr -d ' ')
    kill -STOP "$agent"
    ok 'the agent is stopped' wait_for is_in "$agent" T
}
mount_at() { # mountpoint: the `dealfs mount` of an agent
    local pid
    for pid in $(processes 'dealfs mount'); do
        ! tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qxF "$1" || echo "$pid"
    done
}
job=$tmp/job2 mnt=$tmp/job2/data
begin $patience --hosts away
ok 'launch ends' wait_for has_ended "$launched"
kill -CONT "$agent"
wait "$launched"
is 'a silent agent: the exit status' $? 1
ok 'a silent agent: no folder is left' wait_for is_absent "$job"
like 'the message' "$(cat "$tmp/log")" "away: dealfs: no message came for $patience s"
# The agent whose output nobody reads has been as silent for longer.
ok 'for a reader that pauses launch waits' kill -0 "$reader"
is 'the whole output arrives' "$(wc -l <&9)" $lines
exec 9<&-
launched=$reader job=$tmp/job
finish 'a reader that pauses' 4
ok 'its errors, too' grep -qx end "$tmp/log.reader"
mnt=$tmp/job/data
begin 600 --grace 1 --hosts away
kill -HUP "$launched"
ok 'launch ends before an agent confirms the end' wait_for has_ended "$launched"
kill -CONT "$agent"
finish 'an agent that does not confirm' 129
like 'the message' "$(cat "$tmp/log")" 'its agent has not confirmed that all was removed: run'
begin $patience --grace 1
kill -HUP "$launched"
finish 'an agent of this node is stopped' 129
rm "$tmp/begun"

# --- output that cannot be written ---
to_full() { DEALFS_RSH=$tmp/rsh dealfs launch --hosts away "$src" "$mnt" -- echo hello >/dev/full; }
exits 1 'output that cannot be written' to_full
like 'and is reported' "$(cat "$tmp/.output")" 'dealfs: .*standard output'
mkfifo "$tmp/err"
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=$patience \
    env --default-signal=INT dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'touch "$1"; seq '$lines' >&2; kill -0 $$ && exit 4' sh "$tmp/begun" >"$tmp/log" 2>"$tmp/err" &
launched=$!
tap_pids+=("$launched")
exec 9<"$tmp/err"
ok 'the command runs' wait_for test -e "$tmp/begun"
interrupted() { ! pending "$launched" 2; } # a second SIGINT beside one that is pending would be lost
kill -INT "$launched"
wait_for interrupted
kill -INT "$launched"
finish 'a reader that pauses, and SIGINT twice' 130
exec 9<&-
rm "$tmp/begun"

# --- launch stops ---
# More output is left than a pipe takes.
rm -f "$tmp/begun"
DEALFS_RSH=$tmp/rsh DEALFS_LAUNCH_PATIENCE=$patience background dealfs launch --hosts away "$src" "$mnt" -- \
    sh -c 'touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done; seq '$lines'; exec sleep 1000' \
    sh "$tmp/begun" "$tmp/go" >/dev/null 2>"$tmp/log"
launched=$!
ok 'the command runs' wait_for test -e "$tmp/begun"
agent=$(ps -o ppid= -p "$(mount_at "$mnt")" | tr -d ' ')
kill -STOP "$launched"
wait_for is_in "$launched" T
touch "$tmp/go"
ok 'an agent ends although nobody reads what it says' wait_for has_ended "$agent"
kill -CONT "$launched"
finish 'launch continues' 1
rm "$tmp/begun"

# --- one agent gets SIGTERM, and `launch` none ---
# `launch` hears that the node is mounted when the agent has already begun to end: the command must not begin.
DEALFS_START_FAULT=-1 background dealfs launch "$src" "$mnt" -- touch "$tmp/begun" >"$tmp/log" 2>&1
launched=$!
its_mount_stopped() { mount=$(mount_at "$mnt") && [ -n "$mount" ] && is_in "$mount" T; }
ok 'its mount command is stopped' wait_for its_mount_stopped
agent=$(pgrep -P "$launched")
kill -STOP "$launched"
ok 'launch is stopped while it mounts' wait_for is_in "$launched" T
kill -CONT "$mount"
ok 'it is mounted' wait_for says_mounted "$tmp/log"
kill -STOP "$mount"
wait_for is_in "$mount" T
kill -TERM "$agent"
ok 'the agent ends' wait_for pending "$mount" 1
before=$(written "$launched")
kill -CONT "$launched"
says() { [ "$(written "$launched")" -gt "$before" ]; }
ok 'launch says that the command is to begin' wait_for says
kill -CONT "$mount"
finish 'an agent gets SIGTERM alone' 1
like 'which is said' "$(cat "$tmp/log")" 'dealfs: the agent was ended by SIGTERM'
ok 'the command has not begun' test ! -e "$tmp/begun"

# --- a name server that is silent ---
# In a network of its own, where a socket takes its questions. By TCP the resolver waits for an answer without end.
cat >"$tmp/silent.py" <<'END'
import socket, sys
server = socket.socket()
server.bind(('127.0.0.1', 53))
server.listen(64)
open(sys.argv[1], 'w').close()
connections = []
while True:
    connections.append(server.accept()[0])
    if connections[-1].recv(1):
        print('asked', file=open(sys.argv[2], 'w'), flush=True)
END
echo 'nameserver 127.0.0.1
options use-vc' >"$tmp/resolv.conf"
echo 'hosts: dns' >"$tmp/nsswitch.conf"
# shellcheck disable=SC2016
DEALFS_RSH=$tmp/rsh unshare -n -m sh -c 'ip link set lo up
    touch /etc/resolv.conf && mount --bind "$1/resolv.conf" /etc/resolv.conf || exit 99
    mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf || exit 99
    python3 "$1/silent.py" "$1/listens" "$1/asked" & server=$!
    until [ -e "$1/listens" ]; do sleep 0.02; done
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
ok 'the command waits for the source' wait_for command_waits
kill -STOP "$server"
ok 'its server is stopped' wait_for is_in "$server" T
kill -HUP "$launched"
ok 'it waits in the kernel' wait_for is_in "$command" D
ok 'launch ends all the same' wait_for has_ended "$launched" || kill -KILL "$launched"
wait "$launched"
is 'its exit status' $? 129
like 'the message' "$(cat "$tmp/log")" 'processes of the job do not end after SIGKILL: they wait for a disk'
ok 'the command has not ended' is_in "$command" D
set_faults ''
kill -CONT "$server"
command_gone() { [ ! -e "/proc/$command" ] || is_in "$command" Z; }
ok 'it ends when the server answers' wait_for command_gone
ok 'unmount' dealfs umount "$other"
nothing_left 'nothing is left'
done_testing
