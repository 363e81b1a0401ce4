#!/bin/bash
# PyTorch's loaders over lists of records: which process reads what, with how many system calls and how much memory.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

python=/usr/bin/python3
$python -c 'import torch, numpy' 2>/dev/null || plan_skip 'python3-torch or python3-numpy is not installed'
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export PYTHONPATH=$top_srcdir/etc/python:$top_srcdir/tests/lib:$top_srcdir/tests/etc/python
src=$tmp/src mnt=$tmp/mnt
python3 - "$src" <<'EOF'
import os, struct, sys
os.makedirs(f'{sys.argv[1]}/words')
os.makedirs(f'{sys.argv[1]}/files')
with open(f'{sys.argv[1]}/many.bin', 'wb') as f:
    for at in range(0, 3 << 20, 1 << 16):
        f.write(struct.pack('<65536I', *range(at, at + (1 << 16))))
for number, last in ((0, '\n'), (1, '')):
    with open(f'{sys.argv[1]}/words/{number}.txt', 'w') as f:
        f.write('\n'.join(f'{i} ' + 'x' * (i * 7 % 300) for i in range(number * 500, number * 500 + 500)) + last)
for i in range(300):
    with open(f'{sys.argv[1]}/files/{i:03}', 'w') as f:
        f.write(f'{i}' if i else '')
EOF
mount_up -o ram=64M "$src" "$mnt"
like 'a list of millions' "$(dealfs index "$mnt" many --match many.bin --format fixed=4)" '^3,145,728 records'
like 'a list of lines' "$(dealfs index "$mnt" words --under words)" '^1,000 records .* of format lines'
find "$src/files" -type f -printf 'files/%P\n' | sort >"$tmp/files"
request_put() { exec 3<>"$mnt/.dealfs/control" && { echo "$1" && cat "$2"; } >&3 && cat <&3; }
like 'a list of files' "$(request_put 'samples name=files' "$tmp/files")" '^300'

cat >"$tmp/loaders.py" <<'EOF'
import copy, json, multiprocessing, os, pickle, re, sys, warnings
import numpy
import torch
from torch.utils.data import BatchSampler, DataLoader, Subset
from dealfs import Mount
from dealfs.torch import Dealt, Records, Sampler
from restoring import StatefulDataLoader
from tap import done_testing, equal, ok
mnt = sys.argv[1]

class Counting(Records):
    """A batch, and how many reads it cost."""
    def __getitems__(self, indices):
        calls, pread = [], os.pread
        os.pread = lambda *a: calls.append(a) or pread(*a)
        try:
            return super().__getitems__(indices), len(calls)
        finally:
            os.pread = pread

def number(data):
    return int.from_bytes(data, 'little')

def first_word(data):
    return int(data.split()[0])

def as_is(batch):
    return batch

def anonymous(pid):
    """KiB that no file has, and this process alone."""
    with open(f'/proc/{pid}/smaps') as f:
        return sum(min(int(a), int(d)) for d, a in re.findall(r'Private_Dirty: +(\d+) kB.*?Anonymous: +(\d+) kB',
                                                              f.read(), re.S))

def held(data, order, pipe):
    """What a process holds that reads some batches."""
    for at in range(0, 640, 64):
        data.__getitems__(order[at:at + 64])
    pipe.send(anonymous(os.getpid()))

def memory(method, data, order):
    context = multiprocessing.get_context(method)
    mine, theirs = context.Pipe(False)
    process = context.Process(target=held, args=(data, order[:640], theirs))
    process.start()
    theirs.close()  # a process that dies is not waited for
    found = mine.recv()
    process.join()
    return found

