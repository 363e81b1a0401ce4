#!/bin/bash
# The feeder in mounts of all kinds: of an ordinary user, of root for another user, of `dealfs run`; with one watch,
# with more reads than its queue holds, and through ten thousand short epochs.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

user_setup
src=$tmp/user/src mnt=$tmp/user/mnt
make_files "$src" 40 20000
mkdir "$mnt"
chown -R $mount_user:$mount_user "$tmp/user"
settle "$src"

feeder() { processes "dealfs-feeder $tmp/user/state"; }
all_fed() { # command prefix: 40 samples of the epoch $epoch
    "$@" cat "$mnt/.dealfs/status" | python3 -c 'import json, sys
sys.exit(not any(r["fed"] == 40 for p in json.load(sys.stdin)["feed"]["plans"] for r in p["ranks"]
                 if p["epoch"] == int(sys.argv[1])))' "$epoch"
}
uid_of() { stat -c %u "/proc/$1"; }

epoch=1
ok 'a mount of an ordinary user' as_user dealfs mount -o "ram=4M,state=$tmp/user/state" "$src" "$mnt"
at_exit as_user dealfs umount "$mnt"
as_user dealfs plan "$mnt" epoch=1 ranks=1 batch=4 feed=yes >"$tmp/plan"
ok 'is fed' wait_for all_fed as_user
is 'by a process of the user' "$(uid_of "$(feeder)")" $mount_user
ok 'and unmounted at once' as_user dealfs umount "$mnt"
nothing_left 'a mount of a user leaves nothing'

ok 'a mount of root for another user' \
    dealfs mount -o "ram=4M,owner=$mount_user,allow_other,state=$tmp/user/state2" "$src" "$mnt"
at_exit dealfs umount "$mnt"
feeder() { processes "dealfs-feeder $tmp/user/state2"; }
dealfs plan "$mnt" epoch=1 ranks=1 batch=4 feed=yes >"$tmp/plan"
ok 'is fed' wait_for all_fed
is 'by a process of that user' "$(uid_of "$(feeder)")" $mount_user

# --- more reads than the queue holds ---

first=$(feeder)
kill -STOP "$first"
python3 - "$mnt" <<'END'
import os, sys
with open(sys.argv[1] + '/.dealfs/samples') as f:
    a, b = (os.open(sys.argv[1] + '/' + f.readline().strip(), os.O_RDONLY) for _ in range(2))
for i in range(int(open('/proc/sys/fs/inotify/max_queued_events').read())):
    os.pread(a, 1, 0)
    os.pread(b, 1, 0)
END
kill -CONT "$first"
ok 'reads that are lost are said to be' wait_for grep -q 'the queue of inotify was full' \
    "$tmp/user/state2/log"
epoch=2
dealfs plan "$mnt" epoch=2 ranks=1 batch=4 feed=yes >"$tmp/plan"
ok 'and feeding goes on' wait_for all_fed
is 'by the same process' "$(feeder)" "$first"

# --- many short epochs ---

cat >"$tmp/epochs.py" <<'END'
"""Epochs FROM to TO of ten samples, each planned and read."""
import os, sys
mount, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(mount + '/.dealfs/samples') as f:
    paths = [line.strip() for line in f]
for epoch in range(first, end):
    control = os.open(mount + '/.dealfs/control', os.O_RDWR)
    os.write(control, f'plan epoch={epoch} ranks=1 batch=1 rank=0 match=class0/* feed=yes\n'.encode())
    order = os.read(control, 65536).split()
    os.close(control)
    assert len(order) == 10, order
    for i in order:
        with open(f'{mount}/{paths[int(i)]}', 'rb') as f:
            assert len(f.read()) == 20000
END
memory_of() { awk '/^(RssAnon|VmSwap)/ { n += $2 } END { print n }' "/proc/$1/status"; } # the kernel reclaims the rest
files_of() { find "/proc/$1/fd" | wc -l; }
watches_of() { cat "/proc/$1"/fdinfo/* 2>/dev/null | grep -c '^inotify'; }
python3 "$tmp/epochs.py" "$mnt" 100 200
memory=$(memory_of "$first") files=$(files_of "$first") watches=$(watches_of "$first")
ok 'ten thousand epochs of ten samples' python3 "$tmp/epochs.py" "$mnt" 200 10200
is 'of one feeder' "$(feeder)" "$first"
ok 'leave no memory' test "$(memory_of "$first")" -le $((memory + 1024))
settled() { [ "$(files_of "$first")" -le "$files" ] && [ "$(watches_of "$first")" -le "$watches" ]; }
ok 'no open files and no watches' wait_for settled
ok 'it is unmounted' dealfs umount "$mnt"
nothing_left 'a mount for another user leaves nothing'

# --- a namespace of its own, with one watch ---

cat >"$tmp/user/inside" <<'END'
mnt=$1
echo 1 >/proc/sys/user/max_inotify_watches || echo 'the limit cannot be set'
dealfs plan "$mnt" epoch=1 ranks=1 batch=4 feed=yes reply=text rank=0 >"$2/list" || exit
for i in $(cat "$2/list"); do cat "$mnt/$(sed -n "$((i + 1))p" "$mnt/.dealfs/samples")"; done | wc -c
until grep -q '"fed": *40' "$mnt/.dealfs/status"; do sleep 0.05; done
echo 'all is fed'
END
mkdir -p "$tmp/user/work"
dealfs run -o "ram=4M,state=$tmp/user/state3" "$src" "$mnt" -- sh "$tmp/user/inside" "$mnt" "$tmp/user/work" \
    >"$tmp/inside.log" 2>&1
like 'with one watch, in a namespace, all bytes are read' "$(cat "$tmp/inside.log")" '800000'
like 'and all is fed' "$(cat "$tmp/inside.log")" 'all is fed'
nothing_left
done_testing
