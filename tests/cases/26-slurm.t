#!/bin/bash
# A job under Slurm: the batch script, prolog and epilog, and the re-joining loop, by a slurmctld and two slurmd of our
# own. Each of these "nodes" has host name, mounts and processes of its own; the network is one, which nobody else is
# in.
if [ -z "${SLURM_TEST_NETWORK-}" ] && unshare -n true 2>/dev/null; then
    SLURM_TEST_NETWORK=1 exec unshare -n "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "$top_srcdir/tests/lib/sh-mount" || exit 99
require_root
require_fuse
require munged slurmctld slurmd srun sbatch scontrol unshare ip
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'built without Open MPI'
[ -n "${SLURM_TEST_NETWORK-}" ] || plan_skip 'no network namespaces'
# Open MPI does not use the loopback device.
ip link set lo up && ip link add node type veth peer name other && ip address add 10.98.0.1/24 dev node &&
    ip link set node up && ip link set other up || plan_skip 'no network device'

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
KillWait=10
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
    wait_for 10 slurm_ended || kill -9 "${slurm_pids[@]}"
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
wait_for 10 test -S "$tmp/munge.sock" || plan_skip "munged does not run: $(tail -n 1 "$tmp/munged.out")"
slurmctld -D -c >"$tmp/ctld.out" 2>&1 &
slurm_pids+=($!)
for node in n0 n1; do
    unshare -m -u -p --fork --mount-proc --kill-child \
        sh -c 'hostname "$1" && exec slurmd -D -N "$1"' - $node >"$tmp/$node.out" 2>&1 &
    node_pids+=($!)
done
idle() { [ "$(sinfo -h -p plain -t idle -o %D)" = 2 ]; }
wait_for 30 idle || plan_skip "Slurm does not run here: $(tail -n 1 "$tmp/n0.out")"
wait_for 20 timeout 20 srun -N 2 --mpi=pmix true || plan_skip "srun --mpi=pmix does not run here"

# --- launchers ---
tap_run timeout 60 srun -N 2 --ntasks-per-node=1 --mpi=none dealfs mount "$src" "$tmp/nowhere"
like 'srun without PMIx is refused' "$(cat "$tmp/.output")" 'srun has started 2 tasks without PMIx'

