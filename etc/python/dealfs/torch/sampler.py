"""The order of an epoch for torch's DataLoader, dealt by a dealfs mount. It replaces DistributedSampler.

    sampler = Sampler(dataset, batch_size=batch)            # on every rank, after init_process_group
    loader = DataLoader(dataset, batch, sampler=sampler, num_workers=8)
    for epoch in range(sampler.next_epoch, epochs):
        sampler.set_epoch(epoch)
        for images, labels in sampler.over(loader):
            ...

Each step has the same samples as with DistributedSampler. They are dealt so that each rank reads mostly samples that
its own node owns. See dealfs-plan(1)."""
import collections
import errno
import os
import sys
import warnings

import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler

from dealfs.mount import Mount, Refused, named
from dealfs.torch.dealt import Dealt
from dealfs.torch.echo import Echo, length_of
from dealfs.torch.exchange import Exchange
from dealfs.torch.pace import Pace
from dealfs.torch.records import Records
from dealfs.torch.report import Report

# Where a pass over an epoch begins: after `consumed` samples of all ranks, with `layout`, in `order`. Or the epoch is
# `finished`.
Start = collections.namedtuple('Start', 'consumed finished layout order')
BEGINNING = Start(0, False, None, None)
STATE = {'epoch', 'consumed', 'finished', 'order', 'layout', 'ranks', 'batch', 'echo', 'of'}
HELD = 4096
NOT_TOLD = ('the sampler does not know how many batches the trainer has consumed, because workers read ahead: iterate '
            'over sampler.over(loader), or call sampler.step() after each batch')


def are_together():
    return dist.is_available() and dist.is_initialized()


class PlansDiffer(RuntimeError):
    """The ranks have different plans, or a rank has none."""


class ShardedAgain(RuntimeError):
    """The loader does not deliver this rank's list: only a part of it, or other samples."""


def samplers_of(loader):
    """The samplers that a loader consists of, the outermost first."""
    found = []
    while len(found) < 8:
        loader = getattr(loader, 'batch_sampler', None) or getattr(loader, 'sampler', None)
        if loader is None:
            break
        found.append(loader)
    return found


def drops_last(loader):
    """Does it leave out a shorter last batch?"""
    return any(getattr(part, 'drop_last', False) for part in [loader, *samplers_of(loader)[:1]])


