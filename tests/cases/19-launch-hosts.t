#!/bin/bash
# dealfs launch on several nodes, which are one machine: its agents are started by a program in the place of ssh, and
# each has a mountpoint of its own.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require mpirun
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'built without Open MPI'

src=$tmp/src
make_files "$src" 40 60000
cat >"$tmp/rsh" <<END
#!/bin/sh
case \$1 in away*) echo "connect to \$1: No route to host" >&2; exit 255 ;; esac
[ ! -p "$tmp/hold-\$1" ] || read -r go <"$tmp/hold-\$1"
mkdir -p "$tmp/tmp-\$1" && export TMPDIR="$tmp/tmp-\$1" # two daemons of mpirun would make the same folder
host=\$1
shift
[ "\$(id -u)" != 0 ] || exec unshare -u sh -c "hostname '\$host'; \$*" # two daemons on one host would be one
exec sh -c "\$*"
END
chmod +x "$tmp/rsh"
export DEALFS_RSH=$tmp/rsh DEALFS_MPIRUN=--oversubscribe
export SAID=$tmp/said
mkdir "$SAID"
words=(dealfs launch --grace 1 -o "ram=32M,state=$tmp/state%r")
launch() { "${words[@]}" "$@"; }
release_b() {
    ok 'it says what it waits for' wait_for grep -qE ': [01] of 2 nodes are done; waiting for (a, )?b' "$tmp/log"
    echo go >"$tmp/hold-b"
    rm "$tmp/hold-b"
}
begin() { # what the command does
    rm -f "$SAID"/*
    # shellcheck disable=SC2016
    background "${words[@]}" --hosts a,b "$src" "$tmp/node%r/data" -- sh -c '
        diff -r -x .dealfs "$1" "$2/node$NODE_RANK/data" || exit 3
        cp "$2/node$NODE_RANK/data/.dealfs/status" "$SAID/new$NODE_RANK"
        mv "$SAID/new$NODE_RANK" "$SAID/status$NODE_RANK"
        exec sleep infinity' sh "$src" "$tmp" >"$tmp/log" 2>&1
    launched=$!
    [ ! -p "$tmp/hold-b" ] || release_b
    wait_for test -e "$SAID/status0" -a -e "$SAID/status1" || diag "$(tail -n 30 "$tmp/log")"
}
no_folder() { [ "$(cd "$tmp" && echo node*)" = 'node*' ]; }
finish() { # what, the exit status
    ok "$1: it ends" wait_for has_ended "$launched"
    wait "$launched"
    is "$1: the exit status" $? "$2"
    nothing_left "$1: nothing is left"
    ok "$1: no folder is left" wait_for no_folder
    [ "$tap_failed" = 0 ] || diag "$(tail -n 30 "$tmp/log")"
}

# --- what cannot work is said at once, not when the other end has been silent for long ---
export DEALFS_LAUNCH_PATIENCE=3600
one_line 'an unknown file of hosts' 'hostfile .*: No such file' \
    launch --hostfile "$tmp/none" "$src" "$tmp/node%r" -- true
one_line 'a host that is named twice' 'host a: is named twice' launch --hosts a,b,a "$src" "$tmp/node%r" -- true
exits 1 'a host that cannot be reached' launch --hosts a,away "$src" "$tmp/node%r" -- true
like 'is named, with what ssh says' "$(cat "$tmp/.output")" 'away: connect to away: No route to host'
seq -f 'away%g' 400 >"$tmp/many"
# shellcheck disable=SC2016
limited() { setpriv --bounding-set=-sys_resource sh -c "ulimit $1; shift; exec \"\$@\"" sh "$@"; }
exits 1 '400 hosts, and fewer open files than they need' \
    limited '-Sn 256' "${words[@]}" --hostfile "$tmp/many" "$src" "$tmp/node%r" -- true
is 'none can be reached' "$(grep -c 'No route to host' "$tmp/.output")" 400
one_line 'the limit of open files cannot be raised' '400 nodes need [0-9]+ open files, and the limit .* is 256' \
    limited '-n 256' "${words[@]}" --hostfile "$tmp/many" "$src" "$tmp/node%r" -- true
printf 'away%0130d\n' {1..1000} >"$tmp/many"
one_line 'names that do not fit into one argument' 'the names of all 1000 nodes have [0-9]+ bytes' \
    launch --hostfile "$tmp/many" "$src" "$tmp/node%r" -- true
mkdir "$tmp/failing"
printf '#!/bin/sh\necho "no network" >&2\nexit 1\n' >"$tmp/failing/mpirun"
chmod +x "$tmp/failing/mpirun"
exits 1 'mpirun fails' env PATH="$tmp/failing:$PATH" "${words[@]}" --hosts a,b "$src" "$tmp/node%r" -- true
like 'the message' "$(cat "$tmp/.output")" 'the nodes could not be joined'
mkdir "$tmp/silent"
printf '#!/bin/sh\nexec sleep infinity\n' >"$tmp/silent/mpirun"
chmod +x "$tmp/silent/mpirun"
exits 1 'mpirun is silent' env DEALFS_LAUNCH_SILENCE=1 PATH="$tmp/silent:$PATH" \
    "${words[@]}" --hosts a,b "$src" "$tmp/node%r" -- true
like 'the message' "$(cat "$tmp/.output")" 'the join of the nodes is silent'
exits 127 'a command that no node has' launch --hosts a,b "$src" "$tmp/node%r" -- "$tmp/absent"
like 'is named with its node' "$(cat "$tmp/.output")" '[ab]: dealfs: run .*/absent: No such file'
nothing_left 'nothing is left'
unset DEALFS_LAUNCH_PATIENCE

# --- a world, and what becomes of it ---
mkfifo "$tmp/hold-b"
begin
is 'both nodes are one world' "$(python3 -c '
import json, sys
print([json.load(open(path))["nodes"] for path in sys.argv[1:]])' "$SAID"/status?)" '[2, 2]'
kill -9 "$(processes dealfs-courier | head -n 1)"
joined() { [ "$(grep -cx ready "$tmp/log")" = "$1" ]; }
ok 'a world whose courier is killed is joined again' wait_for joined 2
kill -KILL "$launched"
finish 'launch is killed' 137
begin
# All of node b at once, as if its machine had gone; its mount has to be taken away by this test.
below() {
    local pid
    for pid in $(pgrep -P "$1"); do echo "$pid" && below "$pid"; done
}
starter=$(pgrep -P "$launched" -f -- --agent | sort -n | tail -n 1)
mapfile -t lost < <(echo "$starter" && below "$starter")
kill_at_once "${lost[@]}"
ok 'a node is lost: it ends' wait_for has_ended "$launched"
wait "$launched"
is 'the exit status' $? 1
like 'and names the node' "$(cat "$tmp/log")" 'b: dealfs: the agent has ended'
ok 'the mount of the other one is gone' test ! -e "$tmp/node0"
ok 'that of the lost node is dead' mounted "$tmp/node1/data"
umount -l "$tmp/node1/data"
rmdir "$tmp/node1/data" "$tmp/node1"

# --- once ---
printf 'a slots=2 # the first\n\nb\n' >"$tmp/hosts"
# shellcheck disable=SC2016
is 'once, on hosts of a file' "$(launch --stage --once --hostfile "$tmp/hosts" "$src" "$tmp/node%r/data" -- \
    sh -c 'echo $NODE_RANK of $NNODES; exit 7' 2>"$tmp/log"; echo $?)" '0 of 2
7'
like 'staged' "$(cat "$tmp/log")" '40 of 40 files checked'
nothing_left
done_testing
