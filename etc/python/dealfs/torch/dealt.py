"""The number of a sample, with the sample's position in an epoch."""


class Dealt(int):
    """The number of a sample, as a Sampler yields it: an int with attributes. Records uses the attributes, also in
    worker processes that were started before the epoch.

    epoch       epoch of the list that contains it
    position    position in that list (the list of this rank for this pass)
    plan        the list's name below plan/ of the mount"""

    def __new__(cls, sample, epoch, position, plan):
        self = int.__new__(cls, sample)
        self.epoch, self.position, self.plan = epoch, position, plan
        return self

    def __reduce__(self):
        return Dealt, (int(self), self.epoch, self.position, self.plan)


def runs(indices):
    """The runs in `indices`, as (begin, end). A run is consecutive in one list. Plain integers are in no run."""
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
    """True if all of `indices` are one run, as nearly all batches are. Quick to check."""
    try:
        positions = [index.position for index in indices]
        plans = {index.plan for index in indices}
    except AttributeError:
        return False
    return len(plans) == 1 and positions == list(range(positions[0], positions[0] + len(positions)))
