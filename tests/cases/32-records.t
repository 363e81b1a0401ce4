#!/bin/bash
# Lists of records: uploaded, shared by the nodes, shown, planned.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
world_default=ram=200M,peer_timeout=600

src=$tmp/src
# Three containers, one of three extents. Records are lines of 100 to 5,000 bytes, and a few of the large file.
mkdir -p "$src/c"
python3 - "$src" "$tmp" <<'END'
import io, os, random, struct, sys, tarfile
src, tmp = sys.argv[1:]
random.seed(1)
text, packed = [], b''
for number, name in enumerate(['c/a', 'c/b']):
    offset = 0
    with open(f'{src}/{name}', 'wb') as f:
        for i in range(100):
            n = random.choice([1, 7, 100, 5000])
            f.write(random.randbytes(n))
            text.append((name, number, offset, n, i % 10))
            offset += n
with open(f'{src}/c/large', 'wb') as f:
    f.truncate(130 << 20)
    for i in range(60):
        f.seek(offset := i * (2 << 20) + i * 1000)
        f.write(random.randbytes(3000))
        text.append(('c/large', 2, offset, 3000, 7))
os.mkdir(f'{src}/shards')
for number in range(6):
    with tarfile.open(f'{src}/shards/{number}.tar', 'w') as tar:
        for i in range(20):
            member = tarfile.TarInfo(f'{number}-{i}.jpg')
            member.size = 200000
            tar.addfile(member, io.BytesIO(random.randbytes(member.size)))
random.shuffle(text)
with open(f'{tmp}/text', 'w') as t, open(f'{tmp}/packed', 'wb') as p:
    for name, number, offset, n, label in text:
        t.write(f'{name}\t{offset}\t{n}\t{label}\n')
        p.write(struct.pack('<IIQI', number, n, offset, label))
END
plan_of() { # node, words
    dealfs plan "$tmp/node$1" epoch=1 ranks=3 batch=4 tail=short "${@:2}" 2>&1
}

settle "$src"
ok 'three nodes' world_mount 3
like 'records are put on node 1' "$(request 1 "$tmp/text" samples name=r form=records)" '^260.[0-9a-f]{32}$'
like 'and, packed, on node 2' "$(request 2 "$tmp/packed" samples name=p form=packed)" '^260.[0-9a-f]{32}$'
for i in 0 1 2; do
    ok "node $i shows them" cmp "$tmp/text" "$tmp/node$i/.dealfs/samples.d/r"
    ok "and packed" cmp "$tmp/packed" "$tmp/node$i/.dealfs/samples.d/r.packed"
done
ok 'packed ones are the same' cmp "$tmp/text" "$tmp/node0/.dealfs/samples.d/p"
is 'what a list is can be asked for' "$(request 2 /dev/null samples name=r action=look | cut -f1,3)" "260	-"
like 'a range behind its file is refused' "$({ cat "$tmp/text"; printf 'c/a\t0\t9999999\n'; } >"$tmp/bad"
    request 0 "$tmp/bad" samples name=bad form=records)" '^line 261: c/a: 9999999 bytes at offset 0 end beyond'
like 'format is of records' "$(request 0 "$tmp/text" samples name=bad format=tar)" 'needs .form=records'

# --- plans ---
sha() { plan_of "$1" samples="$2" reply=summary | grep -o '"digest":"[0-9a-f]*"'; }
first=$(sha 0 r)
like 'they are planned' "$first" digest
for i in 1 2; do is "the same on node $i" "$(sha $i r)" "$first"; done
isnt 'another format is another list' "$(request 0 "$tmp/text" samples name=f form=records format=lines | cut -f2)" \
    "$(request 0 "$tmp/text" samples name=r form=records | cut -f2)"
is 'and says so' "$(request 1 /dev/null samples name=f action=look | cut -f1,3)" '260	lines'
like 'a list that is not there' "$(request 1 /dev/null samples name=nobody action=look)" '`nobody`'
for mode in locality regular local; do
    is "mode=$mode: each record once" "$(for r in 0 1 2; do plan_of $r samples=r mode=$mode rank=$r; done | sort -n)" \
        "$(seq 0 259)"
