"""What tests know of streams: the same bytes, computed from the source in the order of the plan's list of numbers.

streams.py equal MOUNT SOURCE RECORDS PAIRS...   each stream of these pairs is what the source says, however it is read
streams.py frames MOUNT SOURCE RECORDS PAIRS...  the stream of a list of tars is a tar of its records
streams.py survive MOUNT SOURCE RECORDS PAIRS PIDS   a reader goes on when these are killed, one after the other; 1+2+3
                                                     are killed at once
streams.py stale MOUNT SOURCE RECORDS PAIRS PATH     only the records of this container fail, with ESTALE
streams.py bounded MOUNT SOURCE RECORDS PAIRS...     streams that are read at once stay within memory and page cache
streams.py make FOLDER                           containers of each format below it
streams.py union MOUNT SOURCE RECORDS            over ranks, workers and resumes: each record once
RECORDS is NAME=FILE, a list and its text: records, or paths.
"""
import array
import collections
import concurrent.futures
import mmap
import os
import random
import signal
import sys
import time
import urllib.parse

from tap import wait_for

import tfrecords


class Samples:
    def __init__(self, source, records):
        self.source = source
        self.name, path = records.split('=', 1)
        with open(path) as f:
            self.lines = [line.rstrip('\n').split('\t') for line in f]
        if len(self.lines[0]) == 1:
            self.paths, self.lines = [path for path, in self.lines], None

    def count(self):
        return len(self.paths if self.lines is None else self.lines)

    def bytes(self, i):
        """Of sample i, as it is in a stream."""
        if self.lines is None:
            with open(f'{self.source}/{self.paths[i]}', 'rb') as f:
                return f.read()
        path, offset, length = self.lines[i][:3]
        with open(f'{self.source}/{urllib.parse.unquote(path)}', 'rb') as f:
            f.seek(int(offset))
            return f.read(int(length.rstrip('+'))) + b'\n' * length.endswith('+')


def plan(mount, pairs, reply):
    return f'{mount}/.dealfs/plan/{pairs},reply={reply}'


def numbers(mount, pairs, reply='u32'):
    with open(plan(mount, pairs, reply), 'rb') as f:
        return array.array('I' if reply == 'u32' else 'Q', f.read())


def drop(fd):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(fd, at_once=1 << 20):
    parts, at = [], 0
    while part := os.pread(fd, at_once, at):
        parts.append(part)
        at += len(part)
    return b''.join(parts)


def check(what, good):
    if not good:
        sys.exit(f'{what} differs')


def check_reads(fd, want):
    """Sequential, in short pieces, beyond the end, at random, in parallel, mapped."""
    generator = random.Random(len(want))
    size = os.fstat(fd).st_size
    check(f'size {size}, not {len(want)}: it', size == len(want))
    check('a sequential read', read_all(fd) == want)
    check('a cached read', read_all(fd, 4001) == want)
    check('a read at the end', os.pread(fd, 10, size) == b'' and os.pread(fd, 10, size + (1 << 40)) == b'')
    drop(fd)
    lengths = 1, 100, 5000, 300000
    places = [(generator.randrange(size), generator.choice(lengths)) for _ in range(40 if size else 0)]
    check('a random read', all(os.pread(fd, n, at) == want[at:at + n] for at, n in places))
    drop(fd)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        check('a parallel read', all(pool.map(lambda p: os.pread(fd, p[1], p[0]) == want[p[0]:p[0] + p[1]], places)))
    drop(fd)
    if size:
        with mmap.mmap(fd, size, prot=mmap.PROT_READ) as m:
            check('a mapped read', all(m[at:at + n] == want[at:at + n] for at, n in places) and m[:] == want)


def equal(mount, samples, pairs):
    order, spans = numbers(mount, pairs), numbers(mount, pairs, 'spans')
    parts = [samples.bytes(i) for i in order]
    check('spans', len(spans) == len(order) + 1 and spans[0] == 0 and
          all(spans[i + 1] - spans[i] == len(part) for i, part in enumerate(parts)))
    fd = os.open(plan(mount, pairs, 'bytes'), os.O_RDONLY)
    check_reads(fd, b''.join(parts))
    os.close(fd)


def pieces(mount, pairs):
    """A stream, cut at its spans."""
    spans = numbers(mount, pairs, 'spans')
    with open(plan(mount, pairs, 'bytes'), 'rb') as f:
        whole = f.read()
    return [whole[a:b] for a, b in zip(spans, spans[1:])]


