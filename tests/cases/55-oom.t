#!/bin/bash
# Memory runs out, and the kernel kills servers repeatedly: keeper and standby live, and the mount stays.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require python3
[ -z "${TEST_SANITIZER-}" ] || plan_skip 'sanitizers need more memory'
memory_group $((62 << 20)) || plan_skip 'no memory control group can be made'
src=$tmp/src mnt=$tmp/mnt state=$tmp/state
make_files "$src" 8 50000
mkdir "$mnt"
export DEALFS_MINUTE=3000 # in which deaths are counted, however slow the machine is

pids() { echo "$(processes "dealfs-keeper $state") $(processes "dealfs-backup $state")"; }
score() { cat "/proc/$1/oom_score_adj"; }
deaths() { [ "$(grep -c 'ms and [0-9]* requests' "$state/log")" -ge "$1" ]; }

ok 'mount in a group of 62 MiB' in_group dealfs mount -o "ram=4M,state=$state" "$src" "$mnt"
at_exit dealfs umount "$mnt"
both() { before=$(pids) && [[ $before =~ ^[0-9]+\ [0-9]+$ ]]; } # a standby has its name a moment later
ok 'keeper and standby run' wait_for both
keeper=${before% *}
ok 'the server is killed before its keeper' test "$(score "$(value "$mnt" pids.server)")" -gt "$(score "$keeper")"
is 'and before the standby' "$(score "${before#* }")" "$(score "$keeper")"
# While no server runs, the group's limit becomes too small for one.
limit() { # bytes, beyond what is used now
    local file
    for file in "$group"/memory.{max,limit_in_bytes}; do
        [ ! -e "$file" ] || echo $(($(cat "$group"/memory.{current,usage_in_bytes} 2>/dev/null) + $1)) >"$file"
    done
}
kill -STOP "$keeper"
server=$(processes "dealfs-server $state")
kill -9 "$server"
ok 'the server is dead' wait_for is_in "$server" Z
limit $((3 << 20))
kill -CONT "$keeper"
ok 'servers die for memory' wait_for deaths 3
limit $((62 << 20))
ok 'there is memory again, and a server lives' wait_for cmp "$src/class1/005.bin" "$mnt/class1/005.bin"
like 'health has it' "$(value "$mnt" health)" 'works without its tiers'
is 'keeper and standby live' "$(pids)" "$before"
ok 'every byte is right' dealfs verify "$mnt"
ok 'unmount' dealfs umount "$mnt"
ok 'all processes end' wait_for group_is_empty
nothing_left
done_testing
