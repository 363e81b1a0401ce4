"""A mount by its control files: see dealfs-control(5). Nothing is kept between calls, so a mount that is gone, or has
another server now, costs the call that meets it and no other."""
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
SERVERS = 5  # that die under one request; more of them make it fail


class NotMounted(FileNotFoundError):
    """There is no dealfs mount at a path, or around it."""


class Refused(OSError):
    """The mount refused a request: `errno` is the kernel's number, `reason` says why, in words."""

    @property
    def reason(self):
        return self.strerror

    def __str__(self):
        return f'{self.filename}: {self.strerror}'


class ServerGone(Exception):
    """The server that had taken the request is no more, and the next one knows nothing of it."""


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
        """The mount that `path` is in, and where in it: '' is its root."""
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
        """What a sample list is: its `count` of samples, its `digest`, and the `format` of its records, or None."""
        count, digest, format = self.ask('samples', name=name, action='look').decode().split()
        return List(int(count), digest, None if format == '-' else format)

    def plan(self, order=None, **keys):
        """A rank's samples of an epoch, in their order, as an array; of all ranks, without rank=, a list of arrays.

        The keys are those of dealfs-plan(1): epoch=, ranks= and batch= must be there. order= is 'natural', or the order
        itself: numbers in any form that NumPy takes."""
        if keys.get('rank') is None:
            lists = self._plan(order, reply='text', **keys).decode().split('\n')[:-1]
            return [numpy.array(line.split(), numpy.uint32) for line in lists]
        return numpy.frombuffer(bytearray(self._plan(order, reply='u32', **keys)), '<u4')

    def summary(self, order=None, **keys):
        """What a plan comes to, as a dictionary: its `digest`, the `layout` that it is made from, `steps`…"""
        return json.loads(self._plan(order, reply='summary', **keys))

    def names(self, order=None, **keys):
        """Which samples a plan has, step after step: tuples (step, rank, sample, path), and for records also where they
        lie: offset and length, else None. With step= or steps= the others are not dealt."""
        lines = self._plan(order, reply='paths', **keys).split(b'\n')[:-1]
        name = keys.get('samples', 'all')
        records = name != 'imagefolder' and os.path.exists(os.path.join(self.control, 'samples.d', f'{name}.packed'))
        found = []
        for step, rank, sample, path in (line.split(b'\t', 3) for line in lines):  # a path may have tabs
            path, *place = path.rsplit(b'\t', 2) if records else [path]
            place = map(int, place) if place else (None, None)
            found.append(StepSample(int(step), int(rank), int(sample), unescape(path), *place))
        return found

    def costs(self, name, costs, samples='all'):
        """Upload what each sample of a list costs, for plan(cost=name): whole numbers below 2^32. On all nodes."""
        costs = numpy.asarray(costs)
        if costs.size and (costs.dtype.kind not in 'iu' or costs.min() < 0 or costs.max() >= 1 << 32):
            raise ValueError('costs are whole numbers, from 0 to 2^32 - 1')
        self.ask('costs', costs.astype('<u4').tobytes(), name=name, samples=samples)

    def exchange(self, epoch, fraction, seed=0, wait=60):
        """Have a part of each node's samples change its node; the reply as a dictionary. Its `layout` is the one that
        all nodes have taken, for plan(layout=...); the bytes follow. Fails after `wait` seconds."""
        return json.loads(self.ask('exchange', epoch=epoch, fraction=fraction, seed=seed, wait=wait))

    def shuffle(self, seed, wait=60):
        """Have all samples change their node; the same reply."""
        return json.loads(self.ask('shuffle', seed=seed, wait=wait))

    def where(self, paths):
        """For each path, relative to the mount or absolute, a tuple (sample, owner, tier, path). None is what it has
        not: a number, where it is no sample; an owner; a tier of this node."""
        payload = b''.join(os.fsencode(path) + b'\0' for path in paths)
        reply = self.ask('where', payload, sep='nul') if payload else b''
        lines = (line.split(b'\t', 3) for line in reply.split(b'\n')[:-1])
        return [Where(number_or_none(sample), number_or_none(owner), None if tier == b'-' else tier.decode(),
                      unescape(path)) for sample, owner, tier, path in lines]

    def ask(self, verb, payload=b'', **keys):
        """The reply to any request, in bytes. A value may be text, a number, yes or no, a path, or a list of such."""
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
            raise ValueError('an order is made of numbers of samples')
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
    """Why the request on this open file was refused. Where the write failed, so does the next read, once."""
    for _ in range(2):
        try:
            return control.read().decode(errors='replace').strip()
        except OSError:
            pass
    return None


def unescape(line):
    """A path as the mount writes it, in which newline, carriage return and backslash are escaped."""
    return re.sub(r'\\(.)', lambda match: ESCAPED[match[1]], os.fsdecode(line))


def number_or_none(word):
    return None if word == b'-' else int(word)


def named(**keys):
    """A plan of these keys as a name below plan/."""
    return ','.join(f'{key}={written(value).replace(",", "%2C")}' for key, value in keys.items() if value is not None)


def written(value):
    """A value of a key, as a request has it."""
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float):
        return f'{value:.6f}'.rstrip('0').rstrip('.')
    if isinstance(value, (list, tuple)):
        return ','.join(written(item) for item in value)
    if isinstance(value, (str, bytes, os.PathLike)):
        return quote(os.fsencode(value), safe='')
    return str(value)
