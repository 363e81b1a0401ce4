#!/bin/bash
# `dealfs index`: the records of containers made by Python's tarfile, NumPy and from the specifications are those that a
# slow reading in Python finds. What is broken, compressed or mixed is refused with its name and offset.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require tar gzip
src=$tmp/src mnt=$tmp/mnt
mkdir -p "$src"
cat >"$tmp/make.py" <<'EOF'
import io, json, os, random, subprocess, sys, tarfile
from tfrecords import framed
src, lists = sys.argv[1:3]
rng = random.Random(20)
SIZES = (0, 1, 511, 512, 513, 5000)

def quoted(name):
    return ''.join(chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in '._-/:+@') else f'%{b:02X}'
                   for b in os.fsencode(name))

def expect(kind, path, records):
    with open(f'{lists}/{kind}', 'a') as f:
        for offset, length, *key in records:
            f.write('\t'.join([quoted(path), str(offset), str(length), *(['', quoted(key[0])] if key else [])]) + '\n')

def key_of(name):
    folder, slash, base = name.rpartition('/')
    dot = base.find('.')
    return folder + slash + (base[:dot] if dot > 0 else base)

def tar_records(path):
    """Members one after the other; where one begins tarfile does not say, but where the one before ended."""
    records, end = [], 0
    with tarfile.open(path, encoding='utf-8', errors='surrogateescape') as tar:
        for m in tar:
            begin, end = end, m.offset_data + (-(-stored(m) // 512) * 512 if m.isreg() else 0)
            if m.isreg():
                if records and records[-1][2] == key_of(m.name):
                    records[-1][1] = end - records[-1][0]
                else:
                    records.append([begin, end - begin, key_of(m.name)])
    return records

def stored(m):
    return sum(n for _, n in m.sparse) if m.sparse else m.size

def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))

for number, (kind, form) in enumerate((('ustar', tarfile.USTAR_FORMAT), ('pax', tarfile.PAX_FORMAT),
                                       ('gnu', tarfile.GNU_FORMAT))):
    os.makedirs(f'{src}/tar/a b', exist_ok=True)
    with tarfile.open(f'{src}/tar/a b/{kind}.tar', 'w', format=form) as tar:
        folder = tarfile.TarInfo('shard.d')
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for i, size in enumerate(SIZES):
            add(tar, f'shard.d/{kind}{i:03}.jpg', rng.randbytes(size))
            add(tar, f'shard.d/{kind}{i:03}.seg.png', rng.randbytes(rng.choice(SIZES)))
            add(tar, f'shard.d/{kind}{i:03}.json', b'{}')
        link = tarfile.TarInfo('shard.d/link.txt')
        link.type, link.linkname = tarfile.SYMTYPE, 'x' * 90
        tar.addfile(link)
        for name in ('plain', '.hidden', 'a.b/plain', 'n\u00e4me\t%.txt'):
            add(tar, f'{kind}/{name}', b'x')
        if kind != 'ustar':
            add(tar, f'{kind}/' + 'n' * 255, b'long')
            add(tar, f'{kind}/' + 'd' * 200 + '/' + 'm' * 250 + '.txt', b'long')
            add(tar, f'{kind}/' + 'd' * 200 + '/' + 'm' * 250 + '.cls', b'long')
            add(tar, f'{kind}/last.txt', b'')
with open(f'{lists}/k.holes', 'wb') as f:
    for i in range(40):  # more than fit into one block of the map
        f.seek(i << 17)
        f.write(rng.randbytes(700))
    f.truncate(6 << 20)
for form in 'oldgnu', 'gnu', 'posix':
    subprocess.run(['tar', '-C', lists, '--sparse', f'--format={form}', '-cf', f'{src}/tar/a b/tar-{form}.tar',
                    'k.holes'], check=True)
os.makedirs(f'{src}/tar/large', exist_ok=True)
path = f'{src}/tar/large/hole.tar'
with open(path, 'wb') as f:  # beyond 4 GiB by a hole: a member that is no record's, and one behind it
    big = tarfile.TarInfo('big.bin')
    big.size, big.type = (5 << 30) + 1, b'V'
    f.write(big.tobuf(tarfile.GNU_FORMAT))
    f.seek(512 + (5 << 30) + 512)
    small = tarfile.TarInfo('small.bin')
    small.size = 3
    f.write(small.tobuf(tarfile.GNU_FORMAT) + b'abc' + bytes(509) + bytes(1024))
for folder in sorted(os.listdir(f'{src}/tar')):
    for name in sorted(os.listdir(f'{src}/tar/{folder}')):
        if folder != 'large':
            expect('tar', f'tar/{folder}/{name}', tar_records(f'{src}/tar/{folder}/{name}'))
