#!/bin/bash
# Reading ahead: what the ranks of this node read next is in the page cache before they ask, whatever becomes of who
# puts it there, and however they read.
# shellcheck disable=SC2016 # wait_for evaluates again each time
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt list=$tmp/list
# 4 MiB are 64 files.
files=640 window=64
make_files "$src" $files 65536 5
settle "$src"

feeding() { python3 "$top_srcdir/tests/lib/feeding.py" "$@"; }
feeder() { processes "dealfs-feeder $state"; }
server() { processes "dealfs-server $state"; }
keeper() { processes "dealfs-keeper $state"; }
start_mount() { # options
    state=$tmp/state.$RANDOM
    mkdir -p "$mnt"
    dealfs mount -o "state=$state,feed=4M,$1" "$src" "$mnt"
}
end_mount() { dealfs umount "$mnt"; }
at_exit end_mount
plan_epoch() { # again where a server has just been killed
    wait_for eval 'dealfs plan "$mnt" ranks=1 batch=8 rank=0 '"${*@Q}"' >"$list.lines"' || return
    tr '\n' ' ' <"$list.lines" >"$list"
}
epoch=0
next_epoch() { # keys: the list of another epoch, of which nothing is in the page cache
    epoch=$((epoch + 2)) # the very next one is foreseen, and would be fed before it is dropped
    plan_epoch epoch=$epoch "$@"
    feeding drop "$mnt" "$list"
    fed_before=$(fed_reads)
    plan_epoch epoch=$epoch feed=yes "$@"
}
progress() { # READs that were answered, for the feeder and for others
    python3 -c '
import json, sys
status = json.load(open(sys.argv[1]))
print(*[sum(sum(counts.values()) for counts in of) for of in ([status["fed"]["reads"]],
                                                              [status["fed"]["reads"], status["reads"]])])' \
        "$mnt/.dealfs/status"
}
fed_reads() { progress | cut -d ' ' -f 1; }
# At least and at most so many of these files are in the page cache. If the kernel has reclaimed some of them, that many
# READs of the feeder have been answered.
cached() { # from to how many at least, at most
    local n
    n=$(feeding cached "$mnt" "$list" "$1" "$2" --seen "$tmp/seen.$epoch.$1.$2")
    echo "$n cached of $1 to $2"
    [ "$n" -le "${4:-$n}" ] || return
    [ "$n" -ge "$3" ] || { fed_to $(($1 + $3)) && [ "$(fed_reads)" -ge $((fed_before + $3)) ]; }
}
of_epoch() { # the greatest value of a key among the lists of the epoch
    value "$mnt" feed.plans | python3 -c 'import json, sys
print(max(r[sys.argv[1]] for p in json.load(sys.stdin) for r in p["ranks"] if p["epoch"] == int(sys.argv[2])))' \
        "$1" "$epoch"
}
fed_to() { [ "$(of_epoch fed)" -ge "$1" ]; }

# --- it feeds ---

start_mount ram=64M
plan_epoch epoch=0
ok 'a plan that is not to be fed' test -z "$(feeder)"
next_epoch
# Readahead that waits for long is given back, and not asked for again.
ok 'the first window is fed before anything is read' wait_for cached 0 $window $((window - 4)) $window
ok 'and what lies beyond it is not' cached $((window + 8)) $files 0 0
number=$(value "$mnt" feed.feeder)
is 'by the feeder' "$number" "$(feeder)"
ok 'the loader reads to the 200th file' feeding read "$mnt" "$list" 0 200 --source "$src"
ok 'the next window is fed' wait_for cached 200 $((200 + window - 8)) $((window - 8))
ok 'and not what lies beyond it' cached $((200 + window + 16)) $files 0 0
reached() { [ "$(of_epoch reached)" -ge "$1" ] && [ "$(of_epoch reached)" -le "$2" ]; }
ok 'where the loader is is known' wait_for reached 190 200
ok 'it jumps' feeding read "$mnt" "$list" 400 420 --source "$src"
ok 'and is fed there' wait_for cached 420 460 40
ok 'it reads to the end' feeding read "$mnt" "$list" 420 $files --source "$src"
ok 'nothing of it is ahead then' wait_for eval '[ "$(of_epoch ahead)" = 0 ]'
is 'and the feeder the same' "$(value "$mnt" feed.feeder)" "$number"

