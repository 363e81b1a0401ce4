#!/bin/bash
# dealfs run and dealfs enter: a mount in a namespace of its own, as root and as an ordinary user.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
src=$tmp/user/src mnt=$tmp/user/mnt
make_files "$src" 20 100000
mkdir "$mnt"
chown -R $mount_user:$mount_user "$tmp/user"
as_user unshare -Ur true || plan_skip 'no user namespaces'

for who in as_user 'as_id 0'; do
    # shellcheck disable=SC2086
    run() { $who dealfs run "$@"; }
    ok "$who: run" run "$src" "$mnt" -- diff -r -x .dealfs "$src" "$mnt"
    nothing_left "$who: nothing is left"
    is "$who: outside there is no mount" "$(ls -A "$mnt")" ''
    exits 7 "$who: its exit status" run "$src" "$mnt" -- sh -c 'exit 7'
    exits 127 "$who: a command that is not there" run "$src" "$mnt" -- "$tmp/absent"
    exits 126 "$who: one that cannot be executed" run "$src" "$mnt" -- "$src"
    exits 143 "$who: one that a signal ends" run "$src" "$mnt" -- sh -c 'kill -TERM $$'
    is "$who: the user stays who he is" "$(run "$src" "$mnt" -- id -u 2>/dev/null)" "$($who id -u)"
    is "$who: its input is ours" "$(echo input | run "$src" "$mnt" -- cat 2>/dev/null)" input
    is "$who: arguments are left alone" \
        "$(run "$src" "$mnt" -- printf '%s|' a 'b c' '' --help 2>/dev/null)" 'a|b c||--help|'
    ok "$who: control and stage" run -o ram=32M "$src" "$mnt" -- sh -c '
        dealfs stage "$1" && dealfs verify "$1" && dealfs where "$1" class0/000.bin && dealfs status "$1" &&
            test -d "$1/.dealfs/samples.d"' sh "$mnt"
    fails "$who: writes" run "$src" "$mnt" -- touch "$mnt/new"
    one_line "$who: a source that is not there" 'absent' run "$tmp/absent" "$mnt" -- true
    one_line "$who: a bad option" 'frobnicate' run -o frobnicate "$src" "$mnt" -- true
    nothing_left "$who: nothing is left"
done

# --- enter, from outside ---
mkfifo "$tmp/user/hold"
chmod 666 "$tmp/user/hold"
background as_user dealfs run "$src" "$mnt" -- sh -c 'read -r line <"$1"; exit 5' sh "$tmp/user/hold" 2>"$tmp/run.log"
run=$!
ok 'run in the background comes up' wait_for as_user dealfs wait --timeout 1 "$mnt"
is 'outside there is nothing' "$(as_user ls -A "$mnt")" ''
ok 'enter' as_user dealfs enter "$mnt" -- diff -r -x .dealfs "$src" "$mnt"
exits 9 'its exit status' as_user dealfs enter "$mnt" -- sh -c 'exit 9'
is 'the user stays who he is' "$(as_user dealfs enter "$mnt" -- id -u)" $mount_user
ok 'status from outside' as_user dealfs status "$mnt"
ok 'where from outside' as_user dealfs where "$mnt" class0/000.bin
ok 'stage from outside' as_user dealfs stage "$mnt"
fails 'another user cannot enter' as_other dealfs enter "$mnt" -- cat "$mnt/class0/000.bin"
one_line 'a mount in a namespace is not unmounted from outside' 'dealfs run' as_user dealfs umount "$mnt"
one_line 'enter where no mount is' 'nothere' as_user dealfs enter "$tmp/user/nothere" -- true
kill -9 "$(as_user dealfs status --json "$mnt" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["pids"]["server"])')"
ok 'a crash of the server is not seen' as_user dealfs enter "$mnt" -- diff -r -x .dealfs "$src" "$mnt"
echo go >"$tmp/user/hold"
wait $run
is 'the exit status of the command comes out' $? 5
nothing_left

# --- enter, while the mount is being made ---
mount --bind "$tmp/user" "$mnt" # what the mount covers is a mount, too
background strace -D -f -qq -o /dev/null -e trace=move_mount -e inject=move_mount:delay_enter=1000000000 \
    dealfs run "$src" "$mnt" -- sleep infinity 2>"$tmp/run.log"
run=$!
early() { dealfs enter "$mnt" -- true 2>&1 | grep -q 'nothing is mounted there yet'; }
ok 'enter fails until the mount is there' wait_for early
kill -9 "$(named strace)" # what it holds goes on
ok 'then the command runs' wait_for dealfs enter "$mnt" -- true
ok 'and sees the files' dealfs enter "$mnt" -- test -e "$mnt/class0/000.bin"
kill -TERM $run
wait $run
umount "$mnt"
nothing_left 'nothing is left after a slow mount'

# --- signals ---
background as_user env --default-signal=INT dealfs run "$src" "$mnt" -- sleep infinity 2>"$tmp/run.log"
run=$!
ok 'run comes up' wait_for as_user dealfs wait --timeout 1 "$mnt"
kill -TERM "$(pgrep -P $run)"
wait $run
is 'SIGTERM reaches the command' $? 143
nothing_left 'nothing is left after SIGTERM'
background as_user dealfs run "$src" "$mnt" -- sleep infinity 2>"$tmp/run.log"
run=$!
command_of() { # PID: the child of `dealfs run` that has become the command
    local pid
    for pid in $(pgrep -P "$1"); do ! grep -qsx sleep "/proc/$pid/comm" || command=$pid; done
    [ -n "$command" ]
}
dealfs_run=$(pgrep -P $run) command=''
ok 'run comes up' wait_for as_user dealfs wait --timeout 1 "$mnt"
ok 'the command runs' wait_for command_of "$dealfs_run"
kill -9 "$dealfs_run"
wait $run 2>/dev/null
kill "$command"
nothing_left 'nothing is left when dealfs run itself is killed'
done_testing
