#!/bin/bash
# Samples change their node, as people ask for it: dealfs exchange and shuffle, --wait and its end, what status says
# meanwhile, and an exchange before each epoch, by two requests.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src nodes=(0 1 2)
make_files "$src" 90 200000
late=peer_timeout=600 # no answer is late, however slow the machine is,
export DEALFS_COURIER_BACK=3600 # and a server that restarts waits for its courier
world_default=ram=32M,exchange,exchange_rate=1M,$late
ok 'mount' world_mount 3
ok 'stage' dealfs stage "$tmp/node0"
move() { value "$tmp/node0" "move.$1"; }
moves() { [ "$(move state)" = moving ]; }
moved() { [ "$(move state)" = 'done' ]; }

# --- to the end ---
is 'nothing has moved yet' "$(move state)" none
ok 'exchange --wait' dealfs exchange --wait "$tmp/node1" epoch=1 fraction=0.25 wait=3600
said=$(cat "$tmp/.output")
diag "$said"
says() { grep -Eq "$1" <<<"$said"; }
ok 'says what moves' says '^turn 1, layout [0-9a-f]{32}: [0-9]+ samples, [0-9.]+ MiB, move to another node$'
ok 'how fast it came' says '^[0-9]+ samples, [0-9.]+ MiB, arrived at their new nodes in [0-9.]+ s \([0-9.]+ .iB/s\)$'
like 'and what was rewritten' "$said" 'write amplification [0-9.]+: '
ok 'node 0 also has the news' wait_for moved
is 'everything has come' "$(move state) $(move waiting_for) $(move refused_samples)" 'done 0 0'
is 'as many samples as were said' "$(move come_samples)" "$(sed -n 's/^turn.*: \([0-9]*\) samples.*/\1/p' <<<"$said")"
sent() { [ "$(move sent_samples)" -gt 0 ]; }
ok 'and were sent' wait_for sent
is 'status says nothing of it any more' "$(dealfs status "$tmp/node0" | grep -c '^  move')" 0
like 'metrics have it' "$(cat "$tmp/node2/.dealfs/metrics")" 'dealfs_turn 1'
is 'dealfs-control(5) describes all of status and metrics' "$(python3 "$top_srcdir/tests/lib/documented.py" \
    "$top_srcdir/cli/dealfs-control.5" "$top_srcdir" "$tmp/node2" 2>&1)" ''
ok 'the same again' dealfs exchange "$tmp/node2" epoch=1 fraction=0.25 wait=3600
like 'is the same turn' "$(cat "$tmp/.output")" '^turn 1, '
one_line 'refused: half of nothing' 'fraction=half.: must be 0 to 1' dealfs exchange "$tmp/node0" epoch=2 fraction=half
one_line 'refused: what is no key' 'unknown key .sed' dealfs shuffle "$tmp/node0" sed=1

# --- Ctrl-C, and who waits for the move before ---
set -m # what is in the background hears SIGINT
# A move does not end while no news of two nodes arrive. If it had ended before, there is another one.
couriers=("$(pid_of 1 courier)" "$(pid_of 2 courier)") seed=3
holds() {
    background dealfs shuffle --wait "$tmp/node0" seed=$seed wait=3600 >"$tmp/wait.log" 2>&1
    waiting=$!
    wait_for follows_or_ended $waiting || return 2
    kill -STOP "${couriers[@]}"
    [ "$(move waiting_for)" = 3 ] && return
    kill -CONT "${couriers[@]}"
    wait $waiting
    seed=$((seed + 10))
    return 1
}
follows_or_ended() { grep -q ^moving "$tmp/wait.log" || has_ended "$1"; }
move_held() {
    local status=1
    while [ $status = 1 ]; do holds; status=$?; done
    return $status
}
ok 'a shuffle moves, and the command waits for that' move_held
ok 'it moves still' moves
like 'status has a line' "$(dealfs status "$tmp/node0" | grep '^  move')" \
    '\[[#.]+\] +[0-9]+%  .* of .* samples for shuffle$'