expect('tar', 'tar/large/hole.tar', [(1024 + (5 << 30), 1024, 'small')])

os.makedirs(f'{src}/tfrecord')
for name in ('a', 'b'):
    records, at = [], 0
    with open(f'{src}/tfrecord/{name}.tfrecord', 'wb') as f:
        for size in (0, 1, 511, 512, 513, 70000, 300000):
            f.write(framed(rng.randbytes(size)))
            records.append((at, size + 16))
            at += size + 16
    expect('tfrecord', f'tfrecord/{name}.tfrecord', records)

os.makedirs(f'{src}/lines')
for name, last in (('a.jsonl', '\n'), ('b.txt', '')):
    texts = [{'text': 'w\u00f6rd ' * rng.randrange(400)} for _ in range(3000)]
    lines = [json.dumps(text, ensure_ascii=False) for text in texts] + ['', 'z']
    data = ('\n'.join(lines) + last).encode()
    open(f'{src}/lines/{name}', 'wb').write(data)
    records, at = [], 0
    for line in data.splitlines(keepends=True):
        records.append((at, f'{len(line)}' + ('' if line.endswith(b'\n') else '+')))
        at += len(line)
    expect('lines', f'lines/{name}', records)
open(f'{src}/lines/empty.txt', 'wb')

os.makedirs(f'{src}/fixed')
open(f'{src}/fixed/tokens.bin', 'wb').write(rng.randbytes(400 * 100))
expect('fixed', 'fixed/tokens.bin', [(i * 400, 400) for i in range(100)])
try:
    import numpy
    os.makedirs(f'{src}/npy')
    for name, array in (('a', numpy.arange(60, dtype='<f4').reshape(5, 3, 4)), ('b', numpy.arange(7, dtype='u1')),
                        ('c', numpy.array(['ab', 'c'])), ('d', numpy.zeros((3, 2), 'M8[ns]'))):
        path = f'{src}/npy/{name}.npy'
        numpy.save(path, array)
        begin, row = os.path.getsize(path) - array.nbytes, array.nbytes // len(array)
        expect('npy', f'npy/{name}.npy', [(begin + i * row, row) for i in range(len(array))])
    numpy.save(f'{src}/fortran.npy', numpy.asfortranarray(numpy.zeros((3, 4))))
except ImportError:
    print('no numpy')

good = open(f'{src}/tar/a b/gnu.tar', 'rb').read()
os.makedirs(f'{src}/bad')
open(f'{src}/bad/cut.tar', 'wb').write(good[:9000])
open(f'{src}/bad/checksum.tar', 'wb').write(good[:512] + b'X' + good[513:])
open(f'{src}/bad/twice.tar', 'wb').write(good + good)
with tarfile.open(f'{src}/bad/global.tar', 'w', format=tarfile.PAX_FORMAT, pax_headers={'comment': 'x'}) as tar:
    add(tar, 'a.txt', b'x')
four = tarfile.TarInfo('huge.bin')
four.size = 4 << 30
with open(f'{src}/bad/huge.tar', 'wb') as f:
    f.write(four.tobuf(tarfile.GNU_FORMAT))
    f.truncate(512 + (4 << 30) + 1024)
open(f'{src}/bad/unknown.bin', 'wb').write(b'\x01\x00\x02' * 100)
EOF
numpy=$(PYTHONPATH=$top_srcdir/tests/lib python3 "$tmp/make.py" "$src" "$tmp") ||
    bail_out 'the containers cannot be made'
gzip -c "$src/tfrecord/a.tfrecord" >"$src/bad/zipped.tfrecord.gz"
mount_up -o ram=200M "$src" "$mnt"

index() { dealfs index "$mnt" --output "$tmp/$1.got" --under "$1" "${@:2}"; }
for kind in tar tfrecord lines; do
    ok "$kind" index $kind
    ok "$kind: as Python reads it" diff "$tmp/$kind" "$tmp/$kind.got"
    ok "$kind: named, by one thread" index $kind --format $kind -j1
    ok "$kind: the same list" diff "$tmp/$kind" "$tmp/$kind.got"
done
ok 'rows of 400 bytes' index fixed --format fixed=400
ok 'as Python reads them' diff "$tmp/fixed" "$tmp/fixed.got"
if [ -z "$numpy" ]; then
    ok '.npy' index npy
    ok '.npy: as NumPy lays it out' diff "$tmp/npy" "$tmp/npy.got"
    one_line 'an array in another order' 'fortran.npy: offset 0: .* Fortran' \
        dealfs index "$mnt" --output - --match fortran.npy
else
    skip 3 'python3-numpy is not installed'
fi
is 'by a glob, to standard output' "$(dealfs index "$mnt" --output - --match 'tfrecord/b*' 2>/dev/null)" \
    "$(grep /b.tfrecord "$tmp/tfrecord")"

