"""The Python package by itself: what it computes, and the sampler over a mount that is made up."""
import collections
import errno
import os
import pickle
import re
import sys
import threading
import unittest
import unittest.mock
import warnings

import numpy

import dealfs
import tap
from dealfs.echo import echoed, uses_before, uses_of
from dealfs.mount import unescape, written

TORCH_CAME = 'torch' in sys.modules

import torch  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, default_collate  # noqa: E402

import restoring  # noqa: E402
from dealfs.torch import Echo, Pace, PlansDiffer, Sampler, ShardedAgain  # noqa: E402
from dealfs.torch.echo import length_of, samples_of  # noqa: E402


class Package(unittest.TestCase):
    def test_without_dealfs_torch_nothing_imports_torch(self):
        self.assertFalse(TORCH_CAME)

    def test_version_is_that_of_the_programs(self):
        with open(f'{sys.argv[1]}/configure.ac') as f:
            self.assertEqual(re.search(r'AC_INIT\(\[dealfs\], \[(.*?)\]', f.read())[1], dealfs.__version__)

    def test_it_is_written_for_python_3_8(self):
        import ast
        for folder, _, names in os.walk(f'{sys.argv[1]}/etc/python/dealfs'):
            for name in names:
                if name.endswith('.py'):
                    with open(f'{folder}/{name}') as f:
                        ast.parse(f.read(), name, feature_version=(3, 8))


class Requests(unittest.TestCase):
    def test_values_as_they_are_written(self):
        for value, expected in ((True, 'yes'), (False, 'no'), (3, '3'), (0.1, '0.1'), (1e-6, '0.000001'), (2.0, '2'),
                                ([2, 2, 0], '2,2,0'), ('a b,c/d\n%', 'a%20b%2Cc%2Fd%0A%25'), (b'\xff', '%FF'),
                                (os.fsdecode(b'\xff'), '%FF'), (numpy.int64(7), '7')):
            self.assertEqual(written(value), expected)

    def test_names_are_unescaped(self):
        self.assertEqual(unescape(rb'a\n\\n\r'), 'a\n\\n\r')
        self.assertEqual(os.fsencode(unescape(b'\xff\xc3')), b'\xff\xc3')

    def test_a_refusal_keeps_number_and_reason_also_when_pickled(self):
        for refused in (dealfs.Refused(errno.ERANGE, 'too far', '/m: plan'),
                        pickle.loads(pickle.dumps(dealfs.Refused(errno.ERANGE, 'too far', '/m: plan')))):
            self.assertEqual((refused.errno, refused.reason), (errno.ERANGE, 'too far'))
            self.assertEqual(str(refused), '/m: plan: too far')

    def test_no_mount(self):
        for path in ('/', '/nowhere/at/all', '/etc/passwd'):
            self.assertRaises(dealfs.NotMounted, dealfs.Mount, path)
            with self.assertRaises(dealfs.NotMounted) as caught:
                dealfs.Mount.around(path)
            self.assertIn(path, str(caught.exception))