dealfs exchange "$tmp/node2" epoch=9 fraction=0.1 wait=3600 >"$tmp/later.log" 2>&1 &
later=$!
dealfs exchange "$tmp/node1" epoch=9 fraction=0.2 wait=3600 >"$tmp/killed.log" 2>&1 &
killed=$!
tap_pids+=("$later" "$killed")
ok 'other requests are answered meanwhile' dealfs plan "$tmp/node2" epoch=1 ranks=3 batch=4
kill -INT $waiting
wait $waiting
is 'Ctrl-C ends the wait' $? 1
like 'and says so' "$(tail -n 1 "$tmp/wait.log")" 'the samples are still moving; .dealfs status'
waits() { readlink "/proc/$1/fd/"* | grep -q 'control$' && grep -q '^State:.*S' "/proc/$1/status"; }
ok 'another one waits for the move' wait_for waits $later
kill -INT $later
wait $later
is 'and can be interrupted' $? 1
like 'with a word' "$(cat "$tmp/later.log")" 'interrupted; the layout may still change'
ok 'so does the third' wait_for waits $killed
kill -9 "$(pid_of 1 server)"
kill -CONT "${couriers[@]}"
wait $killed
is 'whose server is killed is asked again, of the next one' $? 0
like 'which moves' "$(cat "$tmp/killed.log")" '^turn [0-9]+, layout [0-9a-f]{32}: [1-9]'
set +m
ok 'the move comes to its end' wait_for moved
for i in "${nodes[@]}"; do reads "node $i" "$src" "$tmp/node$i"; done

# --- plans ---
from_source=$(world_sum source.bytes "${nodes[@]}")
planned() { # node, epoch, keys: the digest of the plan, and its layout
    dealfs plan "$tmp/node$1" epoch="$2" ranks=3 batch=5 mode=local reply=summary "${@:3}" |
        python3 -c 'import json, sys; p = json.load(sys.stdin); print(p["digest"], p["layout"], p["unread"])'
}
layout_now() { value "$tmp/node$1" layout; }
first=$(layout_now 0)
one_line 'exchange= is no key of a plan' 'unknown key .exchange' \
    dealfs plan "$tmp/node0" epoch=20 ranks=3 batch=5 mode=local exchange=0.5
is 'plans move nothing' "$(planned 0 20 >/dev/null && layout_now 0)" "$first"
# As the package does: the exchange for an epoch is asked for while the one before is read; all plan with its layout.
dealfs exchange "$tmp/node1" epoch=21 fraction=0.5 wait=3600 >"$tmp/exchanged"
second=$(sed -n 's/.*layout \([0-9a-f]*\).*/\1/p' "$tmp/exchanged")
isnt 'an exchange has another layout' "$second" "$first"
is 'which all have when its reply comes' "$(layout_now 0) $(layout_now 1) $(layout_now 2)" "$second $second $second"
for i in "${nodes[@]}"; do
    is "node $i: epoch 20 is planned from the layout before all the same" \
        "$(planned "$i" 20 layout="$first")" "$(planned 0 20 layout="$first")"
    is "node $i: epoch 21 from the new one" "$(planned "$i" 21 layout="$second")" "$(planned 0 21 layout="$second")"
    file="$tmp/node$i/.dealfs/plan/epoch=21,ranks=3,batch=5,mode=local,layout=$second,reply=u32"
    cat "$file" >"$tmp/file$i"
done
ok 'files are the same everywhere' cmp "$tmp/file0" "$tmp/file1"
ok 'on each node' cmp "$tmp/file0" "$tmp/file2"
# The same in shell: each epoch's plan is the same on all nodes, and each but the first has a layout of its own.
cat >"$tmp/epoch" <<'END'
#!/bin/bash
for i in 0 1 2; do
    dealfs plan "$tmp/node$i" epoch="$1" ranks=3 batch=5 mode=local layout="$2" | md5sum
done | sort -u >>"$tmp/shell-plans"
echo "$2" >>"$tmp/shell-layouts"
END
chmod +x "$tmp/epoch"
export tmp
example=$top_srcdir/etc/examples/exchange.sh
ok 'examples/exchange.sh: three epochs' "$example" "$tmp/node0" 0.5 3 "$tmp/epoch"
is 'each has one plan' "$(wc -l <"$tmp/shell-plans")" 3
is 'and a layout of its own' "$(head -n 1 "$tmp/shell-layouts") $(sort -u "$tmp/shell-layouts" | wc -l)" "$second 3"
ok 'once that has moved' wait_for moved
summary() { # layout, field: of node 0
    dealfs plan "$tmp/node0" epoch=30 ranks=3 batch=5 mode=local reply=summary layout="$1" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}
is 'by the layout of now a node holds what it reads' "$(summary "$(layout_now 0)" held_percent)" 100.0
is 'an old layout says that all is local' "$(summary "$first" local_percent)" 100.0
left() { awk -v held="$(summary "$first" held_percent)" 'BEGIN { exit !(held < 90) }'; }
ok 'and the summary that not all of it is here any more' wait_for left
is 'nothing came from the source' "$(world_sum source.bytes "${nodes[@]}")" "$from_source"

