"""Data echoing (Choi et al.): what was fetched and decoded with pains is used several times. Pure: the same for every
rank that has as many samples, which is why each of them takes as many steps.

Item i is used as often as the whole part of the factor, and the fraction adds one use at every 1/fraction-th item. The
order of items is random by itself, so no draw is needed, and the sum is exact. What is used goes through a buffer, from
which one entry at random comes out whenever the next one has no room."""
import numpy

MILLION = 1000000


def millionths(factor):
    found = round(float(factor) * MILLION)
    if not MILLION <= found <= 1000 * MILLION:
        raise ValueError(f'a factor of {factor}: it must be 1 to 1000')
    return found


def uses_of(position, factor):
    """How often the item at a position is used."""
    return uses_before(position + 1, factor) - uses_before(position, factor)


def uses_before(count, factor):
    """How often all of the first `count` items together are."""
    return count * millionths(factor) // MILLION


def echoed(items, factor, buffer=1, seed=(0,)):
    """Each item as often as it is used, shuffled in a buffer of so many entries. `seed` is some numbers below 2**32."""
    random = numpy.random.RandomState(list(seed))  # draws the same in every version of NumPy
    held = []

    def take():
        at = int(random.random_sample() * len(held))
        held[at], held[-1] = held[-1], held[at]
        return held.pop()

    for position, item in enumerate(items):
        for _ in range(uses_of(position, factor)):
            held.append(item)
            if len(held) >= buffer:
                yield take()
    while held:
        yield take()
