#!/bin/bash
# What is said of an epoch's lists: that all was read, what was skipped or not planned; and that it is not known, where
# events were lost, the feeder was away, files are mapped, or somebody else reads them. No word of it may be false.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
make_files "$src" 400 20000
mkdir "$src/val"
echo other >"$src/val/other"
: >"$src/class0/empty.bin"

# A loader of both ranks of an epoch, in turns, or of all samples as one rank ("one"). It prints what `end` replies.
cat >"$tmp/loader.py" <<'END'
import json, mmap, os, sys, time
mnt, epoch, how = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
names = open(mnt + '/.dealfs/samples').read().splitlines()
ranks, batch = (1, 1) if 'one' in how else (2, 8)
def ask(line):
    with open(mnt + '/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(line.encode() + b'\n')
        return f.read().decode()
def ask_list(rank):
    return [int(line) for line in ask(f'plan epoch={epoch} ranks={ranks} batch={batch} rank={rank} feed=yes'
                                      ' match=*.bin').split()]
samples = [name for name in names if name.endswith('.bin')]
def read(sample):
    with open(f'{mnt}/{samples[sample]}', 'rb') as f:
        if 'mapped' in how and os.fstat(f.fileno()).st_size:
            with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                return sum(m[::4096])
        while f.read(8192):
            pass
kept = []
if 'kept' in how:
    for name in samples[:100]:
        with open(f'{mnt}/{name}', 'rb') as f:
            if os.fstat(f.fileno()).st_size:
                kept.append(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ))
lists = [ask_list(rank) for rank in range(ranks)] if 'rest' not in how else eval(open(mnt + '.lists').read())
open(mnt + '.lists', 'w').write(repr(lists))
for at in range(len(lists[0])):
    if 'half' in how and at == 100 or 'none' in how:
        break
    if 'rest' in how and at < 100:
        continue
    for rank in range(ranks):
        if at >= len(lists[rank]) or 'kept' in how and lists[rank][at] < 100:
            continue
        if 'careless' in how and rank == 1 and at in (50, 60, 199):
            print(samples[lists[1][at]], file=sys.stderr)
            continue
        read(lists[rank][at])
        if 'twice' in how and at in (70, 71):
            read(lists[rank][at])
if 'careless' in how:
    open(mnt + '/val/other').read()
if 'verified' in how:
    sys.stdin.readline()
    os.system(sys.argv[-1])
if 'half' in how:
    sys.exit(0)
for rank in range(ranks):
    r = json.loads(ask(f'end epoch={epoch} rank={rank}'))
    assert r['read'] + r['unread'] + r['unsure'] == len(set(lists[rank])), r
    print(rank, r['coverage'], r['unread'], r['again'])
END
load() { python3 "$tmp/loader.py" "$mnt" "$@" </dev/null; }
both() { printf '0 %s\n1 %s\n' "$1" "${2-$1}"; }
# What is reported of the list, once something is known of it: where the feeder was late at its end, nothing is. Then it
# is read again, as another list of the epoch.
known() { # 'what' EXPECTED, words for load
    load_known() { loaded=$(load "$@" 2>"$tmp/skipped") && [[ $loaded != *unknown\ 0\ 0* ]]; }
    wait_for load_known "${@:3}"
    is "$1" "$loaded" "$2"
}

# epoch rank key: of its report
report() {
    python3 -c '
import json, sys
for r in json.load(open(sys.argv[1] + "/.dealfs/epochs")):
    if r["epoch"] == int(sys.argv[2]) and r["rank"] == int(sys.argv[3]):
        print(r[sys.argv[4]])' "$mnt" "$@"
}
says() { [ "$(report "$1" "$2" "$3")" = "$4" ]; }

mount_up -o ram=100M "$src" "$mnt"
one_line 'no epoch was requested' 'no list of a plan' dealfs status --epoch "$mnt"
exec 3<>"$mnt/.dealfs/control"
echo 'end epoch=7 rank=0' >&3
cat <&3 2>"$tmp/refused" && refused=no || refused=yes
like 'nor can one end' "$refused $(cat <&3)" 'yes .*epoch 7, rank 0'
exec 3>&-

# --- plain words ---

# Loaders read at once what they have planned, the first one before there is a feeder.
for epoch in 0 1 2; do
    known 'all is read, an empty file among it; that is known once the end is' "$(both 'complete 0 0')" $epoch
done
out=$(dealfs status --epoch "$mnt")
is 'that is no failure' $? 0
like 'and is said' "$out" 'rank 0 .*20[01] samples, 3.8 MiB: every planned sample was read'
is 'the last list has ended' "$(report 2 1 ended)" True

known 'three samples are skipped' "$(both 'complete 0 0' 'incomplete 3 0')" 3 careless
out=$(dealfs status --epoch "$mnt")
is 'the exit status tells' $? 3
like 'it is said' "$out" 'rank 1 .*: 3 samples were not read'
while read -r name; do like 'by name' "$out" "$name"; done <"$tmp/skipped"
like 'what was not planned, too' "$out" 'not planned val/other'
is 'and as JSON, of all mounts' "$(dealfs status --json --epoch 3 | python3 -c '
import json, sys
mounts = [m for m in json.load(sys.stdin) if m["mountpoint"] == sys.argv[1]]
print(sum(len(r["missed"]) for m in mounts for r in m["epochs"]))' "$mnt")" 3
twice() { # it is never said to be complete
    loaded=$(load 4 twice)
    [[ $loaded == *complete* ]] || [ "$loaded" = "$(both 'unknown 0 2')" ]
}
wait_for twice
is 'what was read twice' "$loaded" "$(both 'unknown 0 2')"
like 'may have been read by two' "$(dealfs status --epoch "$mnt")" \
    'every planned sample was read; .* 2 repeated reads'