def union(mount, samples, batch=2):
    of = f'epoch=5,batch={batch},samples={samples.name},tail=short'
    everything = numbers(mount, f'{of},ranks=1,mode=regular,rank=0')
    check('the order', sorted(everything) == list(range(samples.count())))
    for ranks in range(1, 6):
        for skip in range(0, samples.count() + 1, ranks * batch):
            want = collections.Counter(samples.bytes(i) for i in everything[skip:])
            for workers in 1, 2, 3:
                got = collections.Counter()
                for rank in range(ranks):
                    for worker in range(workers):
                        part = f'ranks={ranks},skip={skip},rank={rank},workers={workers},worker={worker}'
                        got.update(pieces(mount, f'{of},{part}'))
                check(f'{ranks} ranks, {workers} workers, skip={skip}: the union', got == want)


# Names that are as long as a header's field, or as the blocks of an extension header.
STEMS = 'a', 'k' * 88, 'k' * 93, 'd' * 140 + '/' + 'k' * 91, 'n\u00e4' * 46, 'e' * 499, 'f' * 508, 'x/' + 'g' * 470


def make_containers(folder):
    """Tars with other keys in each, tars with the same keys, and one of each other format."""
    import io
    import json
    import tarfile
    import numpy
    generator = random.Random(33)
    for form in tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT:
        for kind, same in ('tar', False), ('same', True):
            os.makedirs(f'{folder}/{kind}', exist_ok=True)
            with tarfile.open(f'{folder}/{kind}/{form}.tar', 'w', format=form) as tar:
                for i, size in enumerate((0, 1, 511, 512, 513, 5000, 70000, 3)):
                    stem = STEMS[i] if form != tarfile.USTAR_FORMAT or i < 5 else f'k{i}'
                    for end in '.jpg', '.seg.png', '.cls':
                        info = tarfile.TarInfo(f'{stem}{end}' if same else f'{form}{stem[1:]}{i}{end}')
                        info.size = size if end == '.jpg' else 2
                        try:
                            tar.addfile(info, io.BytesIO(generator.randbytes(info.size)))
                        except ValueError:  # too long for ustar
                            break
    for kind in 'tfrecord', 'lines', 'rows':
        os.makedirs(f'{folder}/{kind}', exist_ok=True)
    for n in range(2):
        with open(f'{folder}/tfrecord/{n}.tfrecord', 'wb') as f:
            for size in 0, 1, 1000, 40:
                f.write(tfrecords.framed(generator.randbytes(size)))
        with open(f'{folder}/lines/{n}.jsonl', 'w') as f:
            f.write('\n'.join(json.dumps({'n': 10 * n + i, 'text': 'x' * i}) for i in range(10)))
        numpy.save(f'{folder}/rows/{n}.npy', numpy.arange(n * 1000, n * 1000 + 60, dtype='<i4').reshape(20, 3))


def key_of(name):
    folder, slash, base = name.rpartition('/')
    return folder + slash + base.split('.', 1)[0]


def tar_records(f, mode):
    """As WebDataset groups them: (key, ((end of the name, bytes), ...)) of neighbours with one key."""
    import itertools
    import tarfile
    with tarfile.open(fileobj=f, mode=mode) as tar:
        members = [(m.name, tar.extractfile(m).read()) for m in tar if m.isreg()]
    return [(key, tuple((name[len(key):], data) for name, data in group))
            for key, group in itertools.groupby(members, lambda member: key_of(member[0]))]


def frames(mount, samples, pairs):
    """A tar stream, read by Python's tarfile without seeks, has the records of the list in its order."""
    import io
    order = numbers(mount, pairs)
    want = [tar_records(io.BytesIO(samples.bytes(i) + b'\0' * 1024), 'r:')[0] for i in order]
    with open(plan(mount, pairs, 'bytes'), 'rb') as f:
        got = tar_records(f, 'r|')
    check('the number of records', len(got) == len(order))
    check('a record', [members for _, members in got] == [members for _, members in want])
    check('a size', os.stat(plan(mount, pairs, 'bytes')).st_size == 1024 + sum(len(samples.bytes(i)) for i in order))
    if 'keys=unique' not in pairs:
        check('a key', [key for key, _ in got] == [key for key, _ in want])
        return
    check('the keys', len({key for key, _ in got}) == len(got))
    for place, ((key, _), (old, _)) in enumerate(zip(got, want)):
        folder, slash, base = key.rpartition('/')
        position, dash, stem = base.partition('-')
        check(f'{old}: {key}', (folder + slash, dash) == (old[:len(old) - len(old.rpartition('/')[2])], '-'))
        check(f'{old}: {key}', int(position) == place and old.rpartition('/')[2].startswith(stem))
        check(f'{old}: {key}: the cut', len(stem.encode()) >= len(old.rpartition('/')[2].encode()) - 12)
    with open(plan(mount, pairs, 'bytes'), 'rb') as f:
        whole = f.read()
        check_reads(f.fileno(), whole)


