"""A sample list of a dealfs mount as a map-style dataset: records inside containers, or whole files.

    data = Records('/mnt/data', 'train', decode, threads=4)
    loader = DataLoader(data, batch_size=64, sampler=Sampler(data, batch_size=64), num_workers=8)

The list is mapped: workers share it in the page cache, and a fork copies nothing. Samples that a Sampler has dealt are
read from the stream of the epoch. There the samples of a batch are consecutive: one system call reads a batch."""
import concurrent.futures
import mmap
import os
import warnings

import numpy

from dealfs.containers import OPENERS
from dealfs.mount import Mount, unescape, written
from dealfs.torch.dealt import runs

RECORD = numpy.dtype([('file', '<u4'), ('length', '<u4'), ('offset', '<u8'), ('label', '<i4')])
OFFSET = numpy.uint64((1 << 63) - 1)  # the highest bit: the last line of a file lacks its newline
NO_LABEL = -1
PIECE = 1 << 20  # records, or bytes of text, that are processed together
OPEN_MOST = 128  # containers that a process has open


def mapped(path):
    with open(path, 'rb', buffering=0) as f:
        return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) if os.fstat(f.fileno()).st_size else b''


def read_fully(file, offset, length):
    data = os.pread(file.fileno(), length, offset)
    while len(data) < length:
        more = os.pread(file.fileno(), length - len(data), offset + len(data))
        if not more:
            raise EOFError(f'{file.name}: ends before byte {offset + length}')
        data += more
    return data


def at_most(numbers, most):
    """Are all of `numbers` from 0 to `most`? One comparison is enough: as unsigned numbers, negative ones are large."""
    return len(numbers) == 0 or numbers.view(numpy.uint64).max() <= most


class Lines:
    """The lines of a mapped text that does not change. The offset of every 128th line is stored."""
    EACH = 128

    def __init__(self, path):
        self.text, begins, self.count = mapped(path), [numpy.zeros(1, numpy.int64)], 0
        text = numpy.frombuffer(self.text, numpy.uint8)
        for at in range(0, len(text), PIECE):
            ends = numpy.flatnonzero(text[at:at + PIECE] == ord('\n'))
            begins.append(ends[(-self.count - 1) % self.EACH::self.EACH] + (at + 1))
            self.count += len(ends)
        self.begins = numpy.concatenate(begins)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        block = index // self.EACH
        end = self.begins[block + 1] if block + 1 < len(self.begins) else None
        return self.text[self.begins[block]:end].split(b'\n')[index % self.EACH]


def fall_back(plan, reason):
    """Say once per process and reason that a pass becomes slower."""
    warnings.warn(f'the stream of {plan} is not used: {reason}. Its samples are read one by one from their files',
                  RuntimeWarning, stacklevel=2)


class Stream:
    """A rank's epoch as a file, and the offset of each sample in it."""

    def __init__(self, control, plan):
        self.file = open(os.path.join(control, 'plan', f'{plan},reply=bytes'), 'rb', buffering=0)
        self.spans = numpy.frombuffer(mapped(os.path.join(control, 'plan', f'{plan},reply=spans')), '<u8')


class Part:
    """Samples that one read returns. Sample places[i] of the batch is the bytes begins[i] to ends[i] of `container`, or
    of the stream if `container` is None. Without `begins` the whole file is the sample."""
    __slots__ = 'container', 'places', 'begins', 'ends'

    def __init__(self, container, places, begins=None, ends=None):
        self.container, self.places, self.begins, self.ends = container, places, begins, ends

    def read(self, file):
        base = self.begins[0]
        data = read_fully(file, base, self.ends[-1] - base)
        return [data[begin - base:end - base] for begin, end in zip(self.begins, self.ends)]


