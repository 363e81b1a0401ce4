#!/bin/bash
# Staging whose server dies: the next one goes on with it, unless the user has stopped it, or too many have died of it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults files=60
make_files "$src" $files 200000
total=$((files * 200000))
: >"$faults"
export DEALFS_SOURCE_FAULTS="file=$faults" DEALFS_STAGE_PATIENCE=3600
require strace
state() { value "$mnt" stage.state; }
is_running() { [ "$(state)" = running ]; }
server() { value "$mnt" pids.server; }
kept_some() { [ "$(value "$mnt" stage.kept)" -gt "$1" ]; }
begin() { # a stage whose last files hang
    set_faults 'hang=class3/*'
    env --default-signal=INT dealfs stage "$mnt" >"$tmp/stage.log" 2>&1 &
    stage=$!
    tap_pids+=("$stage")
    wait_for kept_some 0
}
kill_server() {
    local victim
    victim=$(server)
    kill -9 "$victim"
    [ "$(server)" != "$victim" ]
}
fresh() {
    rm -rf "$tmp/mnt.state"
    mount_up -o "state=$tmp/mnt.state,ram=64M,source_threads=1" "$src" "$mnt"
}

held_processes() { sed -n 's/^\([0-9]*\) .*stopped by SIGSTOP.*/\1/p' "$tmp/trace"; }
let_go() { # true when the command has ended
    # shellcheck disable=SC2046
    kill -CONT $(held_processes)
    ! kill -0 "$tracer"
}
asks_next() { # COMMAND…: the server dies when the command has opened control
    local victim tracer
    victim=$(server)
    : >"$tmp/trace"
    strace -f -qq -A -o "$tmp/trace" -P "$mnt/.dealfs/control" -e trace=openat -e inject=openat:signal=SIGSTOP:when=1 \
        "$@" >"$tmp/asked.log" 2>&1 </dev/null &
    tracer=$!
    tap_pids+=("$tracer")
    wait_for eval '[ -n "$(held_processes)" ]' && kill -9 "$victim" && [ "$(server)" != "$victim" ] &&
        wait_for let_go && wait "$tracer" && return
    cat "$tmp/trace" "$tmp/asked.log"
    return 1
}

# A request that dies with its server is asked again. (More than two deaths would make the keeper wait.)
ok 'mount' fresh
ok 'plan' asks_next dealfs plan "$mnt" epoch=1 ranks=2 batch=4 rank=0
is 'its list is whole' "$(cat "$tmp/asked.log")" "$(dealfs plan "$mnt" epoch=1 ranks=2 batch=4 rank=0)"
ok 'shuffle' asks_next dealfs shuffle "$mnt" seed=1
ok 'unmount' dealfs umount "$mnt"
ok 'mount' fresh
ok 'stage' asks_next dealfs stage "$mnt"
is 'all is kept' "$(value "$mnt" stage.kept)" $total
ok 'unmount' dealfs umount "$mnt"

ok 'mount' fresh
ok 'stage' begin
for _ in 1 2; do
    ok 'its server is killed' kill_server
    ok 'the next one goes on' wait_for is_running
done
set_faults ''
ok 'and it comes to its end' wait "$stage"
diag "$(tail -n 2 "$tmp/stage.log")"
is 'all is kept' "$(value "$mnt" stage.kept)" $total
is 'and held' "$(cd "$src" && find . -type f -exec dealfs where "$mnt" {} + | cut -f 3 | sort -u)" ram
ok 'another server' kill_server
ok 'has staged again' wait_for eval '[ "$(state)" = done ]'
ok 'unmount' dealfs umount "$mnt"

ok 'mount' fresh
ok 'stage' begin
kill -INT "$stage"
wait "$stage"
is 'stopped by Ctrl-C' $? 1
ok 'its server is killed' kill_server
is 'the next one does not begin again' "$(state)" idle
ok 'unmount' dealfs umount "$mnt"

ok 'mount' fresh
ok 'stage' begin
for _ in 1 2 3; do
    ok 'its server is killed' kill_server
    ok 'the next one goes on' wait_for is_running
done
ok 'once too often' kill_server
is 'then it is left' "$(state)" idle
like 'the log counts them' "$(dealfs log "$mnt")" '4 servers have died since staging began'
wait "$stage"
is 'and said' $? 1
like 'how to go on' "$(cat "$tmp/stage.log")" 'was stopped; .dealfs stage .*. resumes it'
set_faults ''
ok 'which it does' dealfs stage "$mnt"
ok 'another server' kill_server
is 'deaths of before do not count' "$(value "$mnt" stage.files_total)" $files
ok 'it has staged again' wait_for eval '[ "$(state)" = done ]'
reads 'all bytes are right' "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
nothing_left 'nothing is left'
done_testing
