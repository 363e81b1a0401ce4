#!/bin/bash
# Ranks on three nodes that are fed, epoch after epoch, while couriers, servers and nodes are killed and worlds formed
# again: bytes are right, no read fails, and feeding goes on.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src faults=$tmp/faults files=288
make_files "$src" $files 40000
settle "$src"
export DEALFS_SOURCE_FAULTS="file=$faults"
at_exit set_faults ''
# 2 MiB are 50 files: half of a rank's list.
# A node that waits for long would ask the source itself.
world_default=ram=64M,feed=2M,exchange,peer_timeout=3600

epoch=0
train() { # NODE… -- KEY=VALUE…: a rank on each, for some epochs from the next one on; train_end
    local nodes=() i rank=0
    while [ "$1" != -- ]; do nodes+=("$1") && shift; done
    shift
    rm -f "$tmp/train.stop"
    ranks=()
    for i in "${nodes[@]}"; do
        : >"$tmp/train$i.log" # it has the epochs of the last one
        python3 "$top_srcdir/tests/lib/epochs.py" "$src" "$tmp/node$i" "$tmp/train.stop" $((epoch + 1)) \
            $((epoch + epochs)) ranks=${#nodes[@]} batch=$((8 * ${#nodes[@]})) rank=$rank "$@" \
            >"$tmp/train$i.log" 2>&1 &
        ranks+=("$!:$i")
        tap_pids+=($!)
        rank=$((rank + 1))
    done
    epoch=$((epoch + epochs))
}
train_end() { # what
    local rank status=0
    for rank in "${ranks[@]}"; do
        wait "${rank%:*}" && continue
        status=1
        diag "rank on node ${rank#*:}:"
        diag "$(tail -n 8 "$tmp/train${rank#*:}.log")"
    done
    ok "$1" test $status = 0
    for rank in "${ranks[@]}"; do
        diag "node ${rank#*:}: $(tail -n 1 "$tmp/train${rank#*:}.log")"
    done
}
train_stop() { : >"$tmp/train.stop" && train_end "$@"; }
in_epoch() { # of the running ones, all have read so many
    local rank
    for rank in "${ranks[@]}"; do
        [ "$(grep -c ^epoch "$tmp/train${rank#*:}.log")" -ge "$1" ] || return
    done
}
feeder_of() { value "$tmp/node$1" feed.feeder; }
fed_of() { echo $(($(value "$tmp/node$1" fed.reads | tr -dc '0-9 ' | tr -s ' ' +))); } # so many READs
goes_on() { # NODE…: more is fed, on each; not of an epoch in which the feeder lags behind
    local i before after
    for i; do
        before=$(fed_of "$i")
        python3 "$top_srcdir/tests/lib/epochs.py" "$src" "$tmp/node$i" - $((epoch + 1)) $((epoch + 2)) \
            ranks=1 batch=8 rank=0 nodes="$i" mode=regular >"$tmp/on.log" 2>&1 || diag "$(cat "$tmp/on.log")"
        after=$(fed_of "$i")
        [ "$after" -gt $((before + 50)) ] || { diag "node $i: $before, then $after" && return 1; }
    done
    epoch=$((epoch + 2))
}
complete() { # EPOCH NODE…: all of its lists were read, as the feeders saw it
    local wanted=$1 i
    shift
    for i; do
        [ "$(python3 -c '
import json, sys
print([r["coverage"] for r in json.load(open(sys.argv[1])) if r["epoch"] == int(sys.argv[2])])' \
            "$tmp/node$i/.dealfs/epochs" "$wanted")" = "['complete']" ] || return
    done
}

# --- the first epoch, then others ---
set_faults 'delay=5'
ok 'three nodes' world_mount 3
epochs=1
train 0 1 2 -- mode=regular
train_end 'in the first epoch all bytes are right'
is 'each file was opened at the source once in the world' "$(world_sum source.samples 0 1 2)" $files
is 'and read once' "$(world_sum source.bytes 0 1 2)" $((files * 40000))
set_faults ''
epochs=2
train 0 1 2 -- mode=regular
train_end 'so they are in others'
# A feeder that lags behind says that it does not know; then another epoch is read.
all_seen() {
    local rank
    complete "$epoch" 0 1 2 && return
    epochs=1
    train 0 1 2 -- mode=regular
    for rank in "${ranks[@]}"; do wait "${rank%:*}" || wrong=$((wrong + 1)); done
    complete "$epoch" 0 1 2
}
wrong=0
ok 'all of which were seen to be read' wait_for all_seen
is 'with right bytes' $wrong 0
epochs=2
isnt 'much of it was fed from peers' "$(world_sum fed.reads.peer 0 1 2)" 0
train 0 1 2 --
train_end 'in lists that are dealt by locality'
train 0 1 2 -- mode=local echo=2
train_end 'in local ones with repeats'
is 'nothing more came from the source' "$(world_sum source.samples 0 1 2)" $files

# --- a layout that has turned ---
layout=$(value "$tmp/node0" layout)
ok 'a third is exchanged' dealfs exchange --wait "$tmp/node0" epoch=$((epoch + 1)) fraction=0.3
isnt 'and the layout another one' "$(value "$tmp/node0" layout)" "$layout"
train 0 1 2 -- layout="$layout"
train_end 'plans of the layout before are fed without harm'
feeders="$(feeder_of 0) $(feeder_of 1) $(feeder_of 2)"

# --- servers ---
epochs=50
train 0 1 2 -- mode=regular
ok 'all read' wait_for in_epoch 2
for i in 0 1 2; do kill -9 "$(pid_of $i server)"; done
ok 'also after the servers were killed' wait_for in_epoch 5
train_stop 'and all bytes are right'
is 'by the same feeders' "$(feeder_of 0) $(feeder_of 1) $(feeder_of 2)" "$feeders"

# --- a courier ---
train 0 1 2 -- mode=regular
ok 'all read' wait_for in_epoch 2
kill -9 "$(pid_of 1 courier)"
ok 'mpirun ends' wait_for world_gone
ok 'all read on' wait_for in_epoch 5
wait "$world_pid" 2>/dev/null
ok 'the nodes join again' world_join 0 1 2
train_stop 'while all bytes are right'
ok 'feeding goes on' wait_for goes_on 0 1 2
is 'by the same feeders still' "$(feeder_of 0) $(feeder_of 1) $(feeder_of 2)" "$feeders"

# --- a node ---
train 0 1 -- mode=regular nodes=0,1
ok 'two of three nodes read' wait_for in_epoch 2
kill_whole 2
ok 'when the third is lost mpirun ends' wait_for world_gone
ok 'they read on' wait_for in_epoch 5
wait "$world_pid" 2>/dev/null
train_stop 'and all bytes are right'
dealfs umount --lazy "$tmp/node2"
ok 'the two join' world_join 0 1
ok 'and feeding goes on' wait_for goes_on 0 1

# --- the end ---
epochs=50
train 0 1 -- mode=regular
ok 'they read' wait_for in_epoch 1
for rank in "${ranks[@]}"; do kill "${rank%:*}" && wait "${rank%:*}"; done 2>/dev/null
ok 'umount --world, while they are fed' world_umount
nothing_left 'nothing is left'
done_testing
