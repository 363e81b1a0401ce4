#!/bin/bash
# Samples on the move: exchanges and shuffles of a world of four nodes, under readers that check every byte. moved.py
# computes again who owns what afterwards. Groups. SSDs that are nearly full. For losses see 40-loss.t.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src all=(0 1 2 3)
for size in 20000 50000 90000 140000; do make_files "$src/s$size" 40 $size; done
head -c 70000000 /dev/urandom >"$src/striped" # two extents
settle "$src"

# shellcheck disable=SC2120 # all_alike passes one
layout() { value "$tmp/node${1-0}" layout; }
turn() { value "$tmp/node0" turn.number; }
at_rest() { # all nodes are at this turn, and have what they own
    local i
    for i in "${all[@]}"; do
        [ "$(value "$tmp/node$i" "turn.number") $(value "$tmp/node$i" move.state)" = "$1 done" ] || return
    done
}
from_source() { world_sum source.bytes "${all[@]}"; }
moved() { python3 -B "$top_srcdir/tests/lib/moved.py" "$src" "$tmp/node0" "$tmp/state0" "$@"; }
# One turn: begun at a node with these words; the model's name of it. It has moved what the model says.
turns() { # what, node, model, words…
    local before k
    before=$(layout) k=$(turn)
    ok "$1" dealfs "$4" --wait "$tmp/node$2" "${@:5}" wait=3600 || return
    ok 'all nodes are there' wait_for at_rest $((k + 1))
    is 'all that was to come came' "$(value "$tmp/node$2" move.come_bytes)" "$(value "$tmp/node$2" move.bytes)"
    ok 'as the model says' moved "$before" "$3" -- "$(layout)"
    diag "$(cat "$tmp/.output")"
    ok 'on all nodes alike' all_alike layout "${all[@]}"
}
# Each node reads its lists of an epoch, given by `plan … mode=local`; of which what comes from a peer or the source?
# By O_DIRECT: each byte is asked of the server once, whatever the kernel reclaims.
read_own() {
    local i
    for i in "${all[@]}"; do
        dealfs plan "$tmp/node$i" "epoch=$1" ranks=4 batch=8 mode=local tail=short rank="$i" |
            python3 -c '
import os, sys
mount, source = sys.argv[1:]
names = open(mount + "/.dealfs/samples").read().split("\n")
for i in sys.stdin.read().split():
    fd = os.open(f"{mount}/{names[int(i)]}", os.O_RDONLY | os.O_DIRECT)
    with open(f"{source}/{names[int(i)]}", "rb") as other:
        while want := other.read(1 << 20):
            if os.read(fd, 1 << 20) != want:
                sys.exit(names[int(i)])
    os.close(fd)' "$tmp/node$i" "$src" || return
    done
}

# --- a world of uneven nodes; no answer is late, however slow the machine is ---
late=peer_timeout=600
world_options=("ram=224M,exchange,$late" "ram=96M,exchange,$late" "ram=128M,exchange,$late" "ram=96M,exchange,$late")
ok 'four nodes' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
source=$(from_source)
readers_start "${all[@]}"
seed=1
for q in 0 0.1 1; do
    turns "exchange of $q" $((seed % 4)) "$q:$seed:$((7 * seed))" \
        exchange "epoch=$seed" "fraction=$q" "seed=$((7 * seed))"
    seed=$((seed + 1))
done
turns 'shuffle' 3 shuffle:9 shuffle seed=9
k=$(turn) before=$(layout)
ok 'the same again' dealfs shuffle "$tmp/node1" seed=9 wait=3600
is 'does nothing' "$(turn) $(layout)" "$k $before"
readers_end 'no reader saw anything'
is 'nothing came from the source' "$(from_source)" "$source"

# --- an epoch of local reads ---
peers=$(world_sum bytes.peer "${all[@]}")
ok 'each node reads its own samples' read_own 1
came=$(($(world_sum bytes.peer "${all[@]}") - peers))
ok "and asks nobody, except for a part of a file that has two: $came bytes" \
    test $((came == 0 || came == 70000000 - 67108864)) = 1
