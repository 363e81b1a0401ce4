#!/bin/bash
# Streams of a source that hangs: those of cached samples stay readable, and the others resume with it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults readers=24
mkdir -p "$src/cached" "$src/slow"
head -c 20M /dev/urandom >"$src/cached/a"
head -c 20M /dev/urandom >"$src/slow/b"
settle "$src"
set_faults ''
DEALFS_SOURCE_FAULTS=file=$faults ok 'a mount' mount_up -o ram=100M "$src" "$mnt"
for list in cached slow; do
    ok "the list $list" dealfs index "$mnt" $list --under $list --format fixed=4096
done
cat "$mnt/cached/a" >/dev/null
stream() { echo "$mnt/.dealfs/plan/epoch=$2,ranks=1,batch=8,samples=$1,rank=0,reply=bytes"; }
# In the order of the list a stream of these records is the file.
natural() { echo "$mnt/.dealfs/plan/epoch=$2,ranks=1,batch=8,order=natural,samples=$1,rank=0,reply=bytes"; }

set_faults 'hang=slow/*'
pids=()
read_slow() { # number of readers, with those that already read
    for ((i = ${#pids[@]}; i < $1; i++)); do
        cmp "$src/slow/b" "$(natural slow $i)" >"$tmp/cmp.$i" 2>&1 &
        pids+=($!)
    done
}
all_wait() { [ "$(ps -o stat= -p "$(IFS=,; echo "${pids[*]}")" | grep -c D)" = ${#pids[@]} ]; }

# The look-ahead of a stream begins with two of eight threads, so two waiting streams leave threads for a third one.
read_slow 2
ok 'two readers of the slow source wait' wait_for all_wait
before=$(answered "$mnt" ram)
exec 3<"$(stream cached 3)"
is 'the first bytes of a stream of cached samples are read' "$(head -c 4096 <&3 | wc -c)" 4096
read_ahead() { [ $(($(answered "$mnt" ram) - before)) -ge $((1 << 20)) ]; }
ok 'what follows is read ahead' wait_for read_ahead
exec 3<&-

read_slow $readers
ok 'all readers of the slow source wait' wait_for all_wait
ok 'a stream of cached samples is read' cmp "$src/cached/a" "$(natural cached 1)"
ok 'and one in another order' cp "$(stream cached 2)" "$tmp/copy"
is 'which is all of it' "$(stat -c %s "$tmp/copy")" $((20 << 20))

# The server knows the names of some thousand plans. Those of streams that are read it finds again in the state folder.
# Without the page cache no READ is repeated.
direct=()
for ((i = 0; i < 40; i++)); do
    background dd status=none if="$(natural slow $((100 + i)))" of="$tmp/direct.$i" \
        iflag=direct bs=4096 skip=2000 count=1
    direct+=($!)
done
reads_directly() {
    local pid
    for pid in "${direct[@]}"; do
        is_in "$pid" SD && [[ $(readlink "/proc/$pid/fd/0") == *samples=slow* ]] || return
    done
}
ok 'other readers wait without the page cache' wait_for reads_directly
cat >"$tmp/look_up.py" <<'END'
import os, sys
for epoch in range(1000, 5000):
    os.close(os.open(f'{sys.argv[1]}/.dealfs/plan/epoch={epoch},ranks=1,batch=8,samples=cached', os.O_PATH))
END
ok 'the names of many other plans' python3 "$tmp/look_up.py" "$mnt"
ok 'the slow ones still wait' wait_for all_wait # not, if one of them had ended
kill "${pids[0]}"
ok 'one that is killed ends' wait_for has_ended "${pids[0]}"
set_faults ''
bad=0
for pid in "${pids[@]:1}"; do wait "$pid" || bad=$((bad + 1)); done
is 'the others get their bytes when the source is back' $bad 0
[ $bad = 0 ] || diag "$(cat "$tmp"/cmp.*)"
bad=0
for pid in "${direct[@]}"; do wait "$pid" || bad=$((bad + 1)); done
is 'also those without the page cache' $bad 0
dd if="$src/slow/b" of="$tmp/right" bs=4096 skip=2000 count=1 status=none
is 'which have the right bytes' "$(md5sum "$tmp"/{right,direct.*} | cut -d ' ' -f 1 | uniq | wc -l)" 1
ok 'umount' dealfs umount "$mnt"
nothing_left 'nothing is left'
done_testing