mkfifo "$tmp/fifo"
background cat "$tmp/fifo" >"$tmp/piped"
ok 'into a fifo' dealfs index "$mnt" --output "$tmp/fifo" --match 'tfrecord/b*'
ok 'which stays one' test -p "$tmp/fifo"
[ -p "$tmp/fifo" ] && wait $!
is 'and passes all on' "$(cat "$tmp/piped")" "$(dealfs index "$mnt" --output - --match 'tfrecord/b*' 2>/dev/null)"
refused() { one_line "$1" "$2" dealfs index "$mnt" --output "$tmp/none.got" --match "$3" "${@:4}"; }
refused 'a tar that is cut off' 'bad/cut.tar: offset [0-9]+: .* beyond the end of the file' cut.tar
refused 'a header that was changed' 'bad/checksum.tar: offset 512: the checksum' checksum.tar --format tar
refused 'two tars in one file' 'bad/twice.tar: offset [0-9]+: data after the end' twice.tar
refused 'a pax global header' 'bad/global.tar: offset 0: a pax global header' global.tar
refused 'a record of 4 GiB' 'bad/huge.tar: offset 0: the record huge has 4294967808 bytes' huge.tar
refused 'a compressed file' 'zipped.tfrecord.gz: compressed .gzip.' '*.gz'
refused 'an unknown format' 'unknown.bin: neither tar, TFRecord' unknown.bin
refused 'two formats' 'this container is .*, the earlier ones are' '**/[ab].[tj]*'
refused 'a row that does not fit' 'tokens.bin: offset 39996: the last row' tokens.bin --format fixed=101
ok 'a list that failed is not written' test ! -e "$tmp/none.got"
ok 'broken ones are left out' dealfs index "$mnt" --output "$tmp/skipped" --under "$mnt/" --match '*.tar' --skip-broken
ok 'and only they' diff "$tmp/tar" "$tmp/skipped"
# --- more records than a list may have; the end by a signal ---
python3 - "$src/bad" <<'EOF'
import sys
for name, rows in ('endless', (1 << 40) - 128), ('long', 52_000_000):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows},), }}".ljust(118).encode()
    with open(f'{sys.argv[1]}/{name}.npy', 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header)
        f.truncate(128 + rows)
EOF
ok 'umount' dealfs umount "$mnt"
mount_up -o ram=200M "$src" "$mnt"
refused 'an array of 1 TiB' 'endless.npy: more than 52428800 records' endless.npy
dealfs index "$mnt" long --match long.npy >"$tmp/long" 2>&1 &
pid=$!
written() { n=$(sed -n 's/^wchar: //p' "/proc/$pid/io" 2>/dev/null) && bytes=${n:-$bytes}; }
writes() { written && [ "$bytes" -gt 8000000 ]; }
is_over() { ! written; }
bytes=0
ok 'many records are found' wait_for writes
kill -TERM $pid
ok 'a signal ends that' wait_for is_over
ok 'before all 1,040,000,000 bytes are written' test "$bytes" -lt 600000000
wait $pid
is 'with status 1' "$?" 1
like 'and a message' "$(cat "$tmp/long")" 'index .*: interrupted'
ok 'no list is uploaded' test ! -e "$mnt/.dealfs/samples.d/long"

# --- the server dies during the request ---
seq 500000 >"$src/bad/many.txt"
ok 'umount' dealfs umount "$mnt"
mount_up -o ram=200M "$src" "$mnt"
dealfs index "$mnt" many --match many.txt >"$tmp/many" 2>&1 &
pid=$!
requests() { [[ "$(readlink /proc/$pid/fd/*)" == *"$mnt/.dealfs/control"* ]]; }
ok 'a list is being uploaded' wait_for requests
kill -KILL "$(value "$mnt" pids.server)"
wait $pid
is 'the request is repeated' "$?" 0
is 'and the list is there' "$(wc -l <"$mnt/.dealfs/samples.d/many")" 500000

exits 2 'a NAME is needed' dealfs index "$mnt"
exits 2 'rows have bytes' dealfs index "$mnt" x --format fixed
exits 2 'of known formats' dealfs index "$mnt" x --format mds
# --- uploaded, and read by the Python package ---
for kind in tar tfrecord lines; do
    like "$kind: the list is uploaded" "$(dealfs index "$mnt" "$kind" --under "$kind")" \
        "^[0-9,]+ records in [0-9] containers of format $kind"
    is "$kind: it has these records" "$(sed 's/ /%20/g; s/%25/%/g' "$mnt/.dealfs/samples.d/$kind")" \
        "$(cut -f1-3 "$tmp/$kind")"