# --- the batch script, as it is ---
cat >"$tmp/bin/torchrun" <<'END'
#!/bin/bash
# In the place of a training: every byte is read twice and compared; then it waits to be told to end, if it is to.
data=${!#}
diff -r -x .dealfs "$SOURCE" "$data" && diff -r -x .dealfs "$SOURCE" "$data" || exit 1
cp "$data/.dealfs/status" "$REPORT/status-$SLURMD_NODENAME"
[ -z "${UNTIL_TERM-}" ] && exit 0
trap 'diff -r -x .dealfs "$SOURCE" "$data" && echo saved >"$REPORT/saved-$SLURMD_NODENAME"; exit 7' TERM
: >"$REPORT/running-$SLURMD_NODENAME"
while :; do sleep 1 & wait $!; done
END
chmod +x "$tmp/bin/torchrun"
mkdir "$tmp/ssd"
export SOURCE=$src MOUNT=$tmp/job/data OPTIONS=ram=0,ssd=$tmp/ssd REPORT=$tmp/report TRAIN=train.py READY=2m
export DEALFS_SLURM=$top_srcdir/etc/slurm PATH=$tmp/bin:$PATH
mkdir "$REPORT"
batch() { # output
    sbatch --parsable --nodes=2 --gpus-per-node=0 --mem=0 --partition=plain --output="$1" \
        "$top_srcdir/etc/slurm/train.sbatch"
}
ended() { [ -z "$(squeue -h)" ]; }
is_ready() { [ "$(find "$REPORT" -name 'running-*' | wc -l)" = 2 ]; }
ok 'submit the batch script' batch "$tmp/batch.out"
ok 'it ends' wait_for 180 ended
like 'with 0' "$(cat "$tmp/batch.out")" 'the training has ended with 0'
is 'both nodes have trained' "$(find "$REPORT" -name 'status-*' | wc -l)" 2
sum_opened() {
    python3 -c '
import json, sys
print(sum(json.load(open(path))["source"]["samples"] for path in sys.argv[1:]))' "$REPORT"/status-*
}
opened=$(sum_opened)
ok "the source was read once for both: $opened of $files" test "$opened" -le "$files"
[ "$tap_failed" = 0 ] || diag "$(tail -n 40 "$tmp/batch.out")"

# --- the next job, with another mountpoint and another directory for temporary files ---
rm -f "$REPORT"/*
export MOUNT=$tmp/job2/data
ok 'submit it once more' env TMPDIR="$(mkdir "$tmp/job2.tmp" && echo "$tmp/job2.tmp")" \
    sbatch --parsable --nodes=2 --gpus-per-node=0 --mem=0 --partition=plain --output="$tmp/again.out" \
        "$top_srcdir/etc/slurm/train.sbatch"
ok 'it ends' wait_for 180 ended
opened=$(sum_opened)
like 'with 0' "$(cat "$tmp/again.out")" 'the training has ended with 0'
is "it read nothing from the source" "$opened" 0
is 'both jobs had the same shards' "$(find "$tmp/ssd" -mindepth 1 -maxdepth 1 | wc -l)" 2
export MOUNT=$tmp/job/data

# --- SIGTERM to the batch script: the training saves, and reads while it does ---
export UNTIL_TERM=1
rm -f "$REPORT"/*
job=$(batch "$tmp/term.out")
ok 'a job that is to be ended' wait_for 120 is_ready
worlds() { [ "$(grep -cx ready "$tmp/term.out")" = "$1" ]; }
ok 'its nodes are one world' wait_for 60 worlds 1
kill -9 "$(processes dealfs-courier | head -n 1)"
ok 'and again, after a courier has died' wait_for 60 worlds 2
like 'by the loop' "$(cat "$tmp/term.out")" 'the world has ended.*joining 2 of 2: n0 n1'
scancel --batch --signal=TERM "$job"
ok 'it ends' wait_for 120 ended
is 'both nodes have saved' "$(find "$REPORT" -name 'saved-*' | wc -l)" 2
like 'the script says so' "$(cat "$tmp/term.out")" 'passing it on to the training'
[ -f "$REPORT/saved-n0" ] || diag "$(tail -n 40 "$tmp/term.out")"
unset UNTIL_TERM

# --- prolog and epilog ---
# shellcheck disable=SC2016
timeout 120 srun -p mounted -N 2 --ntasks-per-node=1 --mpi=pmix bash -c '
    data=$1/job-$SLURM_JOB_ID/data
    dealfs join "$data" &
    courier=$!
    dealfs wait --nodes 2 --timeout 60 "$data" && diff -r -x .dealfs "$2" "$data" && echo "right $SLURMD_NODENAME"
    : >"$1/over-$SLURMD_NODENAME" # the first that leaves ends the world, which the other may wait for still
    until [ -e "$1/over-n0" ] && [ -e "$1/over-n1" ]; do sleep 0.1; done
    kill $courier; wait $courier' - "$tmp" "$src" >"$tmp/prolog.out" 2>&1
is 'a job that the prolog mounts for reads on both nodes' "$(grep -c '^right n[01]$' "$tmp/prolog.out")" 2
[ "$(grep -c '^right' "$tmp/prolog.out")" = 2 ] || diag "$(tail -n 20 "$tmp/prolog.out" "$tmp/prolog.log")"
no_keeper() { [ -z "$(processes dealfs-keeper)" ]; }
ok 'the epilog has taken the mounts away' wait_for 60 no_keeper
is 'and said nothing' "$(cat "$tmp/prolog.log" "$tmp/epilog.log")" ''

# --- a machine is lost in the middle of a job ---
export UNTIL_TERM=1
rm -f "$REPORT"/*
ok 'a job that is to lose a node' batch "$tmp/lost.out"
ok 'its training runs' wait_for 120 is_ready
kill -9 "${node_pids[1]}" && wait "${node_pids[1]}" 2>/dev/null
scontrol update nodename=n1 state=down reason=lost
ok 'it ends' wait_for 120 ended
after=$(sed -n '/the training has ended with [1-9]/,$p' "$tmp/lost.out")
like 'the mount of the other one was there, and had lost its world' "$after" '/job/data +degraded +node 0 of 2'
like 'and was taken away in order' "$after" 'unmounting.*dealfs-keeper: the mount has ended'
no_process() { [ -z "$(processes dealfs-keeper; processes dealfs-server; processes dealfs-courier)" ]; }
ok 'no process of it is left' wait_for 30 no_process
[ "$tap_failed" = 0 ] || diag "$(tail -n 40 "$tmp/lost.out")"
done_testing
