#!/bin/bash
# Servers that end, stop or stick, and reads that wait: readers notice nothing, and `status` tells.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
make_files "$src" 16 100000
: >"$faults"
export DEALFS_SOURCE_FAULTS="file=$faults" DEALFS_FAULTS='stuck_lookup=stuck*@1' DEALFS_PATIENCE=5

health() { value "$mnt" health; }
server() { value "$mnt" pids.server; }
status_is() { dealfs status "$mnt" >/dev/null; [ $? = "$1" ]; }
says() { health | grep -q "$1"; }

ok 'mount' mount_up "$src" "$mnt"
exits 0 'all is well' dealfs status "$mnt"
log=$(value "$mnt" log)
ok 'status names the log' grep -q 'is ready' "$log"
is 'dealfs log prints it' "$(dealfs log "$mnt")" "$(cat "$log")"
background dealfs log -f "$mnt" >"$tmp/followed" 2>&1
follower=$!
is 'no server has ended' "$(value "$mnt" restarts)" '{"count": 0, "last": []}'

background stat "$mnt/stuck" >/dev/null 2>&1
lookups=($!)
ok 'a request that takes long is reported' wait_for says 'a request has been in progress for'

# Every reader of the first server sticks in the kernel, whatever their number.
first=$(server)
for ((i = 0; i < 70; i++)); do
    background stat "$mnt/stuck$i" >/dev/null 2>&1
    lookups+=($!)
done
ok 'a server whose readers are stuck is replaced' wait_for has_ended "${lookups[@]}"
ok 'by another' wait_for replaced "$mnt" server "$first"
like 'that is said' "$(health)" '1 server of this mount ended .* was stuck'
ok 'and is no good health when the first one has ended' wait_for status_is 3

second=$(server)
kill -STOP "$second"
background cat "$mnt/class0/000.bin" >"$tmp/read"
reader=$!
ok 'a server that is stopped is replaced' wait_for replaced "$mnt" server "$second"
ok 'a read meanwhile succeeds' wait "$reader"
ok 'with the right bytes' cmp "$tmp/read" "$src/class0/000.bin"
like 'that is said' "$(health)" '2 servers of this mount ended .* was stopped'
ok 'dealfs log -f shows it when it is added' wait_for grep -q "server $second is stopped" "$tmp/followed"
ok 'and was said before' grep -q "server $second is stopped" "$log"

# In the hands of a debugger it is nobody else's.
third=$(server)
mkfifo "$tmp/hold"
python3 -c '
import ctypes, os, signal, sys, time
pid, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
SEIZE, CONT, EVENT_STOP = 0x4206, 7, 128
if libc.ptrace(SEIZE, pid, None, None):  # at first: a server that is only stopped is soon replaced
    sys.exit(os.strerror(ctypes.get_errno()))
os.kill(pid, signal.SIGSTOP)
while any(open(f"/proc/{pid}/task/{task}/stat").read().rpartition(") ")[2][0] not in "Tt"
          for task in os.listdir(f"/proc/{pid}/task")):
    done, status = os.waitpid(pid, os.WNOHANG | 0x40000000)
    if done and status >> 16 != EVENT_STOP:
        libc.ptrace(CONT, pid, None, ctypes.c_void_p(os.WSTOPSIG(status)))
    time.sleep(0.001)
print("seized", flush=True)
sys.stdin.read()
os.kill(pid, signal.SIGCONT)  # it continues when this process ends' "$third" <"$tmp/hold" >"$tmp/seized" 2>&1 &
debugger=$!
tap_pids+=("$debugger")
exec 7>"$tmp/hold"
ok 'a debugger stops the server' wait_for grep -q seized "$tmp/seized"
ok 'the keeper sees that' wait_for grep -q "a debugger is attached" "$log"
ok 'and leaves it alone' kill -0 "$third"
exec 7>&-
wait "$debugger"
is 'it goes on' "$(grep -c "\"server\": $third" "$mnt/.dealfs/status")" 1

cat "$mnt"/class[023]/* >/dev/null
counted() { for key in reads bytes source; do value "$mnt" $key; done; }
samples_counted() { [ "$(value "$mnt" source.samples)" -ge 12 ]; } # an answer is counted when it has been sent
ok 'reads are counted' wait_for samples_counted
before=$(counted)
ok 'a server is killed' restart "$mnt" server
is 'what was counted is not lost' "$(counted)" "$before"
like 'memory is thought of' "$(health)" 'signal 9 .Killed.\. If nobody did that, memory ran out'
is 'all are counted' "$(value "$mnt" restarts.count)" 3

# What waits for the source is no fault of the server's.
fourth=$(server)
set_faults 'hang=*'
background cat "$mnt/class1/001.bin" >"$tmp/read"
reader=$!
ok 'a read that waits long is said, with what it waits for' \
    wait_for says 'reads\? waits\? for the source, the longest for'
ok 'the server stays' test "$(server)" = "$fourth"
set_faults ''
ok 'the read ends' wait "$reader"
ok 'nothing waits' wait_for sh -c '! grep -q "wait for the source" "$0/.dealfs/status"' "$mnt"
ok 'unmount' dealfs umount "$mnt"
ok 'dealfs log -f ends with the mount' wait_for has_ended "$follower"
exits 1 'dealfs log of nothing' dealfs log "$mnt"
done_testing