done
one_line 'a name that is none' 'index .*: .*name' dealfs index "$mnt" .hidden --under lines
is 'a plan deals them' "$(dealfs plan "$mnt" epoch=1 ranks=2 batch=4 samples=tfrecord rank=0 | wc -l)" 7
python=${PYTHON:-/usr/bin/python3}
if ! $python -c 'import torch, numpy' 2>/dev/null; then
    skip 1 'python3-torch or python3-numpy is not installed'
    done_testing
fi
cat >"$tmp/read.py" <<'EOF'
import os, sys, tarfile, urllib.parse
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, Subset
sys.path.insert(0, sys.argv[3])
from dealfs.torch import Records, Sampler
src, mnt = sys.argv[1:3]

def expected(kind):
    for line in open(f'{mnt}/.dealfs/samples.d/{kind}'):
        path, offset, length = line.rstrip('\n').split('\t')[:3]
        with open(f'{src}/{urllib.parse.unquote(path)}', 'rb') as f:
            f.seek(int(offset))
            yield f.read(int(length.rstrip('+')))

def length_of(data):
    return len(data)

def first(batch):
    return batch

def check(what, got, wanted):
    if list(got) != list(wanted):
        sys.exit(f'{what}: {str(list(got))[:200]}, and not {str(list(wanted))[:200]}')

def main():
    for kind in 'tar', 'tfrecord', 'lines':
        wanted = list(expected(kind))
        data = Records(mnt, kind, format=None)
        check(f'{kind}: one by one', (data[i] for i in range(len(data))), wanted)
        order = torch.randperm(len(data)).tolist() + [0, 0, -1]
        for threads in 0, 3:
            data.threads = threads
            check(f'{kind}: a batch', data.__getitems__(order), (wanted[i] for i in order))
    calls, pread = [], os.pread
    os.pread = lambda *a: calls.append(a) or pread(*a)
    Records(mnt, 'lines')[list(range(64))]
    os.pread = pread
    check('neighbours are read at once', [len(calls)], [1])

    shards, members_read = {}, 0
    for data in Records(mnt, 'tar'):
        shards.setdefault(data.pop('__key__'), []).append(data)
    for name in os.listdir(f'{src}/tar/a b'):
        with tarfile.open(f'{src}/tar/a b/{name}') as tar:
            for m in tar if name in ('ustar.tar', 'pax.tar', 'gnu.tar') else ():
                folder, slash, base = m.name.rpartition('/')
                dot = base.find('.') if base.find('.') > 0 else len(base)
                if m.isreg():
                    content = tar.extractfile(m).read()
                    assert any(one.get(base[dot + 1:]) == content for one in shards[folder + slash + base[:dot]]), m
                    members_read += 1
    assert members_read > 60, members_read

    data = Records(mnt, 'lines', length_of, threads=2)
    lengths = [len(line.rstrip(b'\n')) for line in expected('lines')]
    for method, workers in ('fork', 2), ('spawn', 1):
        loader = DataLoader(data, 64, num_workers=workers, multiprocessing_context=method, persistent_workers=True)
        for epoch in 0, 1:
            check(f'{method}, epoch {epoch}', torch.cat(list(loader)).tolist(), lengths)
    loader = DataLoader(data, batch_size=None, num_workers=1, collate_fn=first,
                        sampler=BatchSampler(SequentialSampler(data), 100, drop_last=False))
    check('whole batches', (n for batch in loader for n in batch), lengths)
    check('a Subset', torch.cat(list(DataLoader(Subset(data, [5, 3]), 2))).tolist(), [lengths[5], lengths[3]])
    sampler = Sampler(data, batch_size=10, shuffle=False)
    sampler.set_epoch(0)
    check('by the sampler', torch.cat(list(DataLoader(data, 10, sampler=sampler))).tolist(), lengths)

    files = Records(mnt, 'all')
    small = [i for i in range(len(files)) if os.path.getsize(files.path(i)) < 1 << 20]
    check('files', (files[i] for i in small), (open(files.path(i), 'rb').read() for i in small))
    folders = [os.path.relpath(files.path(i), mnt).split('/')[0] for i in range(len(files))]
    check('their labels', files.targets.tolist(), (sorted(set(folders)).index(folder) for folder in folders))
    with open(f'{mnt}/.dealfs/control', 'r+b', buffering=0) as control:
        control.write(b'samples name=labelled form=records\nlines/a.jsonl\t0\t4\t7\nlines/a.jsonl\t4\t4\n')
        control.read()
    check('labels', Records(mnt, 'labelled').targets.tolist(), [7, -1])
    check('pairs', [label for _, label in Records(mnt, 'labelled')[[0, 1]]], [7, -1])

if __name__ == '__main__':
    main()
EOF
ok 'Records gives what lies in the source' "$python" "$tmp/read.py" "$src" "$mnt" "$top_srcdir/etc/python"
done_testing
