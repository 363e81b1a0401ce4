"""The lines of `make bench` about records inside containers: streams of them, PyTorch's loaders, `dealfs index`.

Run as a program it is one of the loops that are measured, and prints a number:
    containers.py batches MOUNT LIST EPOCH   microseconds per record of Records, batches of 64 in one process
    containers.py busy MOUNT LIST EPOCH      the same of the processor's time
    containers.py loader MOUNT LIST EPOCH    records per second of a DataLoader with 2 workers; files, where LIST is -
    containers.py memory MOUNT LIST EPOCH    the same of records that are in memory: what PyTorch alone allows
    containers.py tar PATH                   records per second of Python's tarfile in its mode r|"""
import io
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tarfile
import time

import waits
import worlds

K, M = 1 << 10, 1 << 20
GIGABIT = 1e9 / 8
BATCH, WORKERS = 64, 2
DELAY_MS = 2


# --- what is measured ---

def sampler_of(data, epoch):
    from dealfs.torch import Sampler
    sampler = Sampler(data, batch_size=BATCH, feed=False)
    sampler.set_epoch(epoch)
    return sampler


def batches(mount, name, epoch, clock=time.monotonic):
    from torch.utils.data import BatchSampler
    from dealfs.torch import Records
    data = Records(mount, name)
    lists = list(BatchSampler(sampler_of(data, epoch), BATCH, True))
    data[lists[0]]
    began = clock()
    for indices in lists[1:]:
        data.__getitems__(indices)
    return (clock() - began) / (len(lists) - 1) / BATCH * 1e6


def busy(mount, name, epoch):
    return batches(mount, name, epoch, time.process_time)


def tensor(data):
    import numpy
    import torch
    return torch.from_numpy(numpy.frombuffer(bytearray(data), numpy.uint8))


class Files:
    """As ImageFolder reads them: a list of paths, a file at a time."""

    def __init__(self, root):
        self.paths = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], 'rb') as f:
            return tensor(f.read())


class Memory:
    """As many records as `data` has, from a few that are in memory."""

    def __init__(self, data):
        self.count, self.records = len(data), data[list(range(4 * BATCH))]

    def __len__(self):
        return self.count

    def __getitem__(self, indices):
        return [tensor(self.records[i % len(self.records)]) for i in indices]


def in_batches(data, sampler):
    from torch.utils.data import BatchSampler, DataLoader
    from torch.utils.data.dataloader import default_collate
    return DataLoader(data, sampler=BatchSampler(sampler, BATCH, False), batch_size=None, collate_fn=default_collate,
                      num_workers=WORKERS)


def loader(mount, name, epoch):
    from torch.utils.data import DataLoader, RandomSampler
    from dealfs.torch import Records
    if name == '-':
        data = Files(mount)
        return records_per_second(DataLoader(data, BATCH, sampler=RandomSampler(data), num_workers=WORKERS))
    data = Records(mount, name, tensor)
    return records_per_second(in_batches(data, sampler_of(data, epoch)))


def memory(mount, name, epoch):
    from torch.utils.data import RandomSampler
    from dealfs.torch import Records
    data = Memory(Records(mount, name))
    return records_per_second(in_batches(data, RandomSampler(data)))


def records_per_second(batched):
    import torch
    torch.set_num_threads(1)
    seen, began = 0, None
    for batch in batched:
        began = began or time.monotonic()  # the processes and the list are there then
        seen += len(batch)
    return (seen - BATCH) / (time.monotonic() - began)


def tar(path):
    records, began = 0, time.monotonic()
    with tarfile.open(path, 'r|') as members:
        for member in members:
            members.extractfile(member).read()
            records += 1
    return records / (time.monotonic() - began)


# --- the lines ---

def python(bench, *words):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../etc/python')
    environment = dict(os.environ, PYTHONPATH=folder, OMP_NUM_THREADS='1')
    return float(bench.sh('/usr/bin/python3', __file__, *map(str, words), env=environment))


def shards(bench, name, count, records, size):
    """Tar files of records that have one member each."""
    path = os.path.join(bench.HERE, name)
    if not os.path.exists(path + '.made'):
        os.makedirs(path, exist_ok=True)
        for shard in range(count):
            with tarfile.open(f'{path}/{shard:03}.tar', 'w', format=tarfile.USTAR_FORMAT) as tar_file:
                for i in range(records):
                    info = tarfile.TarInfo(f'{shard:03}/{i:06}.bin')
                    info.size = size
                    tar_file.addfile(info, io.BytesIO(os.urandom(size)))
        open(path + '.made', 'w').close()
    return path