# --- a server that is restarted and finds no layout in its state directory ---
current=$(layout_now 1) wanted=$(planned 0 40)
lose() {
    rm -f "$tmp"/state1/world "$tmp"/state1/layout-*
    kill -9 "$(pid_of 1 server)"
}
lose
is 'it waits for its courier: the plan is that of the others' "$(planned 1 40)" "$wanted"
lose
is 'also with the layout given' "$(planned 1 40 layout="$current")" "$wanted"
again() { [ "$(planned 1 40)" = "$wanted" ]; }
digest=${wanted%% *}
exits 1 'the digest of a plan is not that of another epoch' \
    dealfs plan "$tmp/node0" epoch=41 ranks=3 batch=5 mode=local digest="$digest"
like 'and says so' "$(cat "$tmp/.output")" 'these keys give another plan'
ok 'umount' world_umount

# --- a courier that stays away: its server does not wait for ever ---
export DEALFS_COURIER_BACK=1 DEALFS_SERVER_GONE=5
ok 'mount' world_mount 3
unset DEALFS_COURIER_BACK DEALFS_SERVER_GONE
wanted=$(planned 0 40)
# The courier sees that the server dies, and is stopped before the next one comes.
courier=$(pid_of 1 courier) keeper=$(pid_of 1 keeper) gone=$(grep -c 'server is gone' "$tmp/world.log")
kill -STOP "$keeper"
lose
is_gone() { [ "$(grep -c 'server is gone' "$tmp/world.log")" -gt "$gone" ]; }
ok 'the courier waits for the next server' wait_for is_gone
kill -STOP "$courier"
kill -CONT "$keeper"
one_line 'while the courier is stopped a plan is refused' 'does not know the current layout' \
    dealfs plan "$tmp/node1" epoch=40 ranks=3 batch=5 mode=local
one_line 'and an exchange' 'does not know the current layout' dealfs exchange "$tmp/node1" epoch=40 fraction=0.5
like 'health says so' "$(dealfs status "$tmp/node1")" 'does not know the current layout'
is_old() { [ "$(value "$tmp/node1" uptime)" -ge 6 ]; }
ok 'the courier is stopped for longer than it waits for a server' wait_for is_old
kill -CONT "$courier"
ok 'then it plans as the others do' wait_for again
ok 'unmount' world_umount

# --- each node a group of its own: what it keeps is everything ---
world_default=ram=32M,groups=3,$late
ok 'mount' world_mount 3
ok 'all of a local plan is local' eval "dealfs plan '$tmp/node1' epoch=1 ranks=3 batch=5 mode=local reply=summary |
    grep -q '\"local_percent\":100.000,.*\"unread\":0'"
is 'and has all samples' \
    "$(dealfs plan "$tmp/node2" epoch=1 ranks=3 batch=5 mode=local | tr ' ' '\n' | sort -nu | wc -l)" 90
ok 'shuffle' dealfs shuffle --wait "$tmp/node0" seed=1 wait=3600
like 'moves nothing' "$(cat "$tmp/.output")" ': 0 samples, 0 B, move to another node'
ok 'unmount' world_umount

# --- without others ---
ok 'alone' mount_up "$src" "$tmp/alone"
ok 'exchange' dealfs exchange --wait "$tmp/alone" epoch=1 fraction=1
is 'moves nothing' "$(cat "$tmp/.output")" 'this node is alone: nothing moves'
ok 'unmount' dealfs umount "$tmp/alone"
exits 1 'where nothing is mounted' dealfs shuffle "$tmp/alone" seed=1
exits 2 'without keys' dealfs shuffle "$tmp/alone"
exits 2 'what is no key' dealfs exchange "$tmp/alone" now
nothing_left 'nothing is left'
# --- tiers of a few segments: the reserve leaves room to own samples ---
for ram in 10M 16M; do
    rm -rf "$src" "$tmp"/state[0-9]*
    make_files "$src" 90 200000
    world_default=ram=$ram,exchange,$late
    ok "ram=$ram: mount" world_mount 3
    ok "ram=$ram: stage" dealfs stage "$tmp/node0"
    is "ram=$ram: every node owns samples" \
        "$( (cd "$src" && find . -type f) | xargs dealfs where "$tmp/node0" | cut -f2 | sort -u | xargs)" '0 1 2'
    ok "ram=$ram: a shuffle" dealfs shuffle --wait "$tmp/node0" seed=5 wait=3600
    like "ram=$ram: moves samples" "$(cat "$tmp/.output")" '^turn [0-9]+, .*: [1-9][0-9]* samples'
    is "ram=$ram: none is refused" "$(move state) $(world_sum move.refused_samples 0 1 2)" 'done 0'
    ok "ram=$ram: all is well" dealfs status "$tmp/node0"
    for i in "${nodes[@]}"; do reads "ram=$ram: node $i" "$src" "$tmp/node$i"; done
    ok "ram=$ram: unmount" world_umount
done
done_testing