class Echoes(unittest.TestCase):
    def test_uses_add_up(self):
        for factor in (1, 1.5, 2, 2.25, 3.1, 1.000001):
            uses = [uses_of(i, factor) for i in range(1000)]
            self.assertEqual(sum(uses), uses_before(1000, factor))
            self.assertEqual(uses_before(1000, factor), round(factor * 1e6) * 1000 // 1000000)
            self.assertLessEqual(max(uses) - min(uses), 1)

    def test_factors_out_of_range(self):
        for factor in (0, 0.99, 1001, -1):
            self.assertRaises(ValueError, uses_of, 0, factor)

    def test_without_a_buffer_uses_stand_in_a_row(self):
        self.assertEqual(list(echoed('abcd', 1.5)), list('abbcdd'))

    def test_the_buffer_holds_no_more_and_loses_nothing(self):
        for buffer in (1, 2, 7, 64, 10000):
            drawn = []
            out = []
            for item in echoed(map(lambda i: drawn.append(i) or i, range(200)), 2.5, buffer):
                out.append(item)
                self.assertLessEqual(uses_before(len(drawn), 2.5) - len(out), buffer + 2)
            self.assertEqual(collections.Counter(out), {i: uses_of(i, 2.5) for i in range(200)})

    def test_the_same_each_time_and_another_with_another_seed(self):
        a, b, c = (list(echoed(range(100), 2, 32, seed)) for seed in ((1, 2), (1, 2), (1, 3)))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_what_it_was_in_the_first_version(self):
        self.assertEqual(list(echoed(range(6), 1.5, 4, (7, 0, 3))), GOLDEN)


GOLDEN = [1, 1, 3, 4, 2, 3, 5, 5, 0]


class Batches(unittest.TestCase):
    def test_batches_are_taken_apart_and_put_together_again(self):
        pair = collections.namedtuple('pair', 'x y')
        for samples in ([(torch.ones(2) * i, i) for i in range(3)], [[torch.ones(2) * i, f'name{i}'] for i in range(3)],
                        [{'image': torch.ones(2) * i, 'more': (i, [2.0 * i])} for i in range(3)],
                        [pair(torch.ones(2) * i, i) for i in range(3)], [torch.ones(1) * i for i in range(3)]):
            batch = default_collate(samples)
            self.assertEqual(length_of(batch), 3)
            again = default_collate(samples_of(batch))
            self.assertEqual(str(again), str(batch))
            self.assertIs(type(again), type(batch))

    def test_arrays(self):
        self.assertEqual(str(samples_of(numpy.arange(6).reshape(3, 2))), str(list(numpy.arange(6).reshape(3, 2))))

    def test_a_sample_does_not_hold_its_batch(self):
        batch = torch.zeros(100, 10)
        self.assertNotEqual(samples_of(batch)[3].storage().data_ptr(), batch.storage().data_ptr())


class EchoOfALoader(unittest.TestCase):
    def loader(self, count=50, batch=8, **keys):
        return DataLoader([(i, torch.ones(1) * i) for i in range(count)], batch, **keys)

    def test_examples(self):
        for drop_last in (False, True):
            for workers in (0, 2):
                loader = self.loader(drop_last=drop_last, num_workers=workers)
                echo = Echo(loader, 2.5, buffer=20)
                batches = list(echo)
                sizes = [len(numbers) for numbers, _ in batches]
                fresh = 48 if drop_last else 50
                self.assertEqual(len(batches), len(echo))
                self.assertEqual((set(sizes[:-1]), sum(sizes)), ({8}, uses_before(fresh, 2.5)))
                numbers = torch.cat([numbers for numbers, _ in batches]).tolist()
                self.assertEqual(collections.Counter(numbers), {i: uses_of(i, 2.5) for i in range(fresh)})
                self.assertEqual(torch.cat([values for _, values in batches]).flatten().tolist(), numbers)
                self.assertEqual(echo.batches_used, len(loader))

    def test_batches(self):
        loader = self.loader()
        echo = Echo(loader, 3, buffer=32, at='batch')
        seen = [tuple(numbers.tolist()) for numbers, _ in echo]
        whole = [tuple(numbers.tolist()) for numbers, _ in loader]
        self.assertEqual(len(seen), len(echo))
        self.assertEqual(collections.Counter(seen), {batch: 3 for batch in whole})
        self.assertNotEqual(seen, [batch for batch in whole for _ in range(3)])

    def test_what_counts_as_used_has_been_handed_out(self):
        for at in ('example', 'batch'):
            echo = Echo(self.loader(), 2, buffer=24, at=at)
            seen, last = set(), 0
            for numbers, _ in echo:
                seen.update(numbers.tolist())
                self.assertTrue(seen.issuperset(range(min(8 * echo.batches_used, 50))))
                self.assertGreaterEqual(echo.batches_used, last)
                last = echo.batches_used
            self.assertEqual(last, 7)

    def test_epochs_are_shuffled_in_other_ways(self):
        echo = Echo(self.loader(), 2, buffer=24)
        first, again = ([n.tolist() for n, _ in echo] for _ in range(2))
        echo.set_epoch(1)
        self.assertEqual(first, again)
        self.assertNotEqual(first, [n.tolist() for n, _ in echo])

    def test_an_empty_loader(self):
        echo = Echo(self.loader(0), 2)
        self.assertEqual((list(echo), len(echo)), ([], 0))

    def test_bad_words(self):
        self.assertRaises(ValueError, Echo, [], 0.5)
        self.assertRaises(ValueError, Echo, [], 2, at='sample')


class PaceOfALoader(unittest.TestCase):
    def test_ratio(self):
        pace = Pace()
        for wait, step in ((3, 1), (1, 1), (0, 1), (100, 1)):  # as many upstream steps as the paper has downstream ones
            pace.wait, pace.step = wait, step
            self.assertEqual(pace.ratio(2), min(2 * (wait + step), 16))
        self.assertEqual(pace.ratio(), 1)

    def test_waits_and_steps_are_told_apart(self):
        class Clock:
            now = 0.0

        def slow():
            for _ in range(3):
                Clock.now += 5
                yield
        from dealfs.torch import pace as module
        real, module.time = module.time, type('time', (), {'monotonic': staticmethod(lambda: Clock.now)})
        try:
            pace = Pace()
            for _ in pace.over(slow()):
                Clock.now += 2
        finally:
            module.time = real
        self.assertEqual((pace.wait, pace.step), (15, 6))


class MadeUp(dealfs.Mount):
    """A mount that deals regular lists, of an order that only the epoch makes."""

    def __init__(self, count, old=False):
        self.path, self.count, self.old, self.asked, self.node = '/made/up', count, old, [], 3
        self.exchanges, self.refuses, self.told = [], False, []
        self.hangs = None  # an event, until which an exchange does not reply

    def status(self):
        return {'node': self.node, 'nodes': 4}

    def ask(self, verb, *_, **keys):
        self.told.append((verb, keys))

    def exchange(self, epoch, fraction, seed, wait):
        self.exchanges.append((epoch, fraction, seed, wait))
        if self.hangs:
            self.hangs.wait()
        if self.refuses:
            raise dealfs.Refused(errno.ETIMEDOUT, 'node 2 does not answer', '/made/up: exchange')
        return {'layout': f'exchanged for {epoch}'}

    def order(self, epoch, skip, ranks, tail='pad', **_):
        order = numpy.random.RandomState(epoch).permutation(self.count)[skip:]
        if tail == 'drop':
            return order[:len(order) - len(order) % ranks]
        return numpy.resize(order, -(-len(order) // ranks) * ranks) if len(order) else order

    def ask_about(self, keys):
        self.asked.append(keys)
        if keys['count'] != self.count:
            raise dealfs.Refused(errno.EINVAL, f"the list has {self.count} samples", '/made/up: plan')
        if self.old and 'feed' in keys:
            raise dealfs.Refused(errno.EINVAL, 'unknown key `feed` for `plan`', '/made/up: plan')

    def summary(self, **keys):
        self.ask_about(keys)
        return {'layout': 'abc', 'digest': str(sorted(keys.items())), 'order': 'one',
                'samples': len(self.order(**keys))}

    def plan(self, rank, **keys):
        self.ask_about({**keys, 'rank': rank})
        return self.order(**keys)[rank::keys['ranks']]


def make(count=50, batch=4, ranks=1, rank=0, mount=None, **keys):
    return Sampler(range(count), ranks, rank, batch_size=batch, mount=mount or MadeUp(count), **keys)


class TheSampler(unittest.TestCase):
    def test_each_epoch_once(self):
        sampler = make()
        for epoch in (0, 0, 1):
            sampler.set_epoch(epoch)
            self.assertEqual(sorted(sampler), list(range(50)))
        self.assertEqual(list(sampler), MadeUp(50).order(1, 0, 1).tolist())

    def test_it_is_a_distributed_sampler(self):
        sampler = make(ranks=3, rank=1)
        self.assertIsInstance(sampler, DistributedSampler)
        self.assertEqual(len(sampler), 17)
        self.assertEqual(len(list(sampler)), 17)
        self.assertEqual((sampler.num_samples, sampler.total_size, sampler.num_replicas, sampler.rank), (17, 51, 3, 1))
        self.assertEqual(len(list(make(ranks=3, rank=1, drop_last=True))), 16)

    def test_what_is_asked_for(self):
        sampler = make(seed=5, mode='local')
        list(sampler)
        asked = sampler.mount.asked[-1]
        self.assertEqual({key: asked[key] for key in ('seed', 'mode', 'feed', 'layout', 'nodes', 'batch')},
                         {'seed': 5, 'mode': 'local', 'feed': True, 'layout': 'abc', 'nodes': [3], 'batch': 4})
        self.assertFalse(any('feed' in asked for asked in sampler.mount.asked[:-1]))
        sampler = make(shuffle=False)
        list(sampler)
        self.assertEqual(sampler.mount.asked[-1]['order'], 'natural')
        self.assertNotIn('seed', sampler.mount.asked[-1])

    def test_samples_are_exchanged_before_the_next_epoch(self):
        sampler = make(seed=5, mode='local', exchange=0.1, exchange_wait=7)
        mount = sampler.mount
        for epoch in (3, 4, 5):
            sampler.set_epoch(epoch)
            list(sampler)
            self.assertNotIn('exchange', mount.asked[-1])
            self.assertEqual(mount.asked[-1]['layout'], 'abc' if epoch == 3 else f'exchanged for {epoch}')
        sampler.exchange._thread.join()
        self.assertEqual(mount.exchanges, [(epoch, 0.1, 5, 7) for epoch in (4, 5, 6)])
        sampler.set_epoch(9)  # the exchange for epoch 6 is not for this one
        self.assertEqual((sampler.layout, sampler.state_dict()['of']['exchange']), ('abc', '0.1'))

    def test_an_exchange_that_fails_costs_one_warning(self):
        sampler = make(mode='local', exchange='0.1')
        sampler.mount.refuses = True
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            for epoch in range(3):
                sampler.set_epoch(epoch)
                self.assertEqual(sorted(sampler), list(range(50)))
                self.assertEqual(sampler.layout, 'abc')
        self.assertEqual([str(one.message) for one in caught], [
            'no samples were exchanged for epoch 1, it uses the current layout: '
            '/made/up: exchange: node 2 does not answer'])

    def test_a_mount_that_does_not_reply_is_not_waited_for(self):
        sampler = make(mode='local', exchange='0.1', exchange_wait=0)
        sampler.mount.hangs = threading.Event()
        sampler.set_epoch(0)
        list(sampler)
        with self.assertWarnsRegex(RuntimeWarning, 'epoch 1, .* the mount did not reply within 0 s'):
            sampler.set_epoch(1)
        self.assertEqual(sampler.layout, 'abc')
        sampler.mount.hangs.set()

    def test_only_local_plans_exchange(self):
        with self.assertRaisesRegex(ValueError, "only with mode='local'"):
            make(exchange=0.1)
        with self.assertRaisesRegex(ValueError, 'needs the process group of all ranks'):
            make(ranks=4, mode='local', exchange=0.1)
        self.assertIsNone(make(mode='local', exchange='0').exchange)

    def test_nodes_are_named_where_they_are_not_as_expected(self):
        sampler = make(ranks=8)
        sampler.together = True
        for nodes, expected in (([0, 0, 1, 1, 2, 2, 3, 3], None), ([0, 1, 2, 3] * 2, [0, 1, 2, 3] * 2),
                                ([1, 1, 0, 0, 2, 2, 3, 3], [1, 1, 0, 0, 2, 2, 3, 3])):
            sampler._all = lambda make: [[node, 4] for node in nodes]
            self.assertEqual(sampler._nodes(), expected)
        sampler._all, sampler.num_replicas = lambda make: [[0, 4], [1, 4]], 2
        self.assertEqual(sampler._nodes(), [0, 1])

    def test_a_failure_on_one_rank_is_one_on_all(self):
        def gather(everyone, mine, group):
            everyone[:] = [[1, None, None], mine]
        def fail():
            raise OSError('no answer')
        sampler = make(ranks=2)
        sampler.together = True
        with unittest.mock.patch('torch.distributed.all_gather_object', gather):
            self.assertEqual(sampler._all(lambda: 2), [1, 2])
            with self.assertRaisesRegex(PlansDiffer, '1 of 2 ranks have no plan: rank 1: no answer'):
                sampler._all(fail)

    def test_a_pass_is_asked_for_once(self):
        sampler = make()
        sampler.set_epoch(2)
        list(sampler)
        asked = len(sampler.mount.asked)
        list(sampler)
        sampler.set_epoch(2)
        list(sampler)
        self.assertEqual(len(sampler.mount.asked), asked + 2)  # to the mount each pass is a list of its own
        self.assertEqual([verb for verb, _ in sampler.mount.told], ['end', 'end'])

    def test_a_mount_that_does_not_know_feed(self):
        sampler = make(mount=MadeUp(50, old=True))
        self.assertEqual(sorted(sampler), list(range(50)))
        sampler.set_epoch(1)
        list(sampler)
        self.assertEqual(len([asked for asked in sampler.mount.asked if 'feed' in asked]), 1)

    def test_another_number_of_samples_is_refused_in_words(self):
        with self.assertRaisesRegex(dealfs.Refused, 'the list has 49 samples'):
            make(mount=MadeUp(49)).set_epoch(0)

    def test_a_dataset_without_root_needs_a_mount(self):
        with self.assertRaisesRegex(TypeError, 'give mount='):
            Sampler(range(5), batch_size=2)
        with self.assertRaisesRegex(dealfs.NotMounted, '/usr'):
            Sampler(type('Folder', (list,), {'root': '/usr'})(), batch_size=2)

    def test_another_batch_size_is_noticed(self):
        sampler = make()
        with self.assertRaisesRegex(ValueError, 'batches of 5, and the plan of 4'):
            next(sampler.over(DataLoader(range(50), 5, sampler=sampler)))
        loader = DataLoader(range(50), 4, sampler=sampler)
        loader.in_order = False  # an argument since PyTorch 2.6
        with self.assertRaisesRegex(ValueError, 'in_order=False'):
            next(sampler.over(loader))

    def test_echo_is_fixed_by_what_was_measured(self):
        sampler = make()
        sampler.pace.wait, sampler.pace.step = 3, 1
        sampler.fix_echo()
        self.assertEqual(sampler.keys['echo'], 4)
        sampler.pace.wait, sampler.pace.step = 1, 1
        self.assertEqual(sampler.ratio(), 8)
        for _ in sampler.over(Echo(DataLoader(range(50), 4, sampler=sampler), 2)):
            break
        sampler.pace.wait, sampler.pace.step = 0.25, 1
        self.assertEqual(sampler.ratio(), 10)


def batches_of(sampler, workers=0, **keys):
    return DataLoader(range(50), 4, sampler=sampler, num_workers=workers, **keys)


class Resume(unittest.TestCase):
    def ranks(self, count, state=None):
        samplers = [make(ranks=count, rank=rank) for rank in range(count)]
        for sampler in samplers:
            if state:
                sampler.load_state_dict(state)
            sampler.set_epoch(7)
        return samplers

    def test_by_what_the_trainer_consumed_not_by_what_was_asked_for(self):
        sampler, seen = make(), []
        for batch in sampler.over(batches_of(sampler, workers=2, prefetch_factor=3)):
            seen += batch.tolist()
            self.assertEqual(sampler.state_dict()['consumed'], len(seen))
            if len(seen) == 12:
                break
        self.assertGreater(sampler._pass.at, 12)
        other = make()
        other.load_state_dict(sampler.state_dict())
        self.assertEqual(sorted(seen + list(other)), list(range(50)))

    def test_other_numbers_of_ranks_read_each_sample_once(self):
        for before, after in ((2, 3), (3, 2), (4, 1), (1, 5)):
            seen, states = [], []
            for sampler in self.ranks(before):
                for steps, batch in enumerate(sampler.over(batches_of(sampler)), 1):
                    seen += batch.tolist()
                    if steps == 2:
                        break
                states.append(sampler.state_dict())
            self.assertEqual(len({str({**state, 'layout': 0}) for state in states}), 1)
            rest = [list(sampler) for sampler in self.ranks(after, states[-1])]
            self.assertEqual(set(seen).intersection(*rest), set())
            found = collections.Counter(seen + sum(rest, []))
            self.assertEqual(sorted(found), list(range(50)))
            self.assertEqual(sum(found.values()) - 50, (8 * before - 50) % after)  # what fills up the last step

    def test_the_trainer_may_count_itself(self):
        sampler = make()
        for steps, _ in enumerate(batches_of(sampler, workers=2), 1):
            sampler.step()
            if steps == 3:
                break
        self.assertEqual(sampler.state_dict()['consumed'], 12)

    def test_nobody_counts(self):
        sampler = make()
        next(iter(batches_of(sampler)))
        with unittest.mock.patch.dict(sys.modules):
            sys.modules.pop('torchdata', None)
            with self.assertRaisesRegex(RuntimeError, 'sampler.over'):
                sampler.state_dict()

    def test_the_end_of_an_epoch(self):
        sampler = make()
        sampler.set_epoch(3)
        for _ in sampler.over(batches_of(sampler)):
            pass
        other = make()
        other.load_state_dict(pickle.loads(pickle.dumps(sampler.state_dict())))
        self.assertEqual((sampler.next_epoch, other.epoch, other.next_epoch), (3, 3, 4))
        other.set_epoch(3)
        self.assertEqual((list(other.over(batches_of(other))), len(other)), ([], 0))
        other.set_epoch(4)
        self.assertEqual(len(list(other)), 50)

    def test_a_state_is_for_one_pass_and_for_its_epoch(self):
        state = {**make().state_dict(), 'epoch': 2, 'consumed': 20}
        sampler = make()
        sampler.load_state_dict(state)
        self.assertEqual([len(list(sampler)) for _ in range(2)], [30, 50])
        sampler.load_state_dict(state)
        self.assertEqual(sampler.state_dict()['consumed'], 20)
        sampler.set_epoch(3)
        self.assertEqual(sampler.state_dict()['consumed'], 0)
        self.assertEqual(len(list(sampler)), 50)

    def test_a_loader_that_leaves_out_the_last_batch(self):
        sampler = make()
        loader = batches_of(sampler, drop_last=True)
        sampler.set_epoch(3)
        self.assertEqual(len(list(sampler.over(loader))), 12)
        self.assertTrue(sampler.state_dict()['finished'])
        other = make()
        other.load_state_dict({**sampler.state_dict(), 'finished': False, 'consumed': 48})
        other.set_epoch(3)
        self.assertEqual(list(other.over(batches_of(other, drop_last=True))), [])
        self.assertTrue(other.state_dict()['finished'])

    def test_a_copy_of_a_sampler_in_a_pass(self):
        sampler = make()
        loader = batches_of(sampler, workers=2)
        seen = [batch for _, batch in zip(range(3), sampler.over(loader))]
        numbers = iter(make())
        head = [next(numbers) for _ in range(20)]
        rest = pickle.loads(pickle.dumps(numbers))
        self.assertEqual(head + list(rest), list(make()))
        state = sampler.state_dict()
        self.assertEqual((len(seen), state['consumed']), (3, 12))
        self.assertEqual(pickle.loads(pickle.dumps(sampler)).state_dict(), state)
        sampler = make(mode='local', exchange=0.1)
        sampler.set_epoch(0)
        self.assertEqual(pickle.loads(pickle.dumps(sampler)).state_dict(), sampler.state_dict())

    def test_a_state_names_the_order_which_the_mount_checks(self):
        sampler = make()
        for _ in sampler.over(batches_of(sampler)):
            break
        self.assertEqual(sampler.state_dict()['order'], 'one')
        other = make()
        other.load_state_dict({**sampler.state_dict(), 'order': 'another'})
        other.set_epoch(0)
        self.assertEqual(other.mount.asked[-1]['resume'], 'another')
        other.set_epoch(1)
        self.assertIsNone(other.mount.asked[-1]['resume'])

    def test_no_state(self):
        with self.assertRaisesRegex(ValueError, 'it lacks batch, consumed, echo, epoch, finished, layout, of, order'):
            make().load_state_dict({})

    def test_ranks_that_begin_at_different_places(self):
        sampler = make(ranks=2)
        sampler.together = True
        for place, said in (((4, 8, False, None), 'rank 0 epoch 4, after 8 samples, rank 1 epoch 4, after 0 samples'),
                            ((4, 0, True, None), 'rank 0 epoch 4, its end, rank 1 epoch 4, after 0')):
            def gather(everyone, mine, group):
                everyone[:] = [[(place, False), None, None], mine]
            with unittest.mock.patch('torch.distributed.all_gather_object', gather):
                with self.assertRaisesRegex(PlansDiffer, said):
                    sampler.set_epoch(4)

    def test_a_state_of_another_order_is_refused(self):
        with self.assertRaisesRegex(ValueError, 'seed was 0 and is 1'):
            make(seed=1).load_state_dict(make().state_dict())

    def test_an_echo_goes_with_the_state(self):
        sampler = make(echo=1.5)
        other = make()
        other.load_state_dict(sampler.state_dict())
        self.assertEqual(other.keys['echo'], 1.5)

    def test_local_lists_are_gone_on_with_in_their_layout(self):
        sampler = make(mode='local')
        for _ in sampler.over(batches_of(sampler)):
            break
        state = {**sampler.state_dict(), 'layout': 'before'}
        for ranks in 1, 2:
            other = make(mode='local', ranks=ranks)
            other.load_state_dict(state)
            list(other)
            self.assertEqual(other.mount.asked[-1]['layout'], 'before')

    def test_what_an_echo_holds_back_is_not_lost(self):
        for at in ('example', 'batch'):
            sampler, seen = make(), set()
            for steps, batch in enumerate(sampler.over(Echo(batches_of(sampler), 2, buffer=16, at=at)), 1):
                seen.update(batch.tolist())
                if steps == 12:
                    break
            other = make()
            other.load_state_dict(sampler.state_dict())
            self.assertLess(len(other.mount.order(0, sampler.state_dict()['consumed'], 1)), 50)
            self.assertEqual(seen | set(other), set(range(50)))

    def test_a_stateful_loader(self):
        for workers in (0, 2):
            for steps in (0, 1, 5, 7):
                sampler = make(50, 4, 2, 1)
                sampler.set_epoch(4)
                whole = list(sampler)
                loader = restoring.StatefulDataLoader(range(50), 4, sampler=sampler, num_workers=workers)
                seen = []
                for done, batch in enumerate(loader if steps else (), 1):
                    seen += batch.tolist()
                    if done == steps:
                        break
                state = pickle.loads(pickle.dumps(loader.state_dict()))
                sampler = make(50, 4, 2, 1)
                loader = restoring.StatefulDataLoader(range(50), 4, sampler=sampler, num_workers=workers)
                loader.load_state_dict(state)
                for batch in sampler.over(loader):
                    seen += batch.tolist()
                self.assertEqual(seen, whole)
                sampler.set_epoch(5)
                self.assertEqual(len(list(loader)), 7)

    def test_a_stateful_loader_whose_loop_had_ended(self):
        for workers in (0, 2):
            sampler = make()
            sampler.set_epoch(4)
            loader = restoring.StatefulDataLoader(range(50), 4, sampler=sampler, num_workers=workers)
            self.assertEqual(len(list(sampler.over(loader))), 13)
            state = pickle.loads(pickle.dumps(loader.state_dict()))
            for epoch in (4, 5):
                sampler = make()
                loader = restoring.StatefulDataLoader(range(50), 4, sampler=sampler, num_workers=workers)
                loader.load_state_dict(state)
                sampler.set_epoch(epoch)
                seen = torch.cat(list(sampler.over(loader))).tolist()
                self.assertEqual(seen, sampler.mount.order(epoch, 0, 1).tolist())


# --- what frameworks do with a loader that they take for one of the whole dataset ---

class EveryRth(BatchSampler):
    """Keeps one of R batches: Accelerate's BatchSamplerShard, which has these attributes."""

    def __init__(self, inner, ranks, rank):
        self.batch_sampler, self.num_processes, self.process_index = inner, ranks, rank

    def __iter__(self):
        return (batch for i, batch in enumerate(self.batch_sampler) if i % self.num_processes == self.process_index)

    def __len__(self):
        return len(self.batch_sampler) // self.num_processes


class Split(EveryRth):
    """Keeps a part of each batch: the same with split_batches."""

    def __iter__(self):
        size = self.batch_sampler.batch_size // self.num_processes
        return (batch[self.process_index * size:][:size] for batch in self.batch_sampler)

    def __len__(self):
        return len(self.batch_sampler)


class Pairs(BatchSampler):
    """Batches of another size, as one that packs samples by their length makes them."""

    def __iter__(self):
        batches = list(super().__iter__())
        return (a + b for a, b in zip(batches[::2], batches[1::2]))

    def __len__(self):
        return super().__len__() // 2


class Materialised(DistributedSampler):
    """A DistributedSampler over another sampler's list: Lightning, for a sampler that is none."""

    def __init__(self, inner, ranks, rank):
        super().__init__(list(range(len(inner))), ranks, rank, shuffle=False)
        self.inner = inner

    def __iter__(self):
        every = list(self.inner)
        return (every[i] for i in super(Materialised, self).__iter__())


class SecondSharding(unittest.TestCase):
    def sampler(self):
        sampler = make(48, ranks=2, rank=1)
        sampler.set_epoch(0)
        return sampler

    def assert_noticed(self, sampler, loader, what='sharded the list of rank 1 again'):
        with self.assertRaisesRegex(ShardedAgain, what):
            next(sampler.over(loader))

    def test_one_of_r_batches(self):
        sampler = self.sampler()
        inner = BatchSampler(sampler, 4, False)
        self.assert_noticed(sampler, DataLoader(range(48), batch_sampler=EveryRth(inner, 2, 1)))

    def test_one_rth_of_each_batch(self):
        sampler = self.sampler()
        inner = BatchSampler(sampler, 4, False)
        self.assert_noticed(sampler, DataLoader(range(48), batch_sampler=Split(inner, 2, 1)))
        for odd in (None, 3, (), {}, [None], 'text', {'a': 7}):
            sampler._check_batch(odd)

    def test_one_of_r_samples(self):
        sampler = self.sampler()
        self.assert_noticed(sampler, DataLoader(range(48), 4, sampler=Materialised(sampler, 2, 1), num_workers=1))

    def test_another_sampler_in_its_place(self):
        sampler = self.sampler()
        self.assert_noticed(sampler, DataLoader(range(48), 4, sampler=DistributedSampler(range(48), 2, 1)),
                            'not asked this sampler')

    def test_another_rank_reads_for_it(self):
        sampler = self.sampler()
        self.assert_noticed(sampler, iter([torch.ones(4)]), 'not asked this sampler')
        with self.assertRaisesRegex(ShardedAgain, 'not asked this sampler'):
            list(sampler.over([]))

    def test_a_loader_that_does_not_say_how_long_it_is(self):
        sampler = self.sampler()
        inner = BatchSampler(sampler, 4, False)
        with self.assertWarnsRegex(RuntimeWarning, '6 batches.*delivers 3'):
            list(sampler.over(batch for i, batch in enumerate(inner) if i % 2))

    def test_where_the_trainer_counts_itself(self):
        sampler = self.sampler()
        for _ in DataLoader(range(48), batch_sampler=EveryRth(BatchSampler(sampler, 4, False), 2, 1)):
            sampler.step()
        with self.assertWarnsRegex(RuntimeWarning, '6 batches.*delivers 3'):
            sampler.set_epoch(1)

    def test_a_suspicion_is_no_error_and_is_told_once(self):
        sampler = self.sampler()
        for loader in (DataLoader(range(48), batch_sampler=Pairs(sampler, 4, False)),
                       DataLoader(range(48), 4, sampler=sampler, collate_fn=lambda batch: torch.tensor(batch[:2]))):
            sampler._warned = False
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter('always')
                for epoch in range(3):
                    sampler.set_epoch(epoch)
                    list(sampler.over(loader))
            self.assertEqual(len(caught), 1)

    def test_no_false_alarm(self):
        for drop_last in (False, True):
            sampler = make(50, ranks=2, rank=1)
            loader = DataLoader(range(50), 4, sampler=sampler, drop_last=drop_last, num_workers=2)
            for epoch in range(3):
                sampler.set_epoch(epoch)
                for steps, _ in enumerate(sampler.over(loader), 1):
                    if epoch == 1 and steps == 3:
                        break
            self.assertEqual(steps, 6 if drop_last else 7)
            for _ in sampler.over(Echo(loader, 2)):
                pass


if __name__ == '__main__':
    sys.exit(tap.run_units())