def index(bench, mount, name, *words):
    """Records per second; of those that are found."""
    began = time.monotonic()
    out = subprocess.run([bench.DEALFS, 'index', mount, name, *words], check=True, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    took = time.monotonic() - began
    return int(re.search(r'([\d,]+) records', out.stdout)[1].replace(',', '')) / took


def single(bench, what, found, goal, need, unit, **options):
    """A line of what stands beside no other run, but a number."""
    ratios = [value / goal for value in found]
    bench.row(what, statistics.median(found), goal, statistics.median(ratios), need, unit, **options)
    bench.note(f'{what}: {min(ratios):.2f} to {max(ratios):.2f}')


def stream(mount, name, epoch, **keys):
    words = ','.join(f'{key}={value}' for key, value in {
        'epoch': epoch, 'ranks': 1, 'batch': BATCH, 'samples': name, 'rank': 0, 'reply': 'bytes', **keys}.items())
    return f'{mount}/.dealfs/plan/{words}'


def read_rate(bench, path):
    """MiB/s of a file that is read from its beginning to its end, and is not in the page cache."""
    names = os.path.join(bench.HERE, 'list-stream')
    with open(names, 'w') as f:
        f.write(path + '\n')
    os.stat(path)  # the plan is made
    began = time.monotonic()
    bench.sh(bench.program('reader'), '-c', '-r', '1', names)
    return os.path.getsize(path) / (time.monotonic() - began) / M


def line_stream(bench):
    """a stream of records of 4 KiB, RAM tier, cold, against one large file through the mount; by Python's tarfile"""
    source, epoch = bench.tree('large', 1, (64 if bench.QUICK else 512) * M), iter(range(1 << 20))
    with bench.Mount(source, 'ram=2G') as mount:
        index(bench, mount.path, 'rows', '--format', f'fixed={4 * K}')
        large = bench.list_of(mount.path)
        with open(large) as f:
            large = f.read().split('\n')[0]
        bench.paired('stream of 4 KiB records / one large file',
                     lambda: read_rate(bench, stream(mount.path, 'rows', next(epoch))),
                     lambda: read_rate(bench, large), 0.8, 'MiB/s')
    source = shards(bench, 'shards-4K', 8, 500 if bench.QUICK else 4000, 4 * K)
    with bench.Mount(source, 'ram=1G') as mount:
        index(bench, mount.path, 'shards')
        local = os.path.join(bench.HERE, 'local.tar')
        subprocess.run(['cp', stream(mount.path, 'shards', next(epoch)), local], check=True)
        bench.paired('tarfile, r|, over a stream / over a warm local tar',
                     lambda: python(bench, 'tar', stream(mount.path, 'shards', next(epoch))),
                     lambda: python(bench, 'tar', local), 0.9, 'records/s')
        os.unlink(local)


def line_records(bench):
    """dealfs.torch.Records, RAM tier, cold: batches of 64 records of 4 KiB; DataLoader against files of 16 KiB"""
    if subprocess.run(['/usr/bin/python3', '-c', 'import torch'], stderr=subprocess.DEVNULL).returncode:
        bench.note('records: python3-torch is not installed')
        return
    epoch = iter(range(1 << 20))
    with bench.Mount(bench.tree('large', 1, (64 if bench.QUICK else 512) * M), 'ram=2G') as mount:
        index(bench, mount.path, 'rows', '--format', f'fixed={4 * K}')
        for what, of in ('batches', ''), ('busy', ', time of the processor'):
            took = [python(bench, what, mount.path, 'rows', next(epoch)) for _ in range(bench.TURNS)]
            single(bench, f'Records in Python, batches of 64 of 4 KiB{of} / 3 us', took, 3, 1, 'us per record',
                   at_most=True)
    count = 2000 if bench.QUICK else 16000
    with bench.Mount(bench.tree('16K', count, 16 * K), 'ram=1G') as files:
        with bench.Mount(bench.tree('rows-16K', 1, count * 16 * K), 'ram=1G') as rows:
            index(bench, rows.path, 'rows', '--format', f'fixed={16 * K}')
            with open(bench.list_of(files.path)) as f:
                paths = f.read().split('\n')[:-1]

            limits = []

            def of_files():
                waits.drop(paths)
                found = python(bench, 'loader', files.path, '-', 0)
                limits.append(python(bench, 'memory', rows.path, 'rows', 0) / found)
                return found
            bench.paired('DataLoader, 2 workers, batches of 64 of 16 KiB: Records / files',
                         lambda: python(bench, 'loader', rows.path, 'rows', next(epoch)), of_files, 3, 'records/s')
            bench.note(f'DataLoader: records in memory / files: {statistics.median(limits):.2f}, {min(limits):.2f} to '
                       f'{max(limits):.2f}; PyTorch allows no more')


def remote_bytes(bench, world, name, epoch):
    """Of the list of node 0: the bytes that other nodes own."""
    listed = bench.sh(bench.DEALFS, 'plan', world.path(0), f'epoch={epoch}', 'ranks=2', f'batch={BATCH}', 'rank=0',
                      f'samples={name}', 'mode=regular')
    with open(f'{world.path(0)}/.dealfs/samples.d/{name}') as f:
        records = [line.split('\t') for line in f.read().splitlines()]
    with open(f'{world.path(0)}/.dealfs/control', 'r+b', buffering=0) as control:
        control.write(('where\n' + ''.join(f'{path}\t{offset}\n' for path, offset, _ in records)).encode())
        owners = [line.split('\t')[1] for line in control.read().decode().splitlines()]
    return sum(int(records[int(i)][2]) for i in listed.split() if owners[int(i)] == '1')


def wire_rates(bench, size):
    """Bytes per second that the other node sends, in turns; records of this size in 8 containers."""
    source, rates = bench.tree(f'wire-{size}', 8, (8 if bench.QUICK else 32) * M), []
    with worlds.machines(2, '1gbit', wire=bench.program('wire'), delay=1000 * DELAY_MS) as (switch, mpirun):
        with worlds.World(bench, 2, source, 'ram=1G', mpirun, switch) as world:
            bench.sh(bench.DEALFS, 'stage', world.path(0))
            index(bench, world.path(0), 'rows', '--format', f'fixed={size}')
            for epoch in range(bench.TURNS):
                path = stream(world.path(0), 'rows', epoch, ranks=2, mode='regular')
                took = os.path.getsize(path) / M / read_rate(bench, path)
                rates.append(remote_bytes(bench, world, 'rows', epoch) / took)
    return rates


def line_wire(bench):
    """two nodes, 1 Gbit/s and 2 ms later: the part of a stream that the other node owns, against the link"""
    for size in 64 * K, 4 * K:
        single(bench, f'stream of {size // K} KiB records over 1 Gbit/s, 2 ms later: remote part / the link',
               [rate / M for rate in wire_rates(bench, size)], GIGABIT / M, 0.85, 'MiB/s')


def line_index(bench):
    """dealfs index of tar shards: cold against `stage`; records per second of cached ones"""
    source, count = shards(bench, 'shards-64K', 8, 250 if bench.QUICK else 1000, 64 * K), iter(range(1 << 20))
    total = sum(os.path.getsize(f'{source}/{name}') for name in os.listdir(source)) / M

    def cold(command):
        waits.drop(f'{source}/{name}' for name in os.listdir(source))
        with bench.Mount(source, 'ram=2G', stage=False) as mount:
            return total / bench.seconds(subprocess.run, [bench.DEALFS, *command(mount.path)])
    bench.paired('index of tar shards, cold / stage', lambda: cold(lambda path: ['index', path, f'list{next(count)}']),
                 lambda: cold(lambda path: ['stage', path]), 0.8, 'MiB/s')
    with bench.Mount(shards(bench, 'shards-1K', 8, 4000 if bench.QUICK else 40000, K), 'ram=1G') as mount:
        rates = [index(bench, mount.path, 'list') for _ in range(bench.TURNS)]
    single(bench, 'index of cached tar shards / 200,000', rates, 200000, 1, 'records/s')


def text(bench):
    """Lines of JSON of about 1.2 KB, in one file: words of a vocabulary, the n-th with a frequency of 1 / n."""
    size = (8 if bench.QUICK else 60) * M
    path = os.path.join(bench.HERE, f'text-{size}')
    if not os.path.exists(path + '.made'):
        os.makedirs(path, exist_ok=True)
        draw = random.Random(1)
        words = [''.join(draw.choices('etaoinshrdlucm', k=draw.randint(2, 10))) for _ in range(30000)]
        shares = list(itertools.accumulate(1 / n for n in range(1, len(words) + 1)))
        with open(f'{path}/text.jsonl', 'w') as f:
            while f.tell() < size:
                line = ' '.join(draw.choices(words, cum_weights=shares, k=190))
                f.write(json.dumps({'id': f.tell(), 'text': line}) + '\n')
        open(path + '.made', 'w').close()
    return path


def line_text(bench):
    """a shuffled stream of lines of JSON in one file, RAM tier: the server's time per line, compressed and not"""
    for what, options in ('compressed', 'ram=256M'), ('zstd=off', 'ram=256M,zstd=off'):
        with bench.Mount(text(bench), options) as mount:
            index(bench, mount.path, 'lines', '--format', 'lines')
            with open(f'{mount.path}/.dealfs/status') as f:
                server = json.load(f)['pids']['server']
            with open(f'{mount.path}/text.jsonl') as f:
                lines = sum(1 for _ in f)
            took = []
            for epoch in range(bench.TURNS):
                path = stream(mount.path, 'lines', epoch)
                os.stat(path)  # the plan is made
                began = bench.worked(server)[1]
                read_rate(bench, path)
                took.append((bench.worked(server)[1] - began) / lines * 1e6)
        single(bench, f'shuffled lines of JSON, {what}: time of the server / 25 us', took, 25, 1, 'us per line',
               at_most=True)


LINES = {'stream': line_stream, 'text': line_text, 'records': line_records, 'wire': line_wire, 'index': line_index}
if __name__ == '__main__':
    loops = {'batches': batches, 'busy': busy, 'loader': loader, 'memory': memory, 'tar': tar}
    print(loops[sys.argv[1]](*sys.argv[2:4], *map(int, sys.argv[4:])))