class Records:
    """Item i is sample i of a list.

    mount       a Mount, or the path of a mount
    samples     the name of a sample list: of records, as `dealfs index` makes them, or of files, such as 'all'
    transform   called with the parsed sample (see format); its result is the item
    format      how a sample's bytes are parsed. 'list' (default): by the format that the list stores
                'tar': to a dictionary of the members
                'tfrecord': to the data without length and checksums
                'lines': to the line without its newline
                None, 'fixed', and lists in other formats: all bytes of the sample, not parsed
    threads     number of threads per worker that read and transform the samples of a batch concurrently; 0: none

    If samples have labels, an item is a pair (sample, label). PyTorch 2 reads whole batches through __getitems__. With
    older versions use `DataLoader(data, sampler=BatchSampler(...), batch_size=None)`, which requests data[[3, 1]].
    """

    def __init__(self, mount, samples, transform=None, *, format='list', threads=0):
        self.mount = mount if isinstance(mount, Mount) else Mount.around(mount)[0]
        self.root, self.samples = self.mount.path, samples
        self.ranges = os.path.exists(self._list_file('.packed'))
        if format == 'list':
            format = self.mount.list(samples).format if self.ranges else None
        if format not in OPENERS:
            raise ValueError(f"format={format!r}: not one of {', '.join(repr(name) for name in ['list', *OPENERS])}")
        self.transform, self.format, self.threads = transform, format, threads
        self._forget()
        self._map()
        if samples == 'imagefolder' and len(self) == 0:
            raise ValueError(f"{self.root}: no top-level directory contains images; samples='all' lists all files")
        self.labelled = bool(self.ranges and any((part['label'] != NO_LABEL).any() for part in self._pieces()))

    def _list_file(self, end=''):
        return os.path.join(self.mount.control, 'samples.d', self.samples + end)

    def _forget(self):
        self._list = self._lines = self._pool = self._process = self._stream = self._streamed = None
        self._open = {}

    def _map(self):
        """Map the records and the paths of their containers, or the paths of the files."""
        if self.ranges:
            self._list = numpy.frombuffer(mapped(self._list_file('.packed')), RECORD)
        self._lines = Lines(os.path.join(self.mount.control, 'samples') if self.ranges else self._list_file())
        self._count = len(self._list if self.ranges else self._lines)

    def _pieces(self):
        return (self._list[at:at + PIECE] for at in range(0, len(self._list), PIECE))

    def __getstate__(self):
        state = dict(self.__dict__)
        for name in '_list', '_lines', '_pool', '_process', '_stream', '_streamed', '_open':
            state.pop(name, None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._forget()
        self._map()

    def __len__(self):
        return self._count

    @property
    def targets(self):
        """The label of each sample as an array; -1: none. For a list of files: the number of its top-level directory,
        by name."""
        if self.ranges:
            return self._list['label']
        folders = [self._lines[i].split(b'/', 1)[0] for i in range(len(self))]
        numbers = {folder: number for number, folder in enumerate(sorted(set(folders)))}
        return numpy.array([numbers[folder] for folder in folders], numpy.int64)

    def path(self, index):
        """The path of the file that contains sample `index`."""
        return self._path(int(self._list['file'][index] if self.ranges else index))

    def _path(self, line):
        return os.path.join(self.root, unescape(self._lines[line]))

    def __getitem__(self, index):
        if isinstance(index, (list, tuple)):
            return self.__getitems__(index)
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        numbers = self._checked(indices)
        data = [None] * len(numbers)
        opener, transform = OPENERS[self.format], self.transform

        def bring(part):
            found = self._read(part, numbers)
            for change in opener, transform:
                found = list(map(change, found)) if change else found
            if isinstance(part.places, range):
                data[part.places.start:part.places.stop] = found
            else:
                for place, sample in zip(part.places, found):
                    data[place] = sample

        self._each(bring, self._parts(indices, numbers))
        return list(zip(data, self._list['label'][numbers].tolist())) if self.labelled else data

    def _checked(self, indices):
        numbers = numpy.fromiter(indices, numpy.int64, len(indices))
        if at_most(numbers, len(self) - 1):
            return numbers
        numbers[numbers < 0] += len(self)
        if not at_most(numbers, len(self) - 1):
            raise IndexError(f'not all of {numbers.tolist()} are samples: there are {len(self)}')
        return numbers

    def _read(self, part, numbers):
        """If the stream cannot be read, read from the containers. Their errors also name the file."""
        if part.container is not None:
            return self._read_in_place(part)
        try:
            return part.read(self._stream.file)
        except (OSError, EOFError) as error:
            fall_back(self._streamed, error)
            found = {}
            for other in self._parts_in_place(part.places, numbers):
                found.update(zip(other.places, self._read_in_place(other)))
            return [found[place] for place in part.places]

    def _read_in_place(self, part):
        if part.begins is not None:
            return part.read(self._opened(part.container))
        with open(self._path(part.container), 'rb', buffering=0) as f:
            return [f.readall()]

    def _opened(self, container):
        held = self._open.get(container)
        if held is None:
            for oldest in list(self._open)[:max(len(self._open) - OPEN_MOST + 1, 0)]:
                self._open.pop(oldest, None)  # closed once no thread reads it
            held = self._open[container] = open(self._path(container), 'rb', buffering=0)
        return held

    # --- where the samples of a batch are read ---

    def _parts(self, indices, numbers):
        parts, rest, at = [], [], 0
        for begin, end in runs(indices):
            streamed = self._parts_of_stream(indices[begin], begin, numbers[begin:end])
            if streamed:
                parts += streamed
                rest += range(at, begin)
                at = end
        rest += range(at, len(numbers))
        return parts + self._parts_in_place(rest, numbers)

    def _parts_of_stream(self, first, place, numbers):
        """The parts of a run of the stream, one per thread. None if there is no such stream."""
        if first.plan != self._streamed:
            self._streamed, self._stream = first.plan, self._open_stream(first.plan)
        if not self._stream:
            return None
        spans = self._stream.spans[first.position:first.position + len(numbers) + 1].astype(numpy.int64)
        begins, ends = spans[:-1], spans[1:]
        if self.ranges:  # the stream may have added a newline to a line
            lengths = self._list['length'][numbers]
            if len(begins) != len(numbers) or not at_most(ends - begins - lengths, 1):
                self._stream = None
                fall_back(first.plan, f'the list {self.samples!r} was replaced')
                return None
            ends = begins + lengths
        begins, ends, end = begins.tolist(), ends.tolist(), len(numbers)
        size = -(-end // max(self.threads, 1))
        return [Part(None, range(place + at, place + min(at + size, end)), begins[at:at + size], ends[at:at + size])
                for at in range(0, end, size)]

    def _open_stream(self, plan):
        keys = plan.split(',')
        if f'samples={written(self.samples)}' not in keys or any(key.startswith(('under=', 'match=')) for key in keys):
            fall_back(plan, f'it is not a plan of the list {self.samples!r}')
            return None
        try:
            return Stream(self.mount.control, plan)
        except OSError as error:
            fall_back(plan, error)
            return None

    def _parts_in_place(self, places, numbers):
        """The parts of other samples. Consecutive records of a container are one part."""
        if not self.ranges:
            return [Part(int(numbers[place]), [place]) for place in places]
        if not places:
            return []
        places = numpy.asarray(places)
        rows = self._list[numbers[places]]
        files, begins = rows['file'], (rows['offset'] & OFFSET).astype(numpy.int64)
        ends, order = begins + rows['length'], numpy.lexsort((begins, files))
        files, begins, ends = files[order], begins[order], ends[order]
        edges = numpy.flatnonzero((files[1:] != files[:-1]) | (begins[1:] != ends[:-1])) + 1
        edges = [0, *edges.tolist(), len(order)]
        places, begins, ends = places[order].tolist(), begins.tolist(), ends.tolist()
        return [Part(int(files[a]), places[a:b], begins[a:b], ends[a:b])
                for a, b in zip(edges, edges[1:])]

    def _each(self, work, items):
        """Run work(item) for all items. A forked child has none of its parent's threads, so it starts its own."""
        if not self.threads or len(items) < 2:
            for item in items:
                work(item)
            return
        if self._process != os.getpid():
            self._pool, self._process = concurrent.futures.ThreadPoolExecutor(self.threads), os.getpid()
        for _ in self._pool.map(work, items):
            pass
