#!/bin/bash
# A job under Slurm: the batch script, prolog and epilog, by a slurmctld and two slurmd of our own. Each of these
# "nodes" has host name, mounts and processes of its own; the network is one, which nobody else is in.
if [ -z "${SLURM_TEST_NETWORK-}" ] && unshare -n -m true 2>/dev/null; then
    SLURM_TEST_NETWORK=1 exec unshare -n -m "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require munged slurmctld slurmd srun sbatch scontrol unshare ip
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'built without Open MPI'
[ -n "${SLURM_TEST_NETWORK-}" ] || plan_skip 'no network namespaces'
# Open MPI does not use the loopback device.
ip link set lo up && ip link add node type veth peer name other && ip address add 10.98.0.1/24 dev node &&
    ip link set node up && ip link set other up || plan_skip 'no network device'
# Slurm 24.11 connects to the hosts of job steps by name. While it cannot resolve one, it serves no other request.
{ cat /etc/hosts; echo; echo 10.98.0.1 n0 n1; } >"$tmp/hosts" && mount --bind "$tmp/hosts" /etc/hosts ||
    plan_skip 'no file of hosts of its own'

src=$tmp/src
make_files "$src" 80 60000
files=$(find "$src" -type f | wc -l)

# --- Slurm ---
host=$(hostname -s)
mkdir "$tmp"/{ctld,tmp-n0,tmp-n1,spool-n0,spool-n1,bin,conf}
head -c 1024 /dev/urandom >"$tmp/munge.key"
chmod 400 "$tmp/munge.key"
cat >"$tmp/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$tmp/munge.sock
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmctldLogFile=$tmp/slurmctld.log
SlurmdPidFile=$tmp/slurmd-%n.pid
SlurmdLogFile=$tmp/slurmd-%n.log
StateSaveLocation=$tmp/ctld
SlurmdSpoolDir=$tmp/spool-%n
TmpFS=$tmp/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
KillWait=600
SlurmdParameters=config_overrides
Prolog=$tmp/prolog
Epilog=$tmp/epilog
NodeName=n[0-1] NodeHostname=$host NodeAddr=127.0.0.1 Port=[16820-16821] CPUs=4 State=UNKNOWN
PartitionName=plain Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
PartitionName=mounted Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=YES
END
export SLURM_CONF=$tmp/slurm.conf
# Both run with what this shell has for them.
for script in prolog epilog; do
    printf '#!/bin/bash\nexport PATH="%s:$PATH" TMPDIR="%s" DEALFS_SLURM_CONF="%s"\nexec "%s" 2>>"%s"\n' \
        "$top_builddir" "$tmp" "$tmp/conf/slurm.conf" \
        "$top_srcdir/etc/slurm/$script" "$tmp/$script.log" >"$tmp/$script"
    chmod +x "$tmp/$script"
done
# The last line may lack its end.
printf '# PARTITION SOURCE MOUNTPOINT OPTIONS\nmounted %s %s ram=32M' "$src" "$tmp/job-%j/data" >"$tmp/conf/slurm.conf"

