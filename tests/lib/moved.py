"""Is the layout that a turn led to the one that fs/world/FORMAT says?

    moved.py SOURCE MOUNTPOINT STATE BEFORE EXCHANGE… -- AFTER

BEFORE and AFTER are digests, whose layouts lie in STATE; an EXCHANGE is FRACTION:EPOCH:SEED, or shuffle:SEED. Of
several the second begins from what the first led to. Prints how many of how many extents have another owner."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../fs/world'))
from layouts import NOBODY, WHOLE, exchange_group, extents_of  # noqa: E402


def read_layout(state, digest):
    """The owners by group, and the nodes of each group."""
    with open(f'{state}/layout-{digest}', 'rb') as f:
        raw = f.read()
    extents, nodes, groups = struct.unpack_from('<QII', raw, 72)
    owners = struct.unpack_from(f'<{extents * groups}H', raw, 128 + 128 * nodes)
    return [list(owners[g * extents:(g + 1) * extents]) for g in range(groups)], \
        [[n for n in range(nodes) if n * groups // nodes == g] for g in range(groups)]


def main():
    source, mountpoint, state, before, *exchanges, dashes, after = sys.argv[1:]
    assert dashes == '--'
    with open(f'{mountpoint}/.dealfs/samples', 'rb') as f:
        sizes = [os.stat(os.path.join(source.encode(), name)).st_size for name in f.read().split(b'\n')[:-1]]
    costs = extents_of(sizes)
    owners, members = read_layout(state, before)
    if len(owners[0]) != len(costs):
        sys.exit(f'the layout has {len(owners[0])} extents, and the files {len(costs)}')
    first = owners
    for exchange in exchanges:
        fraction, *rest = exchange.split(':')
        if fraction == 'shuffle':
            fraction, epoch, seed = WHOLE, 0, int(rest[0])
        else:
            fraction, epoch, seed = round(float(fraction) * WHOLE), int(rest[0]), int(rest[1])
        owners = [exchange_group(owners[g], costs, mine, fraction, epoch, seed, g)[0] for g, mine in enumerate(members)]
    wrong = 0
    for g, got in enumerate(read_layout(state, after)[0]):
        wrong += sum(a != b for a, b in zip(got, owners[g]))
        for node in members[g]:
            if got.count(node) != first[g].count(node):
                sys.exit(f'node {node} owns {got.count(node)}, not {first[g].count(node)} as before')
        if NOBODY in got or set(got) - set(members[g]):
            sys.exit(f'not each extent has an owner of group {g}')
    if wrong:
        sys.exit(f'{wrong} of {len(costs)} extents have another owner than they should')
    print(sum(a != b for one, other in zip(first, owners) for a, b in zip(one, other)), 'of', len(costs) * len(owners))


if __name__ == '__main__':
    main()