number_of() { value "$mnt" feed.plans | python3 -c 'import json, sys
print([p["number"] for p in json.load(sys.stdin) if p["epoch"] == 77])'; }
cat "$mnt/.dealfs/plan/epoch=77,ranks=1,batch=8,rank=0,feed=yes" >/dev/null
first=$(number_of)
dealfs plan "$mnt" epoch=77 ranks=1 batch=8 feed=yes reply=summary >/dev/null
exec 3<>"$mnt/.dealfs/control"
echo 'plan epoch=77 ranks=1 batch=8 rank=0 feed=yes reply=u32' >&3
cat <&3 >/dev/null
exec 3>&-
is 'a plan asked for as a file, by the command and on the control file is one' "$(number_of)" "$first"
for ((i = 100; i < 108; i++)); do dealfs plan "$mnt" epoch=$i ranks=1 batch=8 feed=yes reply=summary; done >/dev/null
is 'eight plans are fed at most' "$(value "$mnt" feed.plans | grep -o '"epoch"' | wc -l)" 8
epoch=200

# --- orders of all kinds ---

next_epoch under=class3
ok 'a part of the files is fed' wait_for fed_to 8
seq $((files - 1)) -1 0 | tr '\n' ' ' >"$tmp/order"
epoch=201
dealfs plan "$mnt" ranks=1 batch=8 rank=0 epoch=201 order=text <"$tmp/order" | tr '\n' ' ' >"$list"
feeding drop "$mnt" "$list"
fed_before=$(fed_reads)
dealfs plan "$mnt" ranks=1 batch=8 rank=0 epoch=201 order=text feed=yes <"$tmp/order" >/dev/null
ok 'an order that was given is fed' wait_for cached 0 4 4
find "$src" -name '*[05].bin' -type f -printf '%P\n' | sort -R >"$tmp/names"
request_at "$mnt" "$tmp/names" samples name=some >/dev/null
dealfs plan "$mnt" epoch=0 ranks=1 batch=8 samples=some feed=yes reply=summary >/dev/null
ok 'and a list that was uploaded' \
    wait_for eval 'value "$mnt" feed.plans | grep -q "\"samples\": $(wc -l <"$tmp/names"),"'
next_epoch echo=2
ok 'repeats' feeding read "$mnt" "$list" 0 400 --source "$src"
ok 'are fed' wait_for fed_to 404
like 'status has a row of what was read ahead' "$(dealfs status "$mnt")" $'\n  fed       ahead +[0-9,]+ +[0-9.]+ [KM]iB'

# --- loaders of all kinds ---

next_epoch
ok 'backwards, all bytes are right' feeding read "$mnt" "$list" 0 $files --reverse --source "$src"
next_epoch
ok 'in another order, in pieces, by eight readers' \
    feeding read "$mnt" "$list" 0 $files --random 1 --threads 8 --pieces 5000 --source "$src"
next_epoch
epoch=$((epoch + 1000))
plan_epoch seed=5 epoch=$epoch feed=yes
feeding read "$mnt" "$list" 0 300 --source "$src" >"$tmp/one" 2>&1 &
one=$!
plan_epoch epoch=$((epoch - 1000)) feed=yes
ok 'two jobs with two plans' feeding read "$mnt" "$list" 0 300 --source "$src"
ok 'both are right' wait $one
# Readahead that is thrown away is read again by who needs it.
next_epoch
while :; do feeding drop "$mnt" "$list"; done &
dropper=$!
ok 'what is dropped from the page cache all the time' feeding read "$mnt" "$list" 0 $files --threads 2 --source "$src"
kill $dropper
wait $dropper 2>/dev/null

# --- faults ---

progressed() { answered=$(progress) && [ "${answered#* }" -gt $((last + 50)) ]; }
killer() { # COMMAND TIMES: kill what it prints, each time after READs were answered
    local last=0 answered i
    for ((i = 0; i < $2; i++)); do
        wait_for progressed
        "$1" | xargs -r kill -9
        last=${answered#* }
    done
}
for victim in feeder server keeper; do
    next_epoch
    # The window is small after what was dropped, and epochs that nobody has read to their end also have a share of it.
    ok 'feeding has begun' wait_for fed_to 1
    times=10
    [ $victim != feeder ] || times=2 # it is not to be switched off by this
    killer $victim $times 2>/dev/null &
    pid=$!
    ok "the $victim is killed: no read fails" \
        feeding read "$mnt" "$list" 0 $files --random 2 --threads 8 --pieces 20000 --source "$src"
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    wait_for eval '[ -n "$(server)" ]'
    next_epoch
    ok 'and feeding goes on' wait_for cached 0 8 2
done
kill -STOP "$(feeder)"
next_epoch
ok 'a feeder that is stopped keeps nobody' feeding read "$mnt" "$list" 0 $files --source "$src"
ok 'nor the mount' dealfs umount "$mnt"
nothing_left 'and nothing is left'

# --- something else in place of the control mount ---

if [ "$(id -u)" != 0 ]; then
    skip 5 'only root mounts something over it'
else
    export DEALFS_DEBUG=feeder
    start_mount ram=64M
    next_epoch
    wait_for fed_to 8
    mkdir "$tmp/other"
    : >"$tmp/other/control"
    cp "$mnt/.dealfs/samples" "$tmp/other"
    ok 'something is mounted over the control mount' mount --bind "$tmp/other" "$mnt/.dealfs"
    ok 'the epoch is read to its end' feeding read "$mnt" "$list" 0 $files --source "$src"
    ok 'the next one is not asked for there' \
        wait_for grep -q "predicting epoch $((epoch + 1)): No such device" "$state/log"
    is 'nothing is written there' "$(cat "$tmp/other/control")" ''
    umount "$mnt/.dealfs"
    next_epoch
    ok 'where it is again, feeding goes on' wait_for cached 0 8 2
    end_mount
    unset DEALFS_DEBUG
fi

# --- its end ---

start_mount ram=64M
next_epoch
busy=0
for ((i = 0; i < 10; i++)); do
    next_epoch
    python3 "$top_srcdir/tests/lib/feeding.py" read "$mnt" "$list" 0 $files &
    reader=$!
    wait_for fed_to 100
    kill $reader
    wait $reader 2>/dev/null
    dealfs umount "$mnt" 2>"$tmp/why" || { busy=$((busy + 1)) && diag "$(cat "$tmp/why")"; }
    mounted "$mnt" || start_mount ram=64M
done
is 'a mount that is being fed is unmounted at once' $busy 0
next_epoch
wait_for fed_to 8
ok 'one that is in use is not' eval '(cd "$mnt/class0" && ! dealfs umount "$mnt")'
next_epoch
ok 'and is fed on' wait_for cached 0 8 2
shows_paused() { [ "$(cat "/proc/$1/comm")" = dealfs-paused ]; }
# A pause ends after three seconds, which a look may come too late for: then all is done again.
comes_to_pause() { # a bounded number of looks
    local look
    for ((look = 0; look < 500; look++)); do
        ! shows_paused "$pid" || return 0
        sleep 0.01
    done
    return 1
}
pauses() { # once, after it was told that it need not
    kill -USR2 "$pid"
    wait_for grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$pid/status" || return
    kill -USR1 "$pid"
    comes_to_pause
}
stays_paused() {
    kill -USR1 "$pid"
    for _ in 1 2 3 4 5; do
        [ "$(value "$mnt" feed.paused)" = true ] || return
    done
}
pid=$(feeder)
ok 'one that need not pause does when it must' wait_for pauses
ok 'and stays so' wait_for stays_paused
kill -USR2 "$pid"
ok 'until it is over' wait_for eval '! shows_paused "$pid"'
cat >"$tmp/begun.py" <<'END'
import os, signal, sys
keeper, old = sys.argv[1:]
children = lambda: set(open(f'/proc/{keeper}/task/{keeper}/children').read().split())
before = children()
os.kill(int(old), signal.SIGKILL)
while not (new := children() - before):
    pass
for pid in new:
    os.kill(int(pid), signal.SIGUSR1)
    print(pid)
END
died=$(value "$mnt" feed.deaths)
begun_pauses() {
    pid=$(python3 "$tmp/begun.py" "$(keeper)" "$(feeder)")
    died=$((died + 1))
    comes_to_pause
}
ok 'one that has hardly begun pauses' wait_for begun_pauses
is 'and lives' "$(value "$mnt" feed.deaths)" "$died"

another_feeder() {
    local now
    now=$(feeder)
    [ -n "$now" ] && [ "$now" != "$last" ] && last=$now
}
end_mount
DEALFS_MINUTE=16 start_mount ram=64M
next_epoch
last=
# Five deaths within 16 s: a few more, where these take longer. It says so for four seconds.
is_off() {
    health=$(value "$mnt" health)
    [[ $health != *'the feeder died repeatedly'* ]] || return 0
    ! another_feeder || kill -9 "$last"
    return 1
}
ok 'a feeder that dies repeatedly is switched off' wait_for is_off
like 'health has it' "$health" 'the feeder died repeatedly, [0-9]+ times so far: .* started again in'
ok 'with a line in the log' grep -q 'nothing is read ahead of loaders for 4 s' "$state/log"
next_epoch
ok 'and reads are as without it' feeding read "$mnt" "$list" 0 $files --source "$src"
ok 'it is started again after a rest' wait_for another_feeder
kill -9 "$last"
ok 'also when that one dies' wait_for another_feeder
next_epoch
ok 'and it feeds' wait_for fed_to 1
good_again() { health=$(value "$mnt" health) && [[ $health != *'the feeder'* ]]; }
ok 'health is good again' wait_for good_again
end_mount

start_mount ram=64M,feed=0
plan_epoch epoch=0 feed=yes
feeding read "$mnt" "$list" 0 20
is 'feed=0: there is none' "$(feeder)" ''
end_mount
one_line 'a window that is no size' 'option feed=lots' dealfs mount -o feed=lots "$src" "$mnt"
nothing_left
done_testing