is 'nor the source' "$(from_source)" "$source"
for i in "${all[@]}"; do reads "every byte of node $i" "$src" "$tmp/node$i"; done
is 'all of it is held' "$(from_source)" "$source"

# --- several at once ---
k=$(turn) before=$(layout)
asking=()
for i in 0 1 2 3; do
    dealfs exchange "$tmp/node$i" "epoch=$((20 + i % 3))" fraction=0.2 wait=3600 >"$tmp/asked$i" 2>&1 &
    asking+=($!)
done
asked() {
    local pid status=0
    for pid in "${asking[@]}"; do wait "$pid" || status=1; done
    cat "$tmp"/asked?
    return "$status"
}
ok 'four ask at once, two of them the same' asked
# Three turns, or four where one asked late: only a request that equals the last one moves nothing.
rested() { at_rest $((k + 3)) || at_rest $((k + 4)); }
ok 'they have had their turns' wait_for rested
any_order() { # of the exchanges the model has led to what is
    local o orders=('20 21 22' '20 22 21' '21 20 22' '21 22 20' '22 20 21' '22 21 20')
    [ "$(turn)" = $((k + 3)) ] ||
        orders=('20 21 20 22' '20 22 20 21' '20 21 22 20' '20 22 21 20' '21 20 22 20' '22 20 21 20')
    for o in "${orders[@]}"; do
        # shellcheck disable=SC2046,SC2086
        moved "$before" $(printf '0.2:%s:0 ' $o) -- "$(layout)" && return
    done
    return 1
}
ok 'one after the other, as the model says' any_order
is 'nothing came from the source' "$(from_source)" "$source"
ok 'a shuffle' dealfs shuffle "$tmp/node0" seed=77 wait=3600
ok 'unmount in the midst of it' dealfs umount --world "$tmp/node0"
ok 'all are gone' wait_for world_unmounted
ok 'mpirun ends' wait_for world_gone
world_pid='' world_options=()
rm -rf "$tmp"/state*

# --- groups ---
world_default=ram=160M,exchange,groups=2,$late
ok 'two groups of two' world_mount 4
ok 'stage' dealfs stage "$tmp/node0"
source=$(from_source)
turns 'exchange' 2 0.5:1:0 exchange epoch=1 fraction=0.5
turns 'shuffle' 1 shuffle:5 shuffle seed=5
for i in 0 3; do reads "every byte of node $i" "$src" "$tmp/node$i"; done
is 'nothing came from the source' "$(from_source)" "$source"
ok 'unmount' world_umount

# --- SSDs that are nearly full: what has gone gives its room to what comes; where there is none it stays ---
all=(0 1) world_default=ram=64M world_count=0
rm -r "$src"
for size in 20000 60000 120000; do make_files "$src/s$size" 48 $size; done
for options in ssd_size=21M,exchange ssd_size=6M; do
    rm -rf "$tmp"/state* "$tmp"/ssd*
    for i in "${all[@]}"; do
        mkdir "$tmp/ssd$i"
        world_options[i]=ram=0,ssd=$tmp/ssd$i,$options,$late
    done
    ok "two nodes, $options" world_mount 2
    ok 'stage' dealfs stage "$tmp/node0"
    unlike 'all of it' "$(cat "$tmp/.output")" 'no room'
    source=$(from_source)
    readers_start "${all[@]}"
    ok 'all samples are to move' dealfs shuffle "$tmp/node1" seed=5 wait=3600
    ok 'it comes to an end' wait_for at_rest 1
    readers_end 'no reader saw it'
    refused=$(value "$tmp/node0" move.refused_samples)
    diag "of $(value "$tmp/node0" move.samples) samples $refused found no room;" \
        "$(value "$tmp/node0" move.rewritten_bytes) bytes were rewritten"
    [[ $options != *exchange ]] || is 'there was room for all' "$refused" 0
    everywhere "$options" "${all[@]}"
    is 'nothing comes from the source' "$(from_source)" "$source"
    ok 'unmount' world_umount
done
nothing_left 'nothing is left'
done_testing
