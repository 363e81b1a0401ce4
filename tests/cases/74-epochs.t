#!/bin/bash
# What is said of an epoch's lists: that all was read, what was skipped, read again or not planned; and that it is not
# known, where events were lost, the feeder was killed, or files are mapped.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-tap" || exit 99
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_fuse
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 400 20000
mkdir "$src/val"
echo other >"$src/val/other"

# A loader of both ranks of an epoch, in turns. It waits until its plan is followed, if it is in no hurry.
cat >"$tmp/loader.py" <<'END'
import json, mmap, os, sys, time
mnt, epoch, how = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
names = open(mnt + '/.dealfs/samples').read().splitlines()
def ask(rank):
    with open(mnt + '/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(b'plan epoch=%d ranks=2 batch=8 count=%d rank=%d feed=yes under=. match=*.bin\n' % (epoch, 400, rank))
        return [int(line) for line in f.read().split()]
def followed():
    plans = json.load(open(mnt + '/.dealfs/status'))['feed']['plans']
    return any(p['epoch'] == epoch and len(p['ranks']) == 2 for p in plans)
def read(sample):
    path = f'{mnt}/{names[sample]}'
    with open(path, 'rb') as f:
        if 'mapped' in how:
            with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                return sum(m[::4096])
        while f.read(8192):
            pass
lists = [ask(0), ask(1)]
deadline = time.monotonic() + 20
while not ('hurried' in how or followed()):
    assert time.monotonic() < deadline
    time.sleep(0.02)
for at in range(len(lists[0])):
    if 'half' in how and at == 100:
        break
    if 'rest' in how and at < 100:
        continue
    for rank in 0, 1:
        if 'careless' in how and rank == 1 and at in (50, 60, 199):
            continue
        read(lists[rank][at])
        if 'careless' in how and rank == 0 and at in (70, 71):
            read(lists[rank][at])
if 'careless' in how:
    open(mnt + '/val/other').read()
    print(*[names[lists[1][at]] for at in (50, 60, 199)], sep='\n')
END
sed -i "s/ under=. match=/ match=/" "$tmp/loader.py"
load() { timeout 60 python3 "$tmp/loader.py" "$mnt" "$@"; }

# epoch: the report of it says KEY VALUE of a rank
report() {
    python3 -c '
import json, sys
for r in json.load(open(sys.argv[1] + "/.dealfs/epochs")):
    if r["epoch"] == int(sys.argv[2]) and r["rank"] == int(sys.argv[3]):
        print(r[sys.argv[4]])' "$mnt" "$@"
}
says() { [ "$(report "$1" "$2" "$3")" = "$4" ]; }

mount_up -o ram=100M "$src" "$mnt"
one_line 'no epoch has been read' 'no list of a plan' dealfs status --epoch "$mnt"

ok 'a loader that reads all' load 0
ok 'is seen to' wait_for 10 says 0 0 coverage complete
ok 'on both ranks' wait_for 10 says 0 1 coverage complete
is 'none was read again' "$(report 0 0 again)$(report 0 1 again)" 00
out=$(dealfs status --epoch "$mnt")
is 'that is no failure' $? 0
like 'and is said' "$out" 'rank 0 .*200 samples, 3.8 MiB: every planned sample was read'

load 1 careless >"$tmp/skipped"
ok 'the next epoch is left for another' load 2
ok 'which is followed' wait_for 10 says 2 1 coverage complete
ok 'three samples that were skipped are known' wait_for 10 says 1 1 unread 3
is 'so is that it is over' "$(report 1 1 ended)$(report 1 1 coverage)" Trueincomplete
is 'two were read again' "$(report 1 0 again)" 2
out=$(dealfs status --epoch 1 "$mnt")
is 'the exit status tells' $? 3
like 'it is said' "$out" 'rank 1 .*: 3 samples were not read'
while read -r name; do like 'by name' "$out" "$name"; done <"$tmp/skipped"
like 'what was read twice' "$out" 'rank 0 .*: every planned sample was read; 2 reads of such as had been read'
like 'what was not planned' "$out" 'not planned val/other'
is 'as JSON, too' "$(dealfs status --json --epoch=1 "$mnt" | python3 -c '
import json, sys
print(sum(len(r["missed"]) for r in json.load(sys.stdin)))')" 3
is 'of all mounts' "$(dealfs status --json --epoch 1 | python3 -c '
import json, sys
mounts = [m for m in json.load(sys.stdin) if m["mountpoint"] == sys.argv[1]]
print(sum(len(r["missed"]) for m in mounts for r in m["epochs"]))' "$mnt")" 3

ok 'half of an epoch' load 3 half
ok 'is seen' wait_for 10 says 3 0 read 100
feeder=$(value "$mnt" feed.feeder)
kill -9 "$feeder"
another() { [ "$(value "$mnt" feed.feeder)" != "$feeder" ] && [ "$(value "$mnt" feed.feeder)" != 0 ]; }
ok 'a feeder that is killed is replaced' wait_for 20 another
ok 'the rest of it' load 3 rest
ok 'is followed' wait_for 10 says 3 0 overflowed True
load 4 >"$tmp/skipped"
ok 'what was read is counted on' wait_for 10 says 3 0 ended True
like 'and it is said that the rest is not known' "$(dealfs status --epoch 3 "$mnt")" \
    'rank 0 .*(whether the other .* not known|every planned sample)'

ok 'an epoch of mapped files' load 5 mapped
ok 'is seen to be mapped' wait_for 10 says 5 0 mapped True
is 'and not known' "$(report 5 0 coverage)" unknown
like 'as is said' "$(dealfs status --epoch 5 "$mnt")" 'files are mapped'

ok 'half of another one' load 6 half
ok 'which is seen' wait_for 10 says 6 0 read 100
feeder=$(value "$mnt" feed.feeder)
kill -STOP "$feeder"
python3 - "$mnt" <<'END'
import os, sys
paths = [f'{sys.argv[1]}/class{i}/{i:03}.bin' for i in range(4)]
for i in range(int(open('/proc/sys/fs/inotify/max_queued_events').read())):
    fd = os.open(paths[i % 4], os.O_RDONLY)
    os.read(fd, 10)
    os.close(fd)
END
kill -CONT "$feeder"
ok 'events that are lost are noticed' wait_for 20 says 6 0 overflowed True
is 'what else was read is not known' "$(report 6 0 coverage)" unknown

# Loaders that read at once what they have planned: an epoch of them is over before the next look at the plans.
for epoch in 10 11 12 13; do
    load $epoch hurried
    ok 'an epoch that is read as soon as it is planned is complete' wait_for 10 says $epoch 0 coverage complete
done
seen() { for epoch in 10 11 12 13; do echo "$(report $epoch 0 read),$(report $epoch 1 read)"; done; }
is 'all reads of all of them were seen' "$(seen)" "$(printf '200,200\n%.0s' 1 2 3 4)"
is 'as reads of their own' "$(report 10 0 again)$(report 11 0 again)$(report 12 0 again)" 000
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
