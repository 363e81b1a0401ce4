#!/bin/bash
# dealfs launch on one machine, as root and as an ordinary user: the command's exit status, signals, and that nothing is
# left, whichever process is killed.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
src=$tmp/user/src job=$tmp/user/job mnt=$tmp/user/job/data
make_files "$src" 12 50000
printf '#!/bin/sh\nexit 6\n' >"$src/tool"
chmod 755 "$src/tool"
chown -R $mount_user:$mount_user "$tmp/user"
cp "$(command -v sleep)" "$tmp/user/dealfs-sleep" # a process of the job with such a name
left() { nothing_left "$1: nothing is left"; ok "$1: no folder is left" test ! -e "$job"; }

for who in as_user 'as_id 0'; do
    # shellcheck disable=SC2086
    launch() { $who dealfs launch -o ram=32M "$@"; }
    # shellcheck disable=SC2016
    printed=$(launch --stage "$src" "$mnt" -- sh -c 'cd /; diff -r -x .dealfs "$1" "$2" &&
        echo $NNODES $NODE_RANK $MASTER_ADDR ${MASTER_PORT:+port}
        sleep 9999 & "$3" 9999 >/dev/null & exit 7' sh "$src" "$mnt" "$tmp/user/dealfs-sleep" 2>"$tmp/log")
    is "$who: its exit status" $? 7
    is "$who: what it needs to meet other ranks; its output alone is on stdout" "$printed" '1 0 localhost port'
    like "$who: it was staged" "$(cat "$tmp/log")" '13 of 13 files checked'
    is "$who: none of its processes is left, whatever its name" "$(processes "$tmp/user/dealfs-sleep")" ''
    left "$who, a process of the command's was"
    exits 127 "$who: a command that is not there" launch "$src" "$mnt" -- "$tmp/absent"
    unlike "$who: is noticed before the mount" "$(cat "$tmp/.output")" 'is mounted'
    exits 6 "$who: a command in the dataset" launch "$src" "$mnt" -- "$mnt/tool"
    exits 143 "$who: one that a signal ends" launch "$src" "$mnt" -- sh -c 'kill -TERM $$'
    one_line "$who: a source that is not there" 'source .*absent: No such file' launch "$tmp/absent" "$mnt" -- true
    one_line "$who: a mount option that is not known" 'frobnicate' launch -o frobnicate "$src" "$mnt" -- true
    exits 2 "$who: no command" launch "$src" "$mnt"
    for option in owner=nobody nodes=1 wait_join; do
        exits 2 "$who: an option that launch itself decides: $option" launch -o $option "$src" "$mnt" -- true
    done
    left "$who, after failures"
done

# --- signals ---
# Prints what it gets, and reads the dataset before it ends, as one that saves a checkpoint.
cat >"$tmp/train" <<'END'
#!/bin/bash
trap 'echo TERM >>"$3"; [ -n "${STUBBORN-}" ] || { diff -r -x .dealfs "$1" "$2" && exit 5; exit 6; }' TERM
trap 'echo INT >>"$3"' INT
tail -f /dev/null --pid=$$ & # ends with this process, even if that is killed
echo running >>"$3"
while :; do wait; sleep 0.1; done
END
chmod 755 "$tmp/train"
begin() { # words before the job
    local grace=1000
    [ $# = 0 ] || grace=1 # it needs SIGKILL
    rm -f "$tmp/user/said"
    background as_user env --default-signal=INT "$@" dealfs launch --grace $grace "$src" "$mnt" -- \
        "$tmp/train" "$src" "$mnt" "$tmp/user/said" >"$tmp/log" 2>&1
    launched=$!
    wait_for grep -q running "$tmp/user/said" || diag "$(cat "$tmp/log")"
    # `launch`, and its agent, which is a child of it.
    head=$(pgrep -P "$launched")
    agent=$(pgrep -P "$head")
}
unwatched='launch and its agent are killed' # nobody can remove the folder
finish() { # what, the exit status
    ok "$1: it ends" wait_for has_ended "$launched"
    wait "$launched"
    is "$1: the exit status" $? "$2"
    nothing_left "$1: nothing is left"
    [ "$1" = "$unwatched" ] || ok "$1: no folder is left" wait_for is_absent "$job"
    [ "$tap_failed" = 0 ] || diag "$(tail -n 20 "$tmp/log")"
}
begin
kill -TERM "$head"
finish 'SIGTERM' 5
like 'the command got SIGTERM' "$(cat "$tmp/user/said")" TERM
begin
mapfile -t all < <(pgrep -P "$agent" -f '^dealfs mount -f'; processes dealfs-keeper; processes dealfs-backup
    processes dealfs-server)
is 'the mount has four processes' ${#all[@]} 4
kill_at_once "${all[@]}"
finish 'all processes of the mount are killed' 1
begin
kill -INT "$head"
ok 'one SIGINT is for the command' wait_for grep -q INT "$tmp/user/said"
ok 'which goes on' kill -0 "$launched"
kill -INT "$head"
finish 'a second SIGINT' 130
begin STUBBORN=1
kill -HUP "$head"
finish 'the terminal is closed, and the command goes on' 129
begin STUBBORN=1
kill -KILL "$head"
finish 'launch is killed' 137
begin
kill -KILL "$agent"
finish 'the agent is killed' 1
begin STUBBORN=1 DEALFS_LAUNCH_END=1
kill -STOP "$agent"
ok 'the agent is stopped' wait_for is_in "$agent" T
kill -HUP "$head"
finish 'the agent is stopped, and the terminal is closed' 129
begin
kill -KILL "$(pgrep -P "$agent" -f 'dealfs mount')"
finish 'the mount is killed' 1
like 'the message' "$(cat "$tmp/log")" 'the mount has ended'
begin
mapfile -t pids < <(processes 'dealfs launch')
kill -KILL "${pids[@]}"
finish "$unwatched" 137
ok "$unwatched: the command got SIGTERM" wait_for grep -q TERM "$tmp/user/said"
ok "$unwatched: only the folders stay, as the manual says" test -d "$mnt"
is "$unwatched: nothing is mounted there" "$(grep -c " $mnt " /proc/self/mountinfo)" 0
done_testing
