"""torchdata's StatefulDataLoader, or where there is no torchdata a small one that asks of a sampler what it asks.

It saves the state of the sampler and of the iterator over it whenever it draws a batch, which with workers is long
before that batch is handed out, and keeps each state until its batch is. A state is loaded into the sampler first, then
into a new iterator; where the loop had ended another one is made after that."""
import collections
import sys
import types

from torch.utils.data import BatchSampler, DataLoader

try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    sys.modules['torchdata'] = types.ModuleType('torchdata')

    class Drawing:
        def __init__(self, batches):
            self.batches, self.items = batches, iter(batches.sampler)

        def load(self, state):
            self.batches.sampler.load_state_dict(state['sampler'])
            self.items = iter(self.batches.sampler)
            self.items.load_state_dict(state['items'])
            if state['finished']:
                self.items = iter(self.batches.sampler)

        def __iter__(self):
            return self

        def __next__(self):
            pending, self.batches.pending = self.batches.pending, None
            if pending:
                self.load(pending)
            batch = [item for _, item in zip(range(self.batches.batch_size), self.items)]
            if not batch:
                raise StopIteration
            self.batches.drawn.append(self.state_dict())
            return batch

        def state_dict(self):
            return {'sampler': self.batches.sampler.state_dict(), 'items': self.items.state_dict(), 'finished': False}

    class Batches(BatchSampler):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.pending, self.drawn = None, collections.deque()

        def __iter__(self):
            self.drawn.clear()
            return Drawing(self)

    class StatefulDataLoader(DataLoader):
        def __init__(self, dataset, batch_size, sampler, num_workers):
            super().__init__(dataset, batch_sampler=Batches(sampler, batch_size, False), num_workers=num_workers)
            self.state = None

        def __iter__(self):
            for batch in super().__iter__():
                self.state = self.batch_sampler.drawn.popleft()
                yield batch
            self.state['finished'] = True

        def state_dict(self):
            return self.state or iter(self.batch_sampler).state_dict()

        def load_state_dict(self, state):
            self.state = self.batch_sampler.pending = state
