#!/bin/bash
# dealfs launch --hosts over real ssh: two nodes, which are one machine, by an sshd of our own.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require mpirun ssh ssh-keygen sshd
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'built without Open MPI'

src=$tmp/src
make_files "$src" 40 60000
mkdir "$tmp"/{tmp-a,tmp-b}
# In the namespace of this test, so that no other test removes it.
[ -d /run/sshd ] || { [ -n "${TEST_NAMESPACE-}" ] && mount -t tmpfs tmpfs /run && mkdir /run/sshd; } ||
    { mkdir /run/sshd && at_exit rmdir /run/sshd; }
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$tmp/$key"; done
cat >"$tmp/sshd_config" <<END
ListenAddress 127.0.0.1
HostKey $tmp/host
AuthorizedKeysFile $tmp/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
AcceptEnv TMPDIR
END
sshd_listens() { grep -q 'Server listening' "$tmp/sshd.log"; }
sshd_settled() { sshd_listens || has_ended "$sshd"; }
serve() { # on a free port; the next one if another program was faster
    for _ in 1 2 3; do
        port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
        "$(command -v sshd)" -D -e -f "$tmp/sshd_config" -p "$port" 2>"$tmp/sshd.log" &
        sshd=$!
        tap_pids+=("$sshd")
        wait_for sshd_settled
        ! sshd_listens || return 0
    done
    return 1
}
serve || plan_skip "sshd does not run here: $(tail -n 1 "$tmp/sshd.log")"
for node in a b; do # two daemons of mpirun would make the same folder
    cat <<END
Host $node
    HostName 127.0.0.1
    Port $port
    IdentityFile $tmp/user
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    SetEnv TMPDIR=$tmp/tmp-$node
END
done >"$tmp/ssh_config"
export DEALFS_RSH="ssh -F $tmp/ssh_config -o BatchMode=yes" DEALFS_MPIRUN=--oversubscribe
# shellcheck disable=SC2086
$DEALFS_RSH a true 2>"$tmp/log" || plan_skip "ssh to this machine does not work: $(tail -n 1 "$tmp/log")"

words=(dealfs launch --grace 1 --hosts 'a,b' -o "ram=32M,state=$tmp/state%r" "$src" "$tmp/node%r/data")
export WORD='two words; "quoted"' SAID=$tmp
# shellcheck disable=SC2016
printed=$("${words[@]}" -- sh -c 'diff -r -x .dealfs "$1" "$DEALFS_MOUNT" || exit 3
    echo "$NODE_RANK of $NNODES: $WORD" | tee "$SAID/said$NODE_RANK"
    [ "$NODE_RANK" = 0 ] || { until [ -s "$SAID/said0" ]; do sleep 0.1; done; exit 7; }
    exec sleep infinity' sh "$src" 2>"$tmp/log")
is 'the exit status is that of the command that fails' $? 7
is 'the output of both, and the environment' "$(sort <<<"$printed")" "0 of 2: $WORD
1 of 2: $WORD"
[ "$tap_failed" = 0 ] || diag "$(tail -n 30 "$tmp/log")"
no_mount() { [ -z "$(processes dealfs-keeper; processes dealfs-server; processes dealfs-courier)" ]; }
ok 'no process of a mount is left' wait_for no_mount
is 'no folder is left' "$(cd "$tmp" && echo node*)" 'node*'

# --- the connection is lost ---
# shellcheck disable=SC2016
"${words[@]}" -- sh -c ': >"$SAID/running$NODE_RANK"; exec sleep infinity' >"$tmp/log" 2>&1 &
launched=$!
tap_pids+=("$launched")
is_ready() { [ -e "$tmp/running0" ] && [ -e "$tmp/running1" ]; }
ok 'a job that runs' wait_for is_ready
kill -KILL "$(pgrep -P "$launched" -f '^ssh .* b .*launch --agent' | head -n 1)"
ok 'the connection to a node is lost: it ends' wait_for has_ended "$launched" || kill -KILL "$launched"
wait "$launched"
is 'the exit status' $? 1
like 'and names the node' "$(cat "$tmp/log")" 'b: dealfs: .*agent'
[ "$tap_failed" = 0 ] || diag "$(tail -n 30 "$tmp/log")"
taken_away() { [ "$(cd "$tmp" && echo node*)" = 'node*' ]; }
ok 'its agent takes all away' wait_for taken_away
kill "$sshd"
wait "$sshd"
nothing_left 'nothing is left'
done_testing
