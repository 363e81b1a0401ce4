"""Data echoing (Choi et al.): each item that was fetched and decoded is used several times. The functions are pure:
ranks with equally many samples take equally many steps.

The first n items together are used floor(n * factor) times. So each item is used floor(factor) times, and some items
one extra time. The position decides which items. That is random enough, because the items come in random order, and
the total is exact. The uses are shuffled in a buffer: whenever it is full, a random entry is yielded."""
import numpy

MILLION = 1000000


def millionths(factor):
    found = round(float(factor) * MILLION)
    if not MILLION <= found <= 1000 * MILLION:
        raise ValueError(f'a factor of {factor}: it must be 1 to 1000')
    return found


def uses_of(position, factor):
    """Number of times that the item at a position is used."""
    return uses_before(position + 1, factor) - uses_before(position, factor)


def uses_before(count, factor):
    """Number of times that the first `count` items together are used."""
    return count * millionths(factor) // MILLION


def echoed(items, factor, buffer=1, seed=(0,)):
    """Yield each item once per use, shuffled in a buffer of `buffer` entries. `seed`: a sequence of numbers < 2**32."""
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