done
# Echoes, and epochs that are resumed with skip= by other numbers of ranks.
python3 - "$tmp" "$(value "$tmp/node0" layout)" <<'END' >"$tmp/wrong"
import array, sys
from collections import Counter
tmp, layout = sys.argv[1:]
def lists(ranks, words):
    lists = []
    for rank in range(ranks):
        name = f'epoch=3,samples=r,ranks={ranks},batch=4,tail=short,rank={rank},layout={layout},reply=u32,{words}'
        with open(f'{tmp}/node{rank % 3}/.dealfs/plan/{name}', 'rb') as f:
            lists.append(array.array('I', f.read()))
    return lists
def count(lists):
    return sum((Counter(one) for one in lists), Counter())
once, twice = Counter(range(260)), Counter(list(range(260)) * 2)
for mode in 'locality', 'regular', 'local':
    for at in 'example', 'batch':
        if count(lists(3, f'mode={mode},echo=2,echo_at={at}')) != twice:
            print(mode, 'echo at', at)
    whole = lists(3, f'mode={mode}')
    for skip, ranks in (12, 1), (48, 3), (120, 6), (252, 3), (260, 1):
        read = count([one[:skip // 3] if skip < 260 else one for one in whole])
        nodes = '%2C'.join(str(r % 3) for r in range(ranks))
        if read + count(lists(ranks, f'mode={mode},skip={skip},nodes={nodes}')) != once:
            print(mode, 'resumed after', skip, 'by', ranks)
END
is 'echoes and resumed epochs: each record as often as it must be' "$(cat "$tmp/wrong")" ''
# With one rank per node, locality gives nearly each record of the large file to the node that owns its extent.
python3 - "$tmp" >"$tmp/wrong" <<'END'
import json, subprocess, sys
tmp = sys.argv[1]
records = [line.rstrip('\n').split('\t') for line in open(f'{tmp}/text')]
large = [i for i, r in enumerate(records) if r[0] == 'c/large']
lines = ''.join(f'{records[i][0]}\t{records[i][1]}\n' for i in large)
with open(f'{tmp}/node0/.dealfs/control', 'r+b', buffering=0) as f:
    f.write(b'where\n' + lines.encode())
    reply = b''.join(iter(lambda: f.read(1 << 20), b'')).decode()
owner = {i: line.split('\t')[1] for i, line in zip(large, reply.splitlines())}
extents = {}
for i in large:
    extents.setdefault(int(records[i][1]) >> 26, set()).add(owner[i])
owners = extents.values()
print(len(extents), all(len(o) == 1 and o <= {'0', '1', '2'} for o in owners), len(set.union(*owners)) > 1)
END
is 'records of one extent have one owner, those of other extents others' "$(cat "$tmp/wrong")" '2 True True'

# --- index: each owner reads what it owns from the source, and little of it crosses the network ---
at_nodes() { for i in 0 1 2; do value "$tmp/node$i" "$1"; done; }
sum() { awk '{ n += $1 } END { print n }'; }
before=$(at_nodes source.bytes | sum) crossed=$(value "$tmp/node0" bytes.peer)
shards=$(cat "$src"/shards/* | wc -c)
like 'an index on node 0' "$(dealfs index "$tmp/node0" shards --under shards)" '^120 records in 6 containers'
ok 'no byte is read twice from the source' test $(($(at_nodes source.bytes | sum) - before)) -le "$shards"
ok 'each node has read some' test "$(at_nodes source.bytes | grep -cvx 0)" = 3
ok 'headers alone cross the network' test $(($(value "$tmp/node0" bytes.peer) - crossed)) -le $((shards / 20))
is 'the list is the same on all nodes' \
    "$(for i in 0 1 2; do request $i /dev/null samples name=shards action=look; done | sort -u | wc -l)" 1

# --- a stream with bytes of other nodes, which die in the middle of it ---
for ((i = 0; i < 60; i++)); do printf 'c/large\t%d\t1048576\n' $((i * 2097152)); done >"$tmp/wide"
like 'a list of large records' "$(request 0 "$tmp/wide" samples name=wide form=records)" '^60'
is 'a reader goes on when servers die, its own among them' "$(python3 "$top_srcdir/tests/lib/streams.py" \
    survive "$tmp/node0" "$src" wide="$tmp/wide" \
    epoch=1,ranks=3,batch=4,rank=0,mode=regular,samples=wide \
    "$(pid_of 1 server) $(pid_of 2 server) $(pid_of 0 server)" 2>&1)" same

# --- kept ---
ok 'umount --world' world_umount
ok 'they are mounted again' world_mount 3
is 'the plan is the same' "$(sha 2 r)" "$first"
is 'one list is removed' "$(request 1 /dev/null samples name=r action=remove)" removed
like 'everywhere' "$(sha 0 r; plan_of 0 samples=r)" '`r`'
ok 'umount --world' world_umount
# --- many records: the list is mapped, and plans of it lie in files without a name ---
# RECORDS=10000000 makes more. What mode=local takes besides, and a reply, are 5 bytes for two records.
many=${RECORDS:-2000000} big=$tmp/big
mkdir "$big" "$tmp/many"
truncate -s $((many * 16)) "$big/tokens"
settle "$big"
many_mount() { dealfs mount -o "ram=64M,state=$tmp/many.state,$1" "$big" "$tmp/many" >"$tmp/many.log" 2>&1; }
many_plan() { dealfs plan "$tmp/many" epoch=1 ranks=4 batch=64 samples=tokens "$@" 2>&1; }
request_many() { exec 3<>"$tmp/many/.dealfs/control" && echo "$*" >&3 && cat <&3 && exec 3>&-; }
many_memory() { awk '/RssAnon/ { print $2 }' "/proc/$(value "$tmp/many" pids.server)/status"; }
ok 'a mount' many_mount request_memory=$((64 + many * 30 / 1000000))M
like 'two million records' "$(dealfs index --format fixed=16 "$tmp/many" tokens)" '000,000 records in 1 containers'
# The bytes of an upload are in a file.
cat >"$tmp/upload.py" <<'END'
import sys
mnt, server = sys.argv[1:]
def anonymous():
    with open(f'/proc/{server}/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('RssAnon'))
before = most = anonymous()
with open(f'{mnt}/.dealfs/samples.d/tokens.packed', 'rb') as packed, \
        open(f'{mnt}/.dealfs/control', 'r+b', buffering=0) as control:
    control.write(b'samples name=again form=packed format=fixed\n')
    while piece := packed.read(1 << 20):
        control.write(piece)
        most = max(most, anonymous())
    count, digest = control.read().split()[:2]
print(digest.decode(), most - before <= 8192 or f'{most - before} kB')
END
is 'as many are uploaded without memory' \
    "$(python3 "$tmp/upload.py" "$tmp/many" "$(value "$tmp/many" pids.server)" 2>&1)" \
    "$(request_many samples name=tokens action=look | cut -f2) True"
many_is_small() { [ "$(many_memory)" -le 16384 ]; }
ok 'nor is there more after it' many_is_small
is 'and removed' "$(request_many samples name=again action=remove)" removed
ok 'it is unmounted' dealfs umount "$tmp/many"
ok 'at most 24 bytes per record on disk' test "$(stat -c %s "$tmp/many.state/samples/tokens")" -le $((24 * many))
ok 'and mounted again' many_mount request_memory=$((many * 5 / 2000000))M
ok 'the list is mapped: the memory of the server is less than the list' many_is_small
for mode in locality local; do
    like "mode=$mode is planned with less memory than a list takes" "$(many_plan mode=$mode reply=summary)" \
        "\"samples\":$many,"
    is 'each record once' "$(for r in 0 1 2 3; do many_plan mode=$mode reply=u32 rank=$r; done |
        python3 -c 'import array, sys
print(sorted(array.array("I", sys.stdin.buffer.read())) == list(range(int(sys.argv[1]))))' "$many")" True
done
ok 'and still' wait_for many_is_small
like 'more than 16 bytes per record is refused' "$(many_plan echo=4 echo_at=batch reply=summary)" \
    'request_memory=.*plans of record lists may also use .* in files, 16 bytes per record'
ok 'it is unmounted again' dealfs umount "$tmp/many"
# --- read ahead: as far as the loader says it is ---
fed=$tmp/fed
mkdir "$fed" "$tmp/node9"
head -c $((16 << 20)) /dev/urandom >"$fed/rows"
settle "$fed"
dealfs mount -o "ram=64M,feed=1M,state=$tmp/ahead.state" "$fed" "$tmp/node9" >"$tmp/ahead.log" 2>&1
like 'a list of 1,024 records' "$(dealfs index --format fixed=16384 "$tmp/node9" rows)" '^1,024 records'
cat >"$tmp/ahead.py" <<'END'
import array, ctypes, json, mmap, os, sys
from tap import wait_for
mnt = sys.argv[1]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
COUNT, ROW, AHEAD = 1024, 16384, 64  # feed=1M are 64 rows
def ask(words):
    with open(f'{mnt}/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(words.encode())
        return f.read()
def cached():
    """Which rows are in the page cache."""
    with open(f'{mnt}/rows', 'rb') as f:
        address = libc.mmap(None, ctypes.c_size_t(COUNT * ROW), mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(),
                            ctypes.c_long(0))
        pages = (ctypes.c_ubyte * (COUNT * ROW // 4096))()
        libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(COUNT * ROW), pages)
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(COUNT * ROW))
        return {i for i in range(COUNT) if all(page & 1 for page in pages[i * 4:i * 4 + 4])}
def drop():
    with open(f'{mnt}/rows', 'rb') as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
def is_ahead(begin):
    """Rows `begin` and after of the list are fed, to the end of the window, and those behind it are not. The kernel may
    reclaim a page soon after it was fed, so all looks count together."""
    seen, wanted, further = set(), set(rows[begin:begin + AHEAD]), set(rows[begin + AHEAD:])
    def fed():
        seen.update(cached())
        return wanted <= seen
    print('fed:', wait_for(fed, pause=0.01), 'further:', len(seen & further) > 0)
def at(position):
    ask(f'at epoch=1 rank=0 position={position}\n')
def end(epoch=1):
    report = json.loads(ask(f'end epoch={epoch} rank=0\n'))
    print(*(report[key] for key in ('coverage', 'samples', 'read', 'unread', 'unsure', 'bytes')), report['strange'])
drop()
rows = array.array('I', ask('plan epoch=1 ranks=1 batch=8 rank=0 samples=rows reply=u32 feed=yes\n')).tolist()
is_ahead(0)
at(200)
is_ahead(200)
drop()
at(60)  # back: what was dropped is fed again
is_ahead(60)
at(COUNT)
end()
ask('plan epoch=5 ranks=1 batch=8 rank=0 samples=rows reply=u32 feed=yes\n')
open(f'{mnt}/rows', 'rb').read(1 << 20)
end(5)
END
PYTHONPATH=$top_srcdir/tests/lib python3 -B "$tmp/ahead.py" "$tmp/node9" >"$tmp/ahead.said" 2>&1
is 'records are read ahead of their loader, and what it says that it has read is read' "$(cat "$tmp/ahead.said")" \
    "$(printf '%s\n' 'fed: True further: False'{,,} 'complete 1024 1024 0 0 16777216 []' \
        'unknown 1024 0 0 1024 16777216 []')"
like 'who is at no list is told so' "$(request 9 /dev/null at epoch=9 rank=0 position=1)" 'epoch 9, rank 0'
ok 'it is unmounted' dealfs umount "$tmp/node9"
nothing_left 'nothing is left'
done_testing
