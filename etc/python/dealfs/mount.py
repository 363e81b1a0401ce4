"""Requests to a mount through its control files: see dealfs-control(5). No state is kept between calls. So if the mount
ends or its server is replaced, only the current call is affected."""
import collections
import errno
import json
import os
import re
from urllib.parse import quote

import numpy

StepSample = collections.namedtuple('StepSample', 'step rank sample path offset length')
Where = collections.namedtuple('Where', 'sample owner tier path')
List = collections.namedtuple('List', 'count digest format')
ESCAPED = {'n': '\n', 'r': '\r', '\\': '\\'}
SERVERS = 5  # if servers die, a request is sent to at most this many, one after another


class NotMounted(FileNotFoundError):
    """The path is not in a dealfs mount."""


class Refused(OSError):
    """The mount refused a request: `errno` is the error number, `reason` is the reason in words."""

    @property
    def reason(self):
        return self.strerror

    def __str__(self):
        return f'{self.filename}: {self.strerror}'


class ServerGone(Exception):
    """The server died after it had received the request. Its successor does not know the request."""


class Mount:
    """The mount whose root is `path`."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self.control = os.path.join(self.path, '.dealfs')
        try:
            os.stat(os.path.join(self.control, 'status'))
        except (FileNotFoundError, NotADirectoryError):
            raise NotMounted(errno.ENOENT, 'no dealfs mount', self.path) from None

    @classmethod
    def around(cls, path):
        """The mount that contains `path`, and the relative path in it, '' for its root."""
        path = os.path.realpath(path)
        folder = path
        while True:
            try:
                mount = cls(folder)
                return mount, '' if folder == path else os.path.relpath(path, folder)
            except NotMounted:
                if folder == os.path.dirname(folder):
                    raise NotMounted(errno.ENOENT, 'not in a dealfs mount', path) from None
            folder = os.path.dirname(folder)

    def __repr__(self):
        return f'dealfs.Mount({self.path!r})'

    def status(self):
        """The state of this node, as a dictionary."""
        with open(os.path.join(self.control, 'status'), encoding='utf-8') as f:
            return json.load(f)

    def samples(self, name='all'):
        """The paths of a sample list, relative to the mount: item i is sample i."""
        with open(os.path.join(self.control, 'samples.d', name), 'rb') as f:
            return [unescape(line) for line in f.read().split(b'\n')[:-1]]

    def list(self, name):
        """About a sample list: the `count` of its samples, its `digest`, and the `format` of its records (None for
        files)."""
        count, digest, format = self.ask('samples', name=name, action='look').decode().split()
        return List(int(count), digest, None if format == '-' else format)

    def has_records(self, name):
        """Are the samples of this list records, and not files?"""
        return name != 'imagefolder' and os.path.exists(os.path.join(self.control, 'samples.d', f'{name}.packed'))

    def plan(self, order=None, **keys):
        """The numbers of a rank's samples in an epoch, in order, as an array. Without rank=, a list with one such
        array per rank.

        dealfs-plan(1) describes the keys; epoch=, ranks= and batch= are required. order= is 'natural', or a sequence of
        sample numbers that NumPy accepts."""
        if keys.get('rank') is None:
            lists = self._plan(order, reply='text', **keys).decode().split('\n')[:-1]
            return [numpy.array(line.split(), numpy.uint32) for line in lists]
        return numpy.frombuffer(bytearray(self._plan(order, reply='u32', **keys)), '<u4')

    def summary(self, order=None, **keys):
        """A summary of a plan, as a dictionary: its `digest`, the `layout` that it was made from, `steps`…"""
        return json.loads(self._plan(order, reply='summary', **keys))

    def names(self, order=None, **keys):
        """The samples of a plan by step: tuples (step, rank, sample, path, offset, length). Offset and length are None
        for lists of files. With step= or steps= only those steps are dealt."""
        lines = self._plan(order, reply='paths', **keys).split(b'\n')[:-1]
        records, found = self.has_records(keys.get('samples', 'all')), []
        for step, rank, sample, path in (line.split(b'\t', 3) for line in lines):  # a path may have tabs
            path, *place = path.rsplit(b'\t', 2) if records else [path]
            place = map(int, place) if place else (None, None)
            found.append(StepSample(int(step), int(rank), int(sample), unescape(path), *place))
        return found

    def costs(self, name, costs, samples='all'):
        """Upload the cost of each sample of a list, a whole number below 2^32, to all nodes, for plan(cost=name)."""
        costs = numpy.asarray(costs)
        if costs.size and (costs.dtype.kind not in 'iu' or costs.min() < 0 or costs.max() >= 1 << 32):
            raise ValueError('costs: must be whole numbers from 0 to 2^32 - 1')
        self.ask('costs', costs.astype('<u4').tobytes(), name=name, samples=samples)

    def exchange(self, epoch, fraction, seed=0, wait=60):
        """Move a part of each node's samples to other nodes, and return the reply as a dictionary. Its `layout` is the
        digest of the layout that all nodes have taken, for plan(layout=...). The bytes follow in the background. Fails
        after `wait` seconds."""
        return json.loads(self.ask('exchange', epoch=epoch, fraction=fraction, seed=seed, wait=wait))

    def shuffle(self, seed, wait=60):
        """Move all samples to new owners. The reply is that of exchange()."""
        return json.loads(self.ask('shuffle', seed=seed, wait=wait))

    def where(self, paths):
        """For each path, relative to the mount or absolute, a tuple (sample, owner, tier, path).

        sample    None if the path is not a sample
        owner     None if no node owns it
        tier      None if this node has not cached it"""
        payload = b''.join(os.fsencode(path) + b'\0' for path in paths)
        reply = self.ask('where', payload, sep='nul') if payload else b''
        lines = (line.split(b'\t', 3) for line in reply.split(b'\n')[:-1])
        return [Where(number_or_none(sample), number_or_none(owner), None if tier == b'-' else tier.decode(),
                      unescape(path)) for sample, owner, tier, path in lines]

    def ask(self, verb, payload=b'', **keys):
        """Send a request and return the reply as bytes. A value is text, a number, a bool, a path, or a list."""
        words = [verb] + [f'{key}={written(value)}' for key, value in keys.items() if value is not None]
        request = ' '.join(words).encode() + b'\n' + payload
        for _ in range(SERVERS):
            try:
                return self._converse(request, verb)
            except ServerGone:
                pass
        raise Refused(errno.ESTALE, f'the server died {SERVERS} times', f'{self.path}: {verb}')

    def _plan(self, order, **keys):
        if order is None or isinstance(order, str):
            return self.ask('plan', order=order, **keys)
        order = numpy.asarray(order)
        if order.size and (order.dtype.kind not in 'iu' or order.min() < 0 or order.max() >= 1 << 32):
            raise ValueError('order: must contain numbers of samples, whole numbers from 0 to 2^32 - 1')
        return self.ask('plan', order.astype('<u4').tobytes(), order='u32', **keys)

    def _converse(self, request, verb):
        with open(os.path.join(self.control, 'control'), 'r+b', buffering=0) as f:
            try:
                view = memoryview(request)
                while view:
                    view = view[f.write(view):]
                return f.read()
            except OSError as error:
                refusal = error
            reason = reason_from(f)
        if reason is None and refusal.errno == errno.ESTALE:
            raise ServerGone from refusal
        if not reason:
            raise refusal
        raise Refused(refusal.errno, reason, f'{self.path}: {verb}') from refusal


def reason_from(control):
    """Why the request on this open file was refused. If the write failed, the next read fails once as well."""
    for _ in range(2):
        try:
            return control.read().decode(errors='replace').strip()
        except OSError:
            pass
    return None


def unescape(line):
    """Decode a path from the mount, in which newline, carriage return and backslash are escaped."""
    return re.sub(r'\\(.)', lambda match: ESCAPED[match[1]], os.fsdecode(line))


def number_or_none(word):
    return None if word == b'-' else int(word)


def named(**keys):
    """The name below plan/ of a plan with these keys."""
    return ','.join(f'{key}={written(value).replace(",", "%2C")}' for key, value in keys.items() if value is not None)


def written(value):
    """A value of a key, as written in a request."""
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float):
        return f'{value:.6f}'.rstrip('0').rstrip('.')
    if isinstance(value, (list, tuple)):
        return ','.join(written(item) for item in value)
    if isinstance(value, (str, bytes, os.PathLike)):
        return quote(os.fsencode(value), safe='')
    return str(value)