known 'the same epoch again is another list' "$(both 'complete 0 0')" 4
is 'that takes the place of the first one' "$(report 4 0 again)" 0

load 5 half
ok 'a list whose end nobody reports' wait_for says 5 0 read 100
out=$(dealfs status --epoch 5 "$mnt")
is 'is no failure' $? 0
like 'but being read' "$out" 'rank 0 .*: 100 read so far'
is 'of the rest nothing is claimed' "$(report 5 0 unread) $(report 5 0 coverage)" '0 unknown'

# --- other readers ---

for other in "dealfs verify $mnt" "cat $mnt/class*/*.bin"; do
    is 'what others read is not what a loader reads' \
        "$(load 6 one none verified "$other >/dev/null" | cut -d ' ' -f 2,3)" 'unknown 0'
done
is 'nor beside a loader' "$(load 7 one verified "cat $mnt/class*/*.bin >/dev/null" | cut -d ' ' -f 2,3)" 'unknown 0'

# --- what cannot be seen ---

is 'mapped files' "$(load 8 mapped | cut -d ' ' -f 2,3 | sort -u)" 'unknown 0'
like 'which is said' "$(dealfs status --epoch 8 "$mnt")" 'as mmap does'
is 'mapped before' "$(load 9 kept | cut -d ' ' -f 2,3 | sort -u)" 'unknown 0'
all_known() { [ "$(load "$1")" = "$(both 'complete 0 0')" ]; }
# Files are closed a while after the process that mapped them.
ok 'and not any more' wait_for all_known 10

# Until the feeder follows the list: what was read before that it may not have seen.
half() { load "$1" half && wait_for says "$1" 0 samples 201 && wait_for says "$1" 1 samples 201; }
ok 'half of a list is read' half 11
watches_now() { cat "/proc/$(value "$mnt" feed.feeder)"/fdinfo/* 2>/dev/null | grep -c '^inotify'; }
feeder=$(value "$mnt" feed.feeder) watches=$(watches_now) read=$(report 11 0 read)
kill -9 "$feeder"
another() { [ "$(value "$mnt" feed.feeder)" != "$feeder" ] && [ "$(value "$mnt" feed.feeder)" != 0 ]; }
ok 'a feeder that is killed is replaced' wait_for another
ok 'and follows the list' wait_for says 11 0 unwatched True
watching() { [ "$(watches_now)" -ge "$watches" ]; }
ok 'with as many watches' wait_for watching
is 'nothing that it did not see counts as unread' "$(load 11 rest | cut -d ' ' -f 2,3 | sort -u)" 'unknown 0'
diag "$read read before, $(report 11 0 read) in all"
ok 'what was read is counted on' test "$(report 11 0 read)" -ge "$read"

ok 'half of a list is read' half 12
feeder=$(value "$mnt" feed.feeder)
kill -STOP "$feeder"
is 'a feeder that is stopped keeps nobody waiting for long' \
    "$(load 12 rest | cut -d ' ' -f 2,3 | sort -u)" 'unknown 0'
kill -CONT "$feeder"
ok 'it reports the end late' wait_for says 12 0 ended True
is 'with reads from after it, perhaps' "$(report 12 0 coverage) $(report 12 0 unread)" 'unknown 0'

ok 'half of a list is read' half 13
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
ok 'events that are lost are noticed' wait_for says 13 0 overflowed True
is 'what else was read is not known' "$(load 13 rest | cut -d ' ' -f 3 | sort -u)" 0
# Not of the first one, where the feeder is still taking the events of before when that is asked for.
ok 'the next list knows all again' wait_for all_known 14

# --- two jobs with the same plan ---
load 15 half
dealfs plan "$mnt" epoch=15 ranks=2 batch=8 feed=yes 'match=*.bin' >"$tmp/.output"
is 'what the first one read before the second one asked is not called unread' \
    "$(load 15 rest | cut -d ' ' -f 2,3 | sort -u)" 'unknown 0'

# --- guesses and many jobs ---

cat >"$tmp/jobs.py" <<'END'
import json, sys, time
mnt = sys.argv[1]
names = open(mnt + '/.dealfs/samples').read().splitlines()
def plans():
    return json.load(open(mnt + '/.dealfs/status'))['feed']['plans']
def followed(batch):
    return any(p['epoch'] == 100 + batch and p['ranks'] for p in plans())
for batch in range(1, 6):  # five jobs, each near the end of an epoch
    with open(mnt + '/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(b'plan epoch=%d ranks=1 batch=%d rank=0 feed=yes\n' % (100 + batch, batch))
        order = [int(line) for line in f.read().split()]
    while not followed(batch):
        time.sleep(0.01)
    for sample in order[:-8]:
        open(f'{mnt}/{names[sample]}', 'rb').read()
while sum(p['guessed'] for p in plans()) < 2 or len(plans()) < 8:
    time.sleep(0.01)
print(*sorted(p['epoch'] for p in plans() if not p['guessed'] and p['epoch'] > 100))
END
is 'guesses take no place of a plan that is read' "$(python3 "$tmp/jobs.py" "$mnt")" '101 102 103 104 105'
like 'guesses are not reported' "$(dealfs status --epoch "$mnt" | head -1)" 'epoch 105$'
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
