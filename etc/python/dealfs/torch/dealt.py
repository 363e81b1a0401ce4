"""The number of a sample, and where in an epoch it is."""


class Dealt(int):
    """The number of a sample, as a Sampler yields it. It is an int for everybody. Records reads by what it carries,
    also in worker processes that were started before the epoch.

    epoch       of the list that it is from
    position    in that list: of this rank, in this pass
    plan        the list's name below plan/ of the mount"""

    def __new__(cls, sample, epoch, position, plan):
        self = int.__new__(cls, sample)
        self.epoch, self.position, self.plan = epoch, position, plan
        return self

    def __reduce__(self):
        return Dealt, (int(self), self.epoch, self.position, self.plan)


def runs(indices):
    """Neighbours in `indices` that follow each other in one list, as (begin, end); plain integers are in none."""
    if is_run(indices):
        return [(0, len(indices))]
    found, begin, last = [], 0, None
    for at, index in enumerate([*indices, None]):
        dealt = index if isinstance(index, Dealt) else None
        if last is not None and not (dealt is not None and is_run((last, dealt))):
            found.append((begin, at))
            last = None
        if dealt is not None and last is None:
            begin = at
        last = dealt
    return found


def is_run(indices):
    """This is what nearly all batches are, and quick to see."""
    try:
        positions = [index.position for index in indices]
        plans = {index.plan for index in indices}
    except AttributeError:
        return False
    return len(plans) == 1 and positions == list(range(positions[0], positions[0] + len(positions)))