def survive(mount, samples, pairs, pids):
    """A reader in the middle of a stream goes on when these processes are killed, one after the other."""
    pids = [[int(pid) for pid in pids.split('+')] for pids in pids.split()]
    want = b''.join(samples.bytes(i) for i in numbers(mount, pairs))
    fd = os.open(plan(mount, pairs, 'bytes'), os.O_RDONLY)
    got, step = [], len(want) // (len(pids) + 1) + 1
    for together in pids:
        got.append(os.pread(fd, step, sum(map(len, got))))
        for number in signal.SIGSTOP, signal.SIGKILL:
            for pid in together:
                os.kill(pid, number)
    got.append(read_all(fd)[sum(map(len, got)):])
    check('what was read', b''.join(got) == want)
    drop(fd)
    check('all of it again', read_all(fd) == want)


def stale(mount, samples, pairs, container):
    """Records of this container fail with ESTALE, and no others. Records are of whole pages."""
    import errno
    order, fd = numbers(mount, pairs), os.open(plan(mount, pairs, 'bytes'), os.O_RDONLY)
    place, failed = 0, 0
    for i in order:
        length = int(samples.lines[i][2])
        try:
            check(f'record {i}', os.pread(fd, length, place) == samples.bytes(i))
            check(f'record {i} of a file that changed: it', samples.lines[i][0] != container)
        except OSError as error:
            check(f'record {i}: {error}: it', error.errno == errno.ESTALE and samples.lines[i][0] == container)
            failed += 1
        place += length
    check('the number of failures', 0 < failed < len(order))


def bounded(mount, samples, *streams):
    """Streams that are read at once: none takes much of the page cache, and the server stays within its memory."""
    import json
    import threading
    with open(f'{mount}/.dealfs/status') as f:
        server = json.load(f)['pids']['server']
    most, resident, over = [0], [], threading.Event()

    def watch():
        while not over.wait(0.02):
            with open(f'/proc/{server}/status') as f:
                most[0] = max(most[0], *(int(line.split()[1]) for line in f if line.startswith('RssAnon')))

    def read(pairs):
        whole = b''.join(samples.bytes(i) for i in numbers(mount, pairs))
        fd = os.open(plan(mount, pairs, 'bytes'), os.O_RDONLY)
        check('a stream', read_all(fd) == whole)
        wait_for(lambda: cached(fd, len(whole)) < 40, pause=0.05)  # a thread drops the pages
        resident.append((len(whole) >> 20, cached(fd, len(whole))))
        os.close(fd)
    watcher = threading.Thread(target=watch)
    watcher.start()
    with concurrent.futures.ThreadPoolExecutor(len(streams)) as pool:
        list(pool.map(read, streams))
    over.set()
    watcher.join()
    check(f'{most[0]} KiB of memory: it', 0 < most[0] < 64 << 10)
    check(f'{resident} MiB: what is cached', all(pages < 40 < length for length, pages in resident))


def cached(fd, length):
    """MiB of a file in the page cache."""
    import ctypes
    with mmap.mmap(fd, length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as m:
        first = ctypes.c_char.from_buffer(m)
        seen = (ctypes.c_ubyte * ((length + 4095) // 4096))()
        check('mincore', ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(length),
                                                   seen) == 0)
        del first
    return sum(page & 1 for page in seen) >> 8


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        make_containers(sys.argv[2])
        sys.exit()
    given = Samples(*sys.argv[3:5])
    if sys.argv[1] in ('survive', 'stale', 'bounded'):
        globals()[sys.argv[1]](sys.argv[2], given, *sys.argv[5:])
    elif sys.argv[1] in ('equal', 'frames'):
        for each in sys.argv[5:]:
            globals()[sys.argv[1]](sys.argv[2], given, each)
    else:
        union(sys.argv[2], given)
    print('same')
