#!/bin/bash
# The loader, the mount and its feeder in a memory control group that has no room for an epoch: pages are reclaimed all
# the time, and nobody dies of it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
most=$((96 << 20)) files=2048
[ -z "${TEST_SANITIZER-}" ] || plan_skip 'sanitizers need more memory'
memory_group $most || plan_skip 'no memory control group can be made'
src=$tmp/src mnt=$tmp/mnt list=$tmp/list state=$tmp/state
# 128 MiB.
make_files "$src" $files 65536
settle "$src"
mkdir "$mnt"

feeding() { in_group python3 "$top_srcdir/tests/lib/feeding.py" "$@"; }
plan_epoch() { dealfs plan "$mnt" ranks=1 batch=8 rank=0 "$@" | tr '\n' ' ' >"$list"; }
is_fed() { # epoch
    value "$mnt" feed.plans | python3 -c 'import json, sys
sys.exit(not any(p["epoch"] == int(sys.argv[1]) and p["ranks"][0]["fed"] for p in json.load(sys.stdin)))' "$1"
}
fed_reads() { value "$mnt" fed.reads | python3 -c 'import json, sys; print(sum(json.load(sys.stdin).values()))'; }
# Of these files so many are in the page cache, or READs for as many were answered for the feeder.
cached() {
    [ "$(feeding cached "$mnt" "$list" "$1" "$2" --seen "$tmp/seen.$1.$2")" -ge "$3" ] || [ "$(fed_reads)" -ge "$3" ]
}
group_number() { # KEY FILE…, of the group: the number behind the key, in the first file that there is
    local key=$1 file
    shift
    for file; do
        [ ! -e "$group/$file" ] || { awk -v key="$key" '$1 == key { print $2 } !key' "$group/$file" && return; }
    done
}
refused() { [ -e "$group/memory.failcnt" ] && group_number '' memory.failcnt || group_number max memory.events; }
killed() { group_number oom_kill memory.events memory.oom_control; }

ok 'mount in a group of 96 MiB' in_group dealfs mount -o "ram=16M,state=$state" "$src" "$mnt"
at_exit dealfs umount "$mnt"
server=$(value "$mnt" pids.server)
plan_epoch epoch=0 feed=yes
ok 'the first files are fed' wait_for cached 0 16 14
feeder=$(value "$mnt" feed.feeder)
like 'the feeder is in the group' "$(cat "/proc/$feeder/cgroup")" "${group##*/}"
window=$(value "$mnt" feed.window)
ok 'the window is a sixteenth of it at most' test "$window" -gt 0 -a "$window" -le $((most / 16))
for epoch in 0 2; do
    [ $epoch = 0 ] || plan_epoch epoch=$epoch feed=yes
    ok 'all bytes of an epoch are right' feeding read "$mnt" "$list" 0 $files --threads 4 --pieces 20000 --source "$src"
    diag "so far READs of loaders: $(value "$mnt" reads), of the feeder: $(value "$mnt" fed.reads)"
done
diag "the limit was met $(refused) times"
ok 'pages had to be reclaimed for it' test "$(refused)" -gt 0
is 'nobody was killed for memory' "$(killed)" 0
is 'the server lives' "$(value "$mnt" pids.server)" "$server"
is 'the feeder, too' "$(value "$mnt" feed.feeder)" "$feeder"
is 'none has died' "$(value "$mnt" feed.deaths)" 0
plan_epoch epoch=4
feeding drop "$mnt" "$list"
plan_epoch epoch=4 feed=yes
# A part of the window that is for this list: the feeder may still expect reads of the lists before.
ok 'the next epoch is fed' wait_for is_fed 4
ok 'unmount' dealfs umount "$mnt"

# A window that the group has no room for: what is fed is dropped before it is read, until the window has shrunk.
large=$((64 << 20))
ok 'mount with a window of 64 MiB' in_group dealfs mount -o "ram=16M,state=$state,feed=$large" "$src" "$mnt"
# Each epoch may lose one window before it shrinks. With `order=` the feeder does not predict the next epoch, whose
# first window would count for this one.
window_of() { value "$mnt" feed.window; }
window_is_full() { [ "$(value "$mnt" feed.ahead)" -gt $(($(window_of) - 2 * 65536)) ]; }
epoch=5 unread=0
begin_epoch() {
    feeding drop "$mnt" "$list"
    before=$(value "$mnt" source.bytes)
    plan_epoch epoch=$epoch order=natural feed=yes
    epoch=$((epoch + 1))
}
end_epoch() {
    feeding read "$mnt" "$list" 0 $files || unread=$((unread + 1))
    percent=$((($(value "$mnt" source.bytes) - before) * 100 / (files * 65536)))
    echo "epoch $epoch, from the source: $percent % of the dataset; window: $(window_of)" >>"$tmp/settling"
    [ "$(window_of)" -lt $large ] && [ $percent -le 115 ]
}
next_is_settled() { begin_epoch && end_epoch; }
begin_epoch
ok 'the first window is full before anything is read' wait_for window_is_full
end_epoch || ok 'the window shrinks, until little of an epoch is read twice' wait_for next_is_settled
diag "$(cat "$tmp/settling")"
is 'each epoch was read' $unread 0
ok 'the window has shrunk' test "$(window_of)" -lt $large
ok 'unmount' dealfs umount "$mnt"
ok 'all processes of it end' wait_for group_is_empty
nothing_left
done_testing