def integers():
    one = Dealt(7, 3, 5, 'epoch=3,rank=0')
    for same in [copy.deepcopy(one)] + [pickle.loads(pickle.dumps(one, p)) for p in range(2, 6)]:
        equal((same, same.epoch, same.position, same.plan, type(same)), (7, 3, 5, one.plan, Dealt), 'a copy')
    equal([one, one + 1, {7: 'x'}[one], json.dumps([one]), str(one), f'{one:03}', 'abcdefgh'[one], hash(one), one < 8],
          [7, 8, 'x', '[7]', '7', '007', 'h', hash(7), True], 'an int like others')
    equal((torch.tensor([one]).tolist(), numpy.array([one]).tolist(), numpy.arange(9)[one], isinstance(one, int)),
          ([7], [7], 7, True), 'also to arrays')
    many = [Dealt(i, 3, i, 'epoch=3,rank=0,' + 'x' * 300) for i in range(64)]
    ok(len(pickle.dumps(many)) < 64 * 24 + 500, 'a batch of them is short to send')

def orders(sampler, epochs):
    mount = Mount(mnt)
    return [mount.plan(rank=sampler.rank, **{**sampler.keys, 'epoch': epoch, 'ranks': sampler.num_replicas,
                                             'batch': sampler.batch_size}).tolist() for epoch in range(epochs)]

def report():
    """Of the list that was read last."""
    with open(os.path.join(Mount(mnt).control, 'epochs')) as f:
        last = max(json.load(f), key=lambda report: report['asked'])
    return last['coverage'], last['read'], last['samples'], last['stopped']

def loaders():
    data = Counting(mnt, 'words', first_word)
    sampler = Sampler(data, 2, 1, batch_size=32)
    wanted = orders(sampler, 2)
    for method in 'fork', 'spawn':
        loader = DataLoader(data, sampler=BatchSampler(sampler, 32, False), batch_size=None, collate_fn=as_is,
                            num_workers=2, multiprocessing_context=method, persistent_workers=True)
        for epoch in 0, 1:
            while True:  # again where the feeder was late at the end
                sampler.set_epoch(epoch)
                batches = list(sampler.over(loader))
                if report()[0] != 'unknown':
                    break
            equal(sum((batch for batch, _ in batches), []), wanted[epoch], f'{method}: epoch {epoch} in its order')
            equal({reads for _, reads in batches}, {1}, f'{method}: a system call per batch')
            whole = 'complete', len(wanted[epoch]), len(wanted[epoch]), False
            equal(report(), whole, f'{method}: the mount knows it')
    for threads in 0, 3:
        plain = Records(mnt, 'words', first_word, threads=threads)
        for keys in {'batch_size': 32, 'sampler': sampler}, {'batch_sampler': BatchSampler(sampler, 32, False)}:
            loader = DataLoader(plain, **keys)
            equal(torch.cat(list(sampler.over(loader))).tolist(), wanted[1], f'{threads} threads: {list(keys)[0]}')
    loader = DataLoader(plain, 32, sampler=sampler, num_workers=2)
    for number, _ in enumerate(sampler.over(loader)):
        if number == 4:
            break
    sampler.set_epoch(1)
    equal(report(), ('unknown', 5 * 32, len(wanted[1]), True), 'and how many samples a trainer that stopped had')
    loader = DataLoader(Subset(plain, range(600, 700)), 30)
    equal(torch.cat(list(loader)).tolist(), list(range(600, 700)), 'a Subset')
    files = Records(mnt, 'files', lambda data: int(data or 0))
    sampler = Sampler(files, batch_size=32)
    sampler.set_epoch(0)
    equal(files[list(sampler)], orders(sampler, 1)[0], 'a list of files')
    equal([files[299], files[-300], len(files)], [299, 0, 300], 'its ends')

def going_on():
    data = Records(mnt, 'words', first_word)
    sampler = Sampler(data, batch_size=40)
    wanted = orders(sampler, 1)[0]
    sampler.set_epoch(0)
    loader = StatefulDataLoader(data, 40, sampler=sampler, num_workers=2)
    seen = []
    for numbers in sampler.over(loader):
        seen += numbers.tolist()
        if len(seen) == 400:
            break
    state = loader.state_dict()
    sampler = Sampler(data, batch_size=40)
    loader = StatefulDataLoader(data, 40, sampler=sampler, num_workers=2)
    loader.load_state_dict(state)
    rest = torch.cat(list(sampler.over(loader))).tolist()
    equal(seen + rest, wanted, 'a loader that was stopped and goes on')