slurm_pids=() node_pids=()
slurm_down() { # each writes below $tmp until it has ended
    kill -9 "${node_pids[@]}" # unshare lets no other signal through; all that is in its namespace goes with it
    kill "${slurm_pids[@]}"
    wait_until $((${EPOCHREALTIME//./} + 30000000)) slurm_ended || kill -9 "${slurm_pids[@]}"
}
any_ended() { # a daemon
    local pid
    for pid in "${slurm_pids[@]}" "${node_pids[@]}"; do ! has_ended "$pid" || return 0; done
    return 1
}
slurm_ended() {
    local pid
    for pid in "${slurm_pids[@]}" "${node_pids[@]}"; do
        ! kill -0 "$pid" 2>/dev/null || [ "$(ps -o stat= -p "$pid")" = Z ] || return
    done
}
at_exit slurm_down
munged -F -f -S "$tmp/munge.sock" --key-file="$tmp/munge.key" --pid-file="$tmp/munged.pid" \
    --seed-file="$tmp/munge.seed" --log-file="$tmp/munged.log" \
    --num-threads=2 >"$tmp/munged.out" 2>&1 &
slurm_pids+=($!)
munged_listens() { [ -S "$tmp/munge.sock" ]; }
munged_settled() { munged_listens || any_ended; }
wait_for munged_settled && munged_listens || plan_skip "munged does not run: $(tail -n 1 "$tmp/munged.out")"
slurmctld -D -c >"$tmp/ctld.out" 2>&1 &
slurm_pids+=($!)
for node in n0 n1; do
    unshare -m -u -p --fork --mount-proc --kill-child \
        sh -c 'hostname "$1" && exec slurmd -D -N "$1"' - $node >"$tmp/$node.out" 2>&1 &
    node_pids+=($!)
done
idle() { [ "$(sinfo -h -p plain -t idle -o %D)" = 2 ]; }
slurm_settled() { idle || any_ended; }
wait_for slurm_settled && idle || plan_skip "Slurm does not run here: $(tail -n 1 "$tmp/n0.out")"
wait_for srun -N 2 true
srun -N 2 --mpi=pmix true 2>"$tmp/pmix.log" ||
    plan_skip "srun --mpi=pmix does not run here: $(tail -n 1 "$tmp/pmix.log")"

# --- launchers ---
tap_run srun -N 2 --ntasks-per-node=1 --mpi=none dealfs mount "$src" "$tmp/nowhere"
like 'srun without PMIx is refused' "$(cat "$tmp/.output")" 'srun started 2 tasks without PMIx'

# --- the batch script, as it is ---
cat >"$tmp/bin/torchrun" <<'END'
#!/bin/bash
# In the place of a training: every byte is read twice and compared; then it waits to be told to end, if it is to.
data=${!#}
diff -r -x .dealfs "$SOURCE" "$data" && diff -r -x .dealfs "$SOURCE" "$data" || exit 1
cp "$data/.dealfs/status" "$REPORT/status-$NODE_RANK"
[ -n "${UNTIL_TERM-}" ] || exit 0
trap 'diff -r -x .dealfs "$SOURCE" "$data" && echo saved >"$REPORT/saved-$NODE_RANK"; exit 7' TERM
: >"$REPORT/running-$NODE_RANK"
while :; do sleep 1 & wait $!; done
END
chmod +x "$tmp/bin/torchrun"
mkdir "$tmp/ssd" "$tmp"/mnt-n{0,1}
export SOURCE=$src MOUNT=$tmp/mnt-%h/job/data OPTIONS=ram=0,ssd=$tmp/ssd,peer_timeout=600
export REPORT=$tmp/report TRAIN=train.py
export PATH=$tmp/bin:$PATH
mkdir "$REPORT"
batch() { # output
    : >"$1" # it has what the last job printed
    sbatch --parsable --nodes=2 --gpus-per-node=0 --mem=0 --partition=plain --output="$1" \
        "$top_srcdir/etc/slurm/train.sbatch"
}
ended() { [ -z "$(squeue -h)" ]; }
is_ready() { [ "$(find "$REPORT" -name 'running-*' | wc -l)" = 2 ]; }
exit_is_known() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*ExitCode=//p' >"$tmp/exit" && [ -s "$tmp/exit" ]; }
exit_of() { wait_for exit_is_known "$1" && cat "$tmp/exit"; } # the controller may be busy
# Of the job: no process, no mount on any node, no folder; nothing but the caches.
job_processes() {
    processes dealfs-keeper; processes dealfs-server; processes dealfs-courier
    pgrep --ns $$ --nslist net -f 'dealfs launch'
}
job_mounts() { for pid in "${slurmds[@]}"; do grep " $tmp/mnt-" "/proc/$pid/mountinfo"; done; }
taken_away() { [ -z "$(job_processes)$(job_mounts)" ] && [ ! -e "$tmp/mnt-n0/job" ] && [ ! -e "$tmp/mnt-n1/job" ]; }
finish() { # what
    ok "$1: it ends" wait_for ended
    ok "$1: nothing of it is left" wait_for taken_away
    [ "$tap_failed" = 0 ] || diag "$(job_processes | xargs -r ps -fp; job_mounts; ls "$tmp"/mnt-*)"
    [ "$tap_failed" = 0 ] || diag "$(tail -n 40 "$tmp/batch.out")"
}
mapfile -t slurmds < <(for pid in "${node_pids[@]}"; do pgrep -P "$pid"; done)
sum_opened() {
    python3 -c '
import json, sys
print(sum(json.load(open(path))["source"]["samples"] for path in sys.argv[1:]))' "$REPORT"/status-*
}
job=$(batch "$tmp/batch.out")
finish 'a job'
is 'its exit status' "$(exit_of "$job")" 0:0
is 'both nodes have trained' "$(find "$REPORT" -name 'status-*' | wc -l)" 2
opened=$(sum_opened)
ok "the source was read once for both: $opened of $files" test "$opened" -le "$files"

# --- the next job ends before its training, and finds the caches ---
export UNTIL_TERM=1
rm -f "$REPORT"/*
job=$(batch "$tmp/batch.out")
ok 'a job that mounts' wait_for says_mounted "$tmp/batch.out"
scancel "$job"
finish 'it is cancelled before it trains'

# --- scancel while it trains ---
rm -rf "$tmp/ssd"/*
job=$(DEALFS_SOURCE_FAULTS=hang DEALFS_STAGE_PATIENCE=3600 batch "$tmp/batch.out")
stages() { [ -n "$(pgrep --ns $$ --nslist net -f 'dealfs stage')" ]; }
ok 'a job that stages' wait_for stages
scancel "$job"
finish 'it is cancelled while it stages'
is 'no command has begun' "$(ls "$REPORT")" ''
# Without --batch the steps get SIGTERM, in which the agents run, and the batch script does not.
for words in '' '--signal=TERM'; do
    rm -f "$REPORT"/*
    job=$(batch "$tmp/batch.out")
    ok 'a job that trains' wait_for is_ready
    # shellcheck disable=SC2086
    scancel $words "$job"
    finish "scancel $words"
    is 'both nodes have saved' "$(find "$REPORT" -name 'saved-*' | wc -l)" 2
done
is 'the exit status of --signal=TERM' "$(exit_of "$job")" 7:0
shared() { find /dev/shm -newer "$tmp/slurm.conf" ! -path /dev/shm -user root; }
is 'nothing is left in /dev/shm' "$(shared)" ''
rm -f "$REPORT"/*

job=$(batch "$tmp/batch.out")
ok 'a job that trains' wait_for is_ready
is 'it read nothing from the source' "$(sum_opened)" 0
scancel --batch --signal=TERM "$job"
finish 'SIGTERM to the batch script'
is 'both nodes have saved' "$(find "$REPORT" -name 'saved-*' | wc -l)" 2
is 'its exit status' "$(exit_of "$job")" 7:0
rm -f "$REPORT"/*
job=$(batch "$tmp/batch.out")
ok 'a job that trains' wait_for is_ready
scontrol requeue "$job"
requeued() { [ "$(squeue -h -o %r)" = BeginTime ]; }
ok 'it is put back into the queue' wait_for requeued
ok 'nothing of it is left' wait_for taken_away
is 'both nodes have saved' "$(find "$REPORT" -name 'saved-*' | wc -l)" 2
scancel "$job"
finish 'the requeued job'

# --- the repository's own training, by Debian's torchrun ---
unset UNTIL_TERM
rm "$tmp/bin/torchrun"
if command -v torchrun >/dev/null && /usr/bin/python3 -c 'import torchvision' 2>/dev/null; then
    mkdir -p "$tmp"/pictures/{a,b}
    for i in $(seq 32); do
        printf 'P6 2 2 255\n%012d' "$i" | tee "$tmp/pictures/a/$i.ppm" >"$tmp/pictures/b/$i.ppm"
    done
    # torchrun of Debian 13 cannot meet by TCP.
    /usr/bin/python3 -c 'import torch.distributed as d; d.TCPStore("127.0.0.1", 0, 1, True)' 2>"$tmp/store.log" ||
        export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
            RENDEZVOUS="--rdzv-backend=c10d --rdzv-conf=store_type=file --rdzv-endpoint=$tmp/meeting"
    SOURCE=$tmp/pictures TRAIN=$top_srcdir/etc/examples/train.py RANKS=1 OPTIONS=ram=8M GLOO_SOCKET_IFNAME=node \
        batch "$tmp/batch.out" >"$tmp/job"
    finish 'train.py'
    is 'its exit status' "$(exit_of "$(cat "$tmp/job")")" 0:0
    like 'it has trained' "$(cat "$tmp/batch.out")" 'epoch 1: loss [0-9.]+'
else
    skip 4 'torchrun or python3-torchvision is not installed'
fi

# --- prolog and epilog ---
# shellcheck disable=SC2016
srun -p mounted -N 2 --ntasks-per-node=1 --mpi=pmix bash -c '
    data=$1/job-$SLURM_JOB_ID/data
    dealfs join "$data" &
    courier=$!
    dealfs wait --nodes 2 "$data" && diff -r -x .dealfs "$2" "$data" && echo "right $SLURMD_NODENAME"
    : >"$1/over-$SLURMD_NODENAME" # the first that leaves ends the world, which the other may wait for still
    until [ -e "$1/over-n0" ] && [ -e "$1/over-n1" ]; do sleep 0.1; done
    kill $courier; wait $courier' - "$tmp" "$src" >"$tmp/prolog.out" 2>&1
is 'a job that the prolog mounts for reads on both nodes' "$(grep -c '^right n[01]$' "$tmp/prolog.out")" 2
[ "$(grep -c '^right' "$tmp/prolog.out")" = 2 ] || diag "$(tail -n 20 "$tmp/prolog.out" "$tmp/prolog.log")"
no_keeper() { [ -z "$(processes dealfs-keeper)" ]; }
ok 'the epilog has taken the mounts away' wait_for no_keeper
is 'and said nothing' "$(cat "$tmp/prolog.log" "$tmp/epilog.log")" ''

done_testing
