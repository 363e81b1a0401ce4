#!/bin/bash
# Coverage of lists that are read as streams: it follows from the server's READs, or from what the loader says.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
mkdir -p "$src"
head -c 40M /dev/urandom >"$src/rows"
head -c 4M /dev/urandom >"$src/late"
settle "$src"
ok 'a mount' mount_up -o ram=100M "$src" "$mnt"
like 'a list of 5,120 records' "$(dealfs index --match rows --format fixed=8192 "$mnt" rows)" '^5,120 records'
cat >"$tmp/coverage.py" <<'END'
import json, mmap, os, signal, sys, time
what, mnt, src, server = sys.argv[1:]
COUNT, ROW = 5120, 8192
def ask(words):
    with open(f'{mnt}/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(words.encode())
        try:
            return f.read()
        except OSError:
            raise SystemExit(f.read().decode().strip())
def stream(words):
    samples = '' if 'samples=' in words else ',samples=rows'
    return os.open(f'{mnt}/.dealfs/plan/batch=8,reply=bytes,{words}{samples}', os.O_RDONLY)
def read(fd, begin=0, end=None):
    """In order, from byte `begin` to before `end`. If that is given, the kernel reads nothing ahead."""
    if end:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    while data := os.pread(fd, min(1 << 20, (end or 1 << 62) - begin), begin):
        begin += len(data)
    os.close(fd)
def report(epoch, rank=0):
    with open(f'{mnt}/.dealfs/epochs') as f:
        found = [r for r in json.load(f) if r['epoch'] == epoch and r['rank'] == rank]
    return found[-1] if found else None
def say(*reports):
    for r in reports:
        print(r and [r[key] for key in ('coverage', 'samples', 'read', 'unread', 'unsure', 'bytes', 'ended')])
def whole():
    say(report(1))
    read(stream('epoch=1,ranks=1,rank=0'))
    say(report(1))
def part():
    read(stream('epoch=2,ranks=1,rank=0'), 0, 1000 * ROW)
    r = report(2)
    print(r['coverage'], r['read'], r['unsure'])
    r = json.loads(ask('end epoch=2 rank=0 stopped=yes\n'))
    print(r['coverage'], r['read'], r['unsure'], r['stopped'])
    read(stream('epoch=3,ranks=1,rank=0'), 0, 1000 * ROW)
    say(json.loads(ask('end epoch=3 rank=0 position=700 stopped=yes\n')))
def said():
    """Steps that a loader knows count for more than READs."""
    read(stream('epoch=4,ranks=1,rank=0'), 0, 1000 * ROW)
    ask('at epoch=4 rank=0 position=640\n')
    say(report(4))
    read(stream('epoch=4,ranks=1,rank=0'), 1000 * ROW)
    say(report(4), json.loads(ask(f'end epoch=4 rank=0 position={COUNT}\n')))
def workers():
    for worker in 2, 0, 1:
        say(report(5))
        read(stream(f'epoch=5,ranks=1,rank=0,workers=3,worker={worker}'))
    say(report(5))
def many_workers():
    for worker in 79, 64, *range(64), *range(65, 79):
        read(stream(f'epoch=12,ranks=1,rank=0,workers=80,worker={worker}'))
        if worker in (79, 64):
            say(report(12))
    say(report(12))
def ranks():
    for rank in 0, 1:
        read(stream(f'epoch=6,ranks=2,rank={rank}'))
    say(report(6), report(6, 1))
    print(report(6)['number'] == report(6, 1)['number'])
def random():
    """What is read at random, or from the middle on, counts as nothing."""
    fd = stream('epoch=7,ranks=1,rank=0')
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for i in range(0, COUNT, 7):
        os.pread(fd, 100, (COUNT - 1 - i) * ROW)
    print(report(7) is None or report(7)['read'] < COUNT // 4)
    read(stream('epoch=8,ranks=1,rank=0'), COUNT // 2 * ROW)
    say(report(8))
def mapped():
    fd = stream('epoch=9,ranks=1,rank=0')
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as all_of_it:
        print(sum(all_of_it[at] for at in range(0, COUNT * ROW, 4096)) > 0)
    say(report(9))
def killed():
    fd = stream('epoch=10,ranks=1,rank=0')
    read(stream('epoch=10,ranks=1,rank=0'), 0, COUNT // 2 * ROW)
    before = report(10)['read']
    os.kill(int(server), signal.SIGKILL)
    read(fd, COUNT // 2 * ROW)
    print(before == COUNT // 2)
    say(report(10))
def stale():
    """A container that changed: its records fail, and the list is not complete."""
    ask('samples name=late form=records\n' + ''.join(f'{name}\t{i * ROW}\t{ROW}\n' for i in range(512)
                                                     for name in ('rows', 'late')))
    with open(f'{src}/late', 'ab') as f:
        f.write(b'more')
    fd, failed = stream('epoch=11,ranks=1,rank=0,samples=late'), 0
    for i in range(1024):
        try:
            os.pread(fd, ROW, i * ROW)
        except OSError:
            failed += 1
    print(failed)
    r = report(11)
    print(r['coverage'], r['unsure'] > 0)
def several():
    for seed in 0, 1:
        read(stream(f'epoch=20,ranks=1,seed={seed},rank=0'), 0, (1 + seed) * 100 * ROW)
    digest = [json.loads(ask(f'plan epoch=20 ranks=1 batch=8 samples=rows seed={seed} reply=summary'))['digest']
              for seed in (0, 1)]
    for words in 'at position=3', 'end':
        try:
            ask(f'{words.split()[0]} epoch=20 rank=0 {" ".join(words.split()[1:])}')
        except SystemExit as refused:
            print(refused)
    r = [json.loads(ask(f'end epoch=20 rank=0 digest={d} position={p}')) for d, p in zip(digest, (30, 40))]
    say(*r)
    ask(f'at epoch=20 rank=0 digest={digest[0]} position=50')
    r.append(json.loads(ask(f'end epoch=20 rank=0 digest={digest[0]} stopped=yes')))
    say(r[2])
    with open(f'{mnt}/.dealfs/epochs') as f:
        print([r.index(one) for one in json.load(f) if one['epoch'] == 20])
def nobody():
    ask('at epoch=99 rank=0 position=1\n')
globals()[what]()
END
coverage() { python3 "$tmp/coverage.py" "$1" "$mnt" "$src" "$(value "$mnt" pids.server)" 2>&1; }
all="['complete', 5120, 5120, 0, 0, 41943040, True]"
is 'a stream that was read is covered' "$(coverage whole)" "None
$all"
is 'one that was read in part is not, and what is unknown is said' "$(coverage part)" "unknown 1000 4120
unknown 1000 4120 True
['unknown', 5120, 700, 0, 4420, 41943040, True]"
is 'what the loader says counts for more' "$(coverage said)" "['unknown', 5120, 640, 0, 4480, 41943040, False]
['unknown', 5120, 640, 0, 4480, 41943040, False]
$all"
is 'streams of workers have one report' "$(coverage workers)" "None
['unknown', 5120, 1704, 0, 3416, 41943040, False]
['unknown', 5120, 3416, 0, 1704, 41943040, False]
$all"
is 'so have those of 80 workers' "$(coverage many_workers)" "['unknown', 5120, 64, 0, 5056, 41943040, False]
['unknown', 5120, 128, 0, 4992, 41943040, False]
$all"
is 'ranks have one each, of one pass' "$(coverage ranks)" "['complete', 2560, 2560, 0, 0, 20971520, True]
['complete', 2560, 2560, 0, 0, 20971520, True]
True"
is 'reads at random cover nothing' "$(coverage random)" "True
None"
is 'a mapped stream is covered' "$(coverage mapped)" "True
$all"
is 'the next server goes on' "$(coverage killed)" "True
$all"
is 'records that cannot be read are not covered' "$(coverage stale)" "512
unknown True"
several='several plans have a list of epoch 20, rank 0 in progress: add digest=, the digest of the plan'
is 'of two plans, a report names one; a final report never changes, another one begins' "$(coverage several)" "$several
$several
['unknown', 5120, 30, 0, 5090, 41943040, True]
['unknown', 5120, 40, 0, 5080, 41943040, True]
['unknown', 5120, 50, 0, 5070, 41943040, True]
[0, 1, 2]"
is 'a list that nobody reads has no place' "$(coverage nobody)" \
    'there is no list of epoch 99, rank 0 in progress: request the plan with feed=yes, or read its stream'
is 'the feeder had nothing to do with it' "$(value "$mnt" feed.feeder)" 0
like 'status says it in words' "$(dealfs status --epoch 4 "$mnt" 2>&1)" '5,?120'
ok 'umount' dealfs umount "$mnt"
nothing_left 'nothing is left'
done_testing