def millions():
    many, few = Records(mnt, 'many', number), Records(mnt, 'words', first_word)
    lists = []
    for data in many, few:
        sampler = Sampler(data, batch_size=64)
        sampler.set_epoch(0)
        lists.append([int(i) for i, _ in zip(sampler, range(640))])  # streams of tiny records are slow
    equal(many[lists[0]], lists[0], 'some of millions')
    for method in 'fork', 'spawn':
        more = memory(method, many, lists[0]) - memory(method, few, lists[1])
        ok(more < 1024, f'{method}: {more} KiB more for {len(many)} records than for {len(few)}')

def fallbacks():
    """Records read elsewhere than in the stream say so."""
    data = Records(mnt, 'words', first_word)
    for plan in 'epoch=3,ranks=1,batch=4,rank=0,samples=words,no=key', 'epoch=3,ranks=1,batch=4,rank=0,samples=many':
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter('always')
            equal(data[[Dealt(i, 3, i, plan) for i in range(4)]], [0, 1, 2, 3], 'without a stream')
            equal(data[[Dealt(i, 3, i, plan) for i in range(4, 8)]], [4, 5, 6, 7], 'and the next batch')
        equal([plan in str(w.message) for w in said], [True], 'one warning, which names the plan')

def errors():
    try:
        Records(mnt, 'imagefolder')
        ok(False, 'no images')
    except ValueError as error:
        ok("samples='all'" in str(error), error)
    try:
        Sampler(range(302), batch_size=1, mount=mnt).set_epoch(0)
        ok(False, 'not ImageFolder\'s')
    except OSError as error:
        ok("0 samples" in str(error) and '300' not in str(error), error)

def main():
    integers()
    millions()  # forks, and there are no threads yet
    loaders()
    going_on()
    fallbacks()
    errors()
    sys.exit(done_testing())

if __name__ == '__main__':
    main()
EOF
ok 'loaders' $python "$tmp/loaders.py" "$mnt"
diag "$(grep -v '^ok' "$tmp/.output")"
# --- the guide ---
cat >"$tmp/containers.py" <<'EOF'
import io, json, os, sys, tarfile
from tfrecords import framed
for number in range(3):
    with tarfile.open(f'{sys.argv[1]}/tar/{number}.tar', 'w') as tar:
        for i in range(number * 50, number * 50 + 50):
            for end in 'jpg', 'cls':
                info = tarfile.TarInfo(f'{number}/{i}.{end}')
                data = f'{i} {end}'.encode() * (i % 7)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    with open(f'{sys.argv[1]}/tfrecord/{number}', 'wb') as f:
        for i in range(number * 50, number * 50 + 50):
            data = b'%d ' % i * (i + 1)
            f.write(framed(data))
    with open(f'{sys.argv[1]}/lines/{number}', 'w') as f:
        f.write('\n'.join(json.dumps({'number': i, 'text': 'x' * i}) for i in range(number * 50, number * 50 + 50)))
EOF
# The blocks of the guide, which are run one after the other with the list of their format.
cat >"$tmp/guide.py" <<'EOF'
import json, os, re, struct, sys, tarfile
import numpy
import dealfs.torch
mnt, guide = sys.argv[1:]
from dealfs import Mount
from tap import done_testing, equal, ok
from tfrecords import crc
mount = Mount(mnt)
text = open(guide).read().partition('## Loaders that take paths')[2]
blocks = re.findall(r'^```python\n(.*?)^```', text, re.M | re.S)
begin, tar, lines, array = blocks

def run(block, name, **more):
    """What the names of a block are after it, on the streams of a list."""
    names = {'epoch': 3, **more}
    exec(begin.replace('/mnt/laion', mnt).replace("'train'", repr(name)).replace('64', '16'), names)
    exec(block.replace('64', '16').replace('1024', '256'), names)
    return names