class Sampler(DistributedSampler):
    """A rank's list of an epoch.

    It is a DistributedSampler. So Lightning does not shard its list again, and frameworks call set_epoch. These are
    collective calls, which all ranks must make: set_epoch, ratio, fix_echo, and the first step of a pass if set_epoch
    was not called before.

    dataset         as for DistributedSampler. The mount is found by its `root`, which ImageFolder has. If it is
                    dealfs.torch.Records, the sample list is found as well
    batch_size      the loader's batch size: samples of one rank in a step
    mount           a Mount, or the path of a mount or of a directory in it. Only samples in that directory are used
    group           the process group of the ranks that share the dataset (default: all ranks). Gloo needs no GPU
    feed            let the mount read ahead of this rank. Ignored for Records, whose streams read ahead by themselves
    exchange        with mode='local': the part of each node's samples that moves to other nodes before each epoch.
                    While an epoch is trained, rank 0 requests the exchange for the next one. If it fails, that epoch
                    uses the current layout, and the sampler warns once
    exchange_wait   seconds that set_epoch may wait for the exchange, counted from its request
    others          keys of dealfs-plan(1): mode=, echo=, tail=; cost=, balance=, window=; without=; nodes= if a rank
                    has several, as ['0+3', '1+4']; samples= for another list than ImageFolder's; catalog= to refuse
                    another dataset than mount.status()['catalog']['digest'] of an earlier run
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False, *, batch_size,
                 mount=None, group=None, feed=True, exchange=None, exchange_wait=60, **others):
        self.group, self.together = group, are_together()
        self._alone = num_replicas is None and not self.together
        if self.together:
            ranks, me = dist.get_world_size(group), dist.get_rank(group)
            if num_replicas not in (None, ranks) or rank not in (None, me):
                raise ValueError(f'num_replicas={num_replicas}, rank={rank}, but this is rank {me} of the {ranks} of '
                                 'the process group: give group=, the one of the ranks that share the dataset')
            num_replicas, rank = ranks, me
        super().__init__(dataset, num_replicas or 1, rank or 0, shuffle, seed, drop_last)
        self.mount, under = self._find_mount(mount)
        self.batch_size = batch_size
        records = isinstance(dataset, Records)
        self.feed = feed and not records  # a stream reads ahead by itself, and not into the page cache of the files
        self._streams = records
        self.keys = {'samples': dataset.samples if records else 'imagefolder', 'under': under or None,
                     'count': len(dataset), 'tail': 'drop' if drop_last else 'pad',
                     **({'seed': seed} if shuffle else {'order': 'natural'}), **others}
        self.exchange = None
        if exchange and float(exchange) > 0:
            if others.get('mode') != 'local':
                raise ValueError("exchange=: works only with mode='local', where each rank reads samples of its own "
                                 'node')
            if self.num_replicas > 1 and not self.together:
                raise ValueError('exchange=: needs the process group of all ranks, because rank 0 requests the '
                                 'exchange for all: call init_process_group first')
            self.exchange = Exchange(self.mount, exchange, seed if shuffle else 0, exchange_wait)
        self.pace, self._factor = Pace(), 1  # how often an Echo uses each sample of the loader
        self.layout = self.digest = self.order = None
        self._resume = None  # the Start of a loaded state that no pass has used yet
        self._set = None  # the last argument of set_epoch
        self._agreed = None  # identifies the current plan
        self._list = None
        self._pass, self._passes = None, 0  # the last iterator that has begun, and the number of them
        self._steps = None  # batches of that pass that the trainer took; None: not known
        self._counted = False  # whether the trainer calls step()
        self._drops_last = False  # whether the loader of over() leaves out a shorter last batch
        self._warned = False  # that a framework may have sharded the list again
        self._report = None  # of the list that is read, until its end is reported

    def _find_mount(self, mount):
        if isinstance(mount, Mount):
            return mount, None
        path = mount if mount is not None else getattr(self.dataset, 'root', None)
        if path is None:
            raise TypeError('the dataset has no attribute `root`, by which its mount is found: give mount=')
        return Mount.around(path)

    # --- the plan ---

    def set_epoch(self, epoch):
        """Set the epoch of the next pass. After loading a state of this epoch, the pass is the rest of it."""
        self._check_last()
        self._report_end(stopped=True)
        self._pass = None
        if epoch != self.epoch:
            self._resume = None
        self.epoch = self._set = epoch
        self._agree(self._next_start(), together=True)

    def _next_start(self):
        return self._resume or BEGINNING

    def _agree(self, start, together=False):
        """All ranks plan from the layout that rank 0 sees, since it may change at any time, and compare the digests.
        `together`: all ranks are here. Otherwise a rank that has agreed before asks nobody."""
        wanted = (self.epoch, start, *self.keys.items())
        if wanted == self._agreed and not together:
            return
        if self._all_agreed(wanted, start):
            return
        self._agreed = self._list = None
        plan = {**self.keys, 'epoch': self.epoch, 'skip': start.consumed, 'ranks': self.num_replicas,
                'batch': self.batch_size}
        length = 0
        if not start.finished:
            plan['resume'] = start.order if start.consumed else None
            plan['nodes'] = self.keys.get('nodes') or self._nodes()
            plan['layout'] = start.layout or self._all(lambda: self._choose_layout(plan) if self._leads() else None)[0]
            length = self._compare(plan)
            if self.exchange and self._leads():
                self.exchange.ask(self.epoch + 1)
        self.num_samples, self.total_size = length, length * self.num_replicas
        self._start, self._plan, self._agreed = start, plan, wanted

    def _all_agreed(self, wanted, start):
        """Have all ranks this plan already? All ranks begin at the same place, or all of them raise."""
        everyone = self._all(lambda: self._check_start(wanted, start))
        places = {place for place, _ in everyone}
        if len(places) > 1:
            of = [f'rank {rank} epoch {epoch}, {"its end" if done else f"after {consumed} samples"}'
                  for rank, ((epoch, consumed, done, _), _) in enumerate(everyone)]
            raise PlansDiffer(f"the ranks do not begin at the same place: {', '.join(of[:4])}. Load the same state on "
                              'all ranks, and call set_epoch on all of them')
        return all(agreed for _, agreed in everyone)

    def _check_start(self, wanted, start):
        if self._alone and are_together() and dist.get_world_size() > 1:
            raise RuntimeError('this sampler was made before init_process_group, so it is for one rank: each of the '
                               f'{dist.get_world_size()} ranks would read the whole list. Create it afterwards')
        if start.consumed is None:
            raise RuntimeError(f'cannot resume from this state: {NOT_TOLD}')
        return (self.epoch, start.consumed, start.finished, start.order), wanted == self._agreed

    def _compare(self, plan):
        """The length of the lists of a plan, which all ranks have."""
        summaries = self._all(lambda: [self.mount.summary(**plan)[key] for key in ('digest', 'samples', 'order')])
        self.layout, (self.digest, samples, self.order) = plan['layout'], summaries[0]
        other = [f'rank {rank} {digest}' for rank, (digest, *_) in enumerate(summaries) if digest != self.digest]
        if other:
            raise PlansDiffer(f'the ranks have different plans: rank 0 has {self.digest}; {len(other)} of the '
                              f"{self.num_replicas} ranks differ: {', '.join(other[:4])}")
        return -(-samples // self.num_replicas)

    def _leads(self):
        return self.rank == 0 or not self.together

    def _choose_layout(self, plan):
        """The layout that all ranks plan with: that of the exchange for this epoch, else the current one."""
        exchanged = self.exchange.layout(self.epoch) if self.exchange else None
        return exchanged or self.mount.summary(**plan)['layout']

    def _nodes(self):
        """The node of each rank. None if plans assume these nodes by default: equally many consecutive ranks per node.
        That keeps the request short when there are a thousand ranks."""
        if not self.together and self.num_replicas > 1:
            return None
        found = self._all(lambda: [self.mount.status()[key] for key in ('node', 'nodes')])
        nodes, each = [node for node, _ in found], self.num_replicas // found[0][1]
        return None if nodes == [node for node in range(found[0][1]) for _ in range(each)] else nodes

    def _all(self, make):
        """The results of `make` on all ranks. If `make` fails on one rank, this fails on all ranks with the reason. If
        a mount refused a request, it raises Refused."""
        if not self.together:
            return [make()]
        mine = [None, None, None]
        try:
            mine[0] = make()
        except Refused as error:
            mine[1:] = error.reason, (error.errno, error.filename)
        except Exception as error:  # of any kind: otherwise the other ranks would wait forever
            mine[1] = str(error) or repr(error)
        everyone = [None] * self.num_replicas
        dist.all_gather_object(everyone, mine, self.group)
        failed = [f'rank {rank}: {why}' for rank, (_, why, _) in enumerate(everyone) if why]
        refused = [refusal for _, _, refusal in everyone if refusal]
        if refused:
            number, control = refused[0]
            raise Refused(number, f"{len(failed)} of {self.num_replicas} ranks: {'; '.join(failed[:4])}", control)
        if failed:
            raise PlansDiffer(f"{len(failed)} of {self.num_replicas} ranks have no plan: {'; '.join(failed[:4])}")
        return [value for value, _, _ in everyone]

    def _read_list(self):
        if self._start.finished:
            return []
        plan = {**self._plan, 'digest': self.digest}  # fails with ESTALE unless it is the plan of all ranks
        if self.feed:
            try:
                found = self.mount.plan(rank=self.rank, feed=True, **plan)
                self._report = self._new_report(self.mount.has_records(self._plan['samples']))
                return found
            except Refused as error:
                if error.errno != errno.EINVAL or 'unknown key' not in error.reason:
                    raise
                self.feed = False  # an older mount, without this key
        if self._streams:
            self._report = self._new_report(True)
        return self.mount.plan(rank=self.rank, **plan)

    def _new_report(self, unseen):
        return Report(self.mount, unseen, epoch=self._plan['epoch'], rank=self.rank, digest=self.digest)

    def _plan_name(self, **keys):
        """This rank's list as a name below plan/."""
        return named(**{**self._plan, 'digest': self.digest, 'rank': self.rank}, **keys)

    def stream(self, worker=None, workers=None, **keys):
        """The path of this rank's epoch as one file: the bytes of its samples, in order. With `workers`, only the
        batches that worker `worker` of a DataLoader with that many workers would load. Use keys='unique' for tar
        archives in which samples have the same key.

        Call step() after each batch that is read from streams."""
        self._agree(self._next_start())
        if self._start.finished:
            raise RuntimeError(f'epoch {self.epoch} has been read to its end: call set_epoch for the next one')
        if self._pass is None:
            self._pass, self._steps, self._report = Positions(self), None, self._new_report(True)
        name = self._plan_name(reply='bytes', workers=workers, worker=worker, **keys)
        return os.path.join(self.mount.control, 'plan', name)

    def explain(self, step):
        """The samples of all ranks in a step of this pass, as tuples of Mount.names(). Steps count from 0, as
        enumerate(loader) does. This is not a collective call: any rank may call it. Only this step is dealt."""
        if self._pass is None or self._start.finished:
            raise RuntimeError('no pass has begun: ask for a step of the epoch that is trained')
        return self.mount.names(step=step, **self._plan)

    def _report_end(self, stopped):
        """Tell the mount that this list ends, so that its report is final. `stopped`: the pass may have ended early."""
        report, self._report = self._report, None
        if report:
            self._list = None  # for the mount, another pass is another list
            report.end(self._consumed(), stopped)

    def _consumed(self):
        """Samples of the list that the trainer has consumed in this pass. None: not known."""
        return None if self._steps is None else min(self._steps * self.batch_size, self.num_samples)

    def _report_position(self):
        if self._report:
            self._report.at(self._consumed())

    def __len__(self):
        """Number of samples in the current pass, else the next one. A resumed epoch has fewer."""
        return self.num_samples

    def __iter__(self):
        return Positions(self)

    def _begin(self, positions):
        """The list for an iterator. A loaded state is used for one pass only."""
        self._check_last()
        self._report_end(stopped=True)
        self._agree(positions.start or self._next_start())
        self._resume = None
        if self._list is None:
            self._list = self._read_list()
            self._name = self._plan_name()
            self.num_samples = len(self._list)
        self._pass, self._steps, self._counted = positions, None, False
        self._passes += 1
        return self._list

    def __getstate__(self):
        """A copy continues where this one is, on its own: without a process group, and without reports."""
        return {**self.__dict__, 'group': None, 'together': False, '_report': None}

    # --- what the trainer has consumed ---

    def over(self, loader):
        """Yield the batches of a loader that uses this sampler, or of an Echo of such a loader. A batch counts as
        consumed when it was yielded. Measures waits and steps. Raises ShardedAgain if the loader does not deliver the
        whole list of this rank, for example because a framework has sharded it again."""
        echo = loader if isinstance(loader, Echo) else None
        plain = echo.loader if echo else loader
        size = getattr(plain, 'batch_size', None)
        if size not in (None, self.batch_size):
            raise ValueError(f'the loader has batches of {size}, and the plan of {self.batch_size}: use the same '
                             'batch_size for both')
        if not getattr(plain, 'in_order', True):
            raise ValueError('in_order=False: the loader delivers batches out of order, so a state that is saved would '
                             'repeat samples and leave out others: use in_order=True')
        if echo:
            echo.set_epoch(self.epoch)
        self._factor = echo.factor if echo else 1
        before, taken, stopped = self._passes, 0, True
        self._drops_last = drops_last(plain)
        try:
            for batch in self.pace.over(loader):
                if taken == 0:
                    self._check_loader(plain, before)
                    self._check_batch(batch)
                taken += 1
                self._steps = echo.batches_used if echo else taken
                self._report_position()
                yield batch
            if taken == 0:
                self._check_loader(plain, before)
                self._steps = 0
            self._check_count(echo.batches_used if echo else taken)
            stopped = False
        finally:
            self._report_end(stopped)

    def step(self):
        """Report that the trainer has consumed a batch. For loops that do not use over()."""
        self._steps, self._counted = (self._steps or 0) + 1, True
        self._report_position()

    def _batches(self):
        """Number of batches of a pass. The one function that knows it."""
        whole, rest = divmod(self.num_samples, self.batch_size)
        return whole + (rest > 0 and not self._drops_last)

    def _check_loader(self, loader, before):
        if self._passes == before:
            raise ShardedAgain('the loader delivers batches, but has not asked this sampler for samples: a framework '
                               'replaced the sampler, or another rank reads for this one')
        for part in samplers_of(loader):
            if part is self:
                break
            ranks = getattr(part, 'num_processes', None) or getattr(part, 'num_replicas', 1)
            if ranks > 1:
                raise ShardedAgain(f'a framework has sharded the list of rank {self.rank} again: '
                                   f'{type(part).__name__} gives it one of {ranks} parts. Do not let it prepare this '
                                   f'loader: each of the {self.num_replicas} ranks already has its own list')
        try:
            length = len(loader)
        except TypeError:
            return
        self._check_count(length)

    def _check_batch(self, batch):
        """Accelerate's split_batches keeps the number of batches, but leaves one R-th of the samples in each. A collate
        function may make batches of any length, so only exactly one R-th is an error."""
        try:
            length = length_of(batch)
        except (TypeError, IndexError, KeyError, StopIteration):
            return
        if self.num_replicas > 1 and length * self.num_replicas == min(self.batch_size, self.num_samples):
            self._suspect(f'the first batch has {length} samples and not {self.batch_size}')

    def _suspect(self, what):
        """This can have other reasons, such as a collate function that packs samples, so it is no error."""
        if not self._warned:
            warnings.warn(f'{what}: if a framework has divided it among the {self.num_replicas} ranks, samples are '
                          'lost, because each rank already has its own list', RuntimeWarning, stacklevel=4)
        self._warned = True

    def _check_count(self, batches):
        if batches < self._batches():
            self._suspect(f'the list of rank {self.rank} has {self._batches()} batches of {self.batch_size}, but the '
                          f'loader delivers {batches}')

    def _check_last(self):
        """For trainers that call step(): the loader requested the whole list, and the trainer got one R-th."""
        if not self._counted or self._pass is None or self.num_replicas == 1 or not self._pass.ended():
            return
        all_of_it = self._batches()
        if self._steps < all_of_it and self._steps in (all_of_it // self.num_replicas,
                                                       -(-all_of_it // self.num_replicas)):
            self._check_count(self._steps)

    # --- ends and resumes ---

    def state_dict(self):
        """The position of the trainer. It is the same on every rank. Any number of ranks can resume from it."""
        if self._pass is None:
            return self._state(self._next_start())
        if self._steps is not None or self._pass.at == 0:
            return self._state(self._after(self._steps or 0))
        # torchdata's loader also saves the iterator's state, which has the position.
        if 'torchdata' not in sys.modules:
            raise RuntimeError(NOT_TOLD)
        return self._state(Start(None, False, None, None))

    @property
    def next_epoch(self):
        """The epoch to begin with or to resume. If the loaded state was saved at the end of an epoch, the next one."""
        return self.epoch + 1 if self._resume and self._resume.finished else self.epoch

    def load_state_dict(self, state):
        missing = sorted(STATE - set(state))
        if missing:
            raise ValueError(f"this is no state of a Sampler: it lacks {', '.join(missing)}")
        mine = self._meant()
        other = sorted(key for key in {*mine, *state['of']} if mine.get(key) != state['of'].get(key))
        if other:
            raise ValueError('this state was saved with other arguments: ' + ', '.join(
                f"{key} was {state['of'].get(key)} and is {mine.get(key)}" for key in other))
        self.epoch, self._pass = state['epoch'], None
        self.keys.pop('echo', None)
        if state['echo'] is not None:
            self.keys['echo'] = state['echo']
        # A batch has samples of its own node only, so the rest of the epoch needs the same owners.
        local = self.keys.get('mode') == 'local' and state['consumed'] and not state['finished']
        layout = state['layout'] if local else None
        self._resume = Start(state['consumed'], state['finished'], layout, state['order'])

    def _load_iterator(self, state):
        """The Start for an iterator with this state. If the saved iterator had ended, there is nothing to resume:
        torchdata makes a new iterator, for the epoch that was set meanwhile."""
        self.load_state_dict(state)
        start, self._resume = self._resume, None
        if start.finished and self._set is not None:
            self.epoch = self._set
        return start

    def _meant(self):
        """The arguments that determine the order, on any number of ranks."""
        exchange = {'exchange': str(self.exchange.fraction)} if self.exchange else {}
        return {key: value for key, value in {**self.keys, **exchange}.items() if key != 'echo' and value is not None}

    def _after(self, batches):
        """The Start after this many batches of each rank."""
        if batches >= self._batches():
            return Start(self._start.consumed, True, None, self.order)
        return Start(self._start.consumed + batches * self.batch_size * self.num_replicas, False, None, self.order)

    def _state(self, start):
        return {'epoch': self.epoch, 'consumed': start.consumed, 'finished': start.finished, 'order': start.order,
                'layout': self.layout, 'ranks': self.num_replicas, 'batch': self.batch_size,
                'echo': self.keys.get('echo'), 'of': self._meant()}

    # --- echo ---

    def ratio(self):
        """R, from 1 to 16: the time to load a batch divided by the time of a step, as rank 0 measured it in over()
        since the last call. A batch can be used R times while the next one is prepared."""
        echo = float(self.keys.get('echo') or 1) * self._factor
        return self._all(lambda: self.pace.ratio(echo))[0]

    def fix_echo(self):
        """From the next epoch on, the plan of all ranks contains each sample `ratio()` times."""
        self.keys['echo'] = self.ratio()


def numbers_of(array):
    """The integers of an array. At most HELD of them are Python objects at the same time."""
    for at in range(0, len(array), HELD):
        yield from array[at:at + HELD].tolist()


class Positions:
    """One pass over the list. It requests the list at its first step and not earlier, because loaders that resume from
    a state make iterators that they never use. torchdata's StatefulDataLoader saves its state after each batch."""

    def __init__(self, sampler):
        self.sampler, self.start, self.list, self.numbers, self.at = sampler, None, None, None, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.list is None:
            self.list = self.sampler._begin(self)
            self.epoch, self.plan = self.sampler.epoch, self.sampler._name
        if self.numbers is None:
            self.numbers = numbers_of(self.list[self.at:])
        number = next(self.numbers)
        self.at += 1
        return Dealt(number, self.epoch, self.at - 1, self.plan)

    def ended(self):
        return self.list is not None and self.at == len(self.list)

    def state_dict(self):
        if self.list is None:
            return self.sampler._state(self.start or self.sampler._next_start())
        batches = -(-self.at // self.sampler.batch_size) if self.ended() else self.at // self.sampler.batch_size
        return self.sampler._state(self.sampler._after(batches))

    def load_state_dict(self, state):
        self.start, self.list, self.numbers, self.at = self.sampler._load_iterator(state), None, None, 0

    def __getstate__(self):
        return {**self.__dict__, 'numbers': None}