def listed(name):
    return mount.plan(epoch=3, ranks=1, batch=16, rank=0, samples=name).tolist()

def samples_of(path):
    """WebDataset's: neighbours whose names are equal up to the first dot after the last slash."""
    with tarfile.open(path, 'r|') as members:
        key = None
        for member in members:
            folder, slash, base = member.name.rpartition('/')
            mine = folder + slash + base.partition('.')[0]
            if mine != key:
                key, found = mine, []
                yield mine, found
            found.append((base.partition('.')[2], members.extractfile(member).read()))

def tfrecords_of(path):
    with open(path, 'rb') as f:
        while head := f.read(12):
            size = head[:8]
            assert crc(size) == head[8:], 'the checksum of a length'
            data = f.read(struct.unpack('<Q', size)[0])
            assert crc(data) == f.read(4), 'the checksum of data'
            yield int(data.split()[0])

def dealt(paths, batch, read):
    """What a DataLoader makes of the workers' streams."""
    streams, found = [list(read(path)) for path in paths], []
    while any(streams):
        for stream in streams:
            found += stream[:batch]
            del stream[:batch]
    return found

names = run(tar, 'tar')
samples = dealt(names['paths'], 16, samples_of)
equal([int(key.split('/')[1]) for key, _ in samples], listed('tar'), 'tar: the epoch of the plan')
equal([found for _, found in samples], [[(end, f'{i} {end}'.encode() * (i % 7)) for end in ('jpg', 'cls')]
                                        for i in listed('tar')], 'tar: whole samples')
names = run('', 'tfrecord')
equal(dealt(names['paths'], 16, tfrecords_of), listed('tfrecord'), 'TFRecord: the epoch of the plan')
def report():
    with open(os.path.join(mount.control, 'epochs')) as f:
        return max(json.load(f), key=lambda report: report['asked'])

while True:  # again where the feeder was late at the end
    seen = []
    names = run(lines.replace('sampler.step()', 'sampler.step(); seen += batch["number"].tolist()'), 'lines', seen=seen)
    finished = names['sampler'].state_dict()['finished']
    names['sampler'].set_epoch(5)
    if report()['coverage'] != 'unknown':
        break
equal(seen, listed('lines'), 'lines: the epoch of the plan, by DataLoader')
ok(finished, 'and the sampler knows that it has been read')
sampler = names['sampler']
equal((report()['coverage'], report()['read']), ('complete', len(seen)), 'and so does the mount')
sampler.set_epoch(4)
sampler.stream(0, 2)
for _ in range(3):
    sampler.step()
state = sampler.state_dict()
sampler = dealfs.torch.Sampler(sampler.dataset, batch_size=8)
sampler.load_state_dict(state)
sampler.set_epoch(4)
with open(sampler.stream()) as f:
    rest = [eval(line)['number'] for line in f]
equal(rest, mount.plan(epoch=4, ranks=1, batch=16, rank=0, samples='lines').tolist()[48:], 'an epoch that is resumed')
names = run(array, 'many')
rows = names['rows']
equal((rows.shape, names['batches'].shape[1:]), ((3 << 12, 256), (16, 256)), 'an array of rows')
equal((rows[:, 0] // 256).tolist(), listed('many'), 'in the order of the plan')
sys.exit(done_testing())
EOF
ok 'umount' dealfs umount "$mnt"
mkdir "$src/tar" "$src/tfrecord" "$src/lines"
python3 "$tmp/containers.py" "$src"
mount_up -o ram=64M "$src" "$mnt"
for name in tar tfrecord lines; do ok "$name" dealfs index "$mnt" $name --under $name; done
ok 'rows' dealfs index "$mnt" many --match many.bin --format fixed=1024
ok 'the blocks of the guide do what they say' $python "$tmp/guide.py" "$mnt" "$top_srcdir/etc/records.md"
diag "$(grep -v '^ok' "$tmp/.output")"
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
