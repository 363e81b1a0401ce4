"""Layouts against a second computation, written from fs/world/FORMAT alone, over random worlds.

usage: layouts.py LAYOUTS [SEED]
Speaks TAP. Needs nothing but Python.
"""
import os
import random
import struct
import subprocess
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../lib'))
from tap import diag, done_testing, ok  # noqa: E402

NOBODY = 0xFFFF
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
WHOLE = 1000000
K, M = 1 << 10, 1 << 20
ROOM, EXCHANGE, SHUFFLE = 1, 2, 3


# --- what FORMAT says -----------------------------------------------------------------------------------------------

def extents_of(sizes):
    """The costs of all extents."""
    costs = []
    for size in sizes:
        for at in range(0, max(size, 1), 64 * M):
            n = min(size - at, 64 * M)
            values = -(-n // (128 * K))
            costs.append(n + values * (384 if size > 4 * M else 128) if n else 1)
    return costs


def room_left(room, cost, taken, kept):
    most = kept + kept // 3
    if kept < cost and most < taken:
        taken = most
    return max(room - taken, 0)


def shares_of(rooms, had, n, mean):
    fits = [room // mean for room in rooms]

    def at(level):
        return [min(max(level - h, 0), f) for h, f in zip(had, fits)]

    level, step = 0, 1 << 40
    while step:
        if sum(at(level + step)) <= n:
            level += step
        step //= 2
    shares, higher = at(level), at(level + 1)
    over = n - sum(shares)
    for v in range(len(shares)):
        if over and higher[v] > shares[v]:
            shares[v] += 1
            over -= 1
    return shares


def spread_group(owners, costs, nodes, rooms):
    """Point 2 of the rule: what has no owner. `rooms`: what is left, by node of the group."""
    left = [e for e, v in enumerate(owners) if v == NOBODY]
    after = list(owners)
    if not left:
        return after
    free = list(rooms)
    had = [owners.count(v) for v in nodes]
    shares = shares_of(rooms, had, len(left), sum(costs[e] for e in left) // len(left))
    given = [0] * len(free)
    for e in left:
        able = [v for v in range(len(free)) if free[v] > 0 and free[v] >= costs[e]]
        if not able:
            continue
        due = [Fraction(given[v] + 1, shares[v]) if shares[v] else 1 << 200 for v in range(len(free))]
        v = min(able, key=lambda v: (due[v], given[v], v))
        given[v] += 1
        free[v] -= costs[e]
        after[e] = nodes[v]
    return after


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def random_at(seed, use, i):
    return mix((mix((seed + use * GOLDEN) & MASK) + (i + 1) * GOLDEN) & MASK)


def grade_of(cost):
    p = cost.bit_length() - 1
    return 8 * p + ((cost << 3 >> p) & 7)


def classes_of(drawn, costs, nodes):
    """The drawn extents, class by class, and in each by their numbers."""
    by_grade = {}
    for e in drawn:
        by_grade.setdefault(grade_of(costs[e]), []).append(e)
    classes = []
    first = None
    for grade in sorted(by_grade):
        if first is None or len(classes[-1]) >= 4 * nodes or grade - first >= 8:
            classes.append([])
            first = grade
        classes[-1] += by_grade[grade]
    return [sorted(one) for one in classes]


def exchange_group(owners, costs, nodes, fraction, epoch, seed, group):
    key = random_at(random_at(seed, 4, epoch), 5, group)
    owned = {v: owners.count(v) for v in nodes}
    wanted = {v: (owned[v] * fraction + WHOLE // 2) // WHOLE for v in nodes}
    drawn = []
    for e, v in enumerate(owners):
        if v not in owned:
            continue
        if random_at(key, 6, e) * owned[v] >> 64 < wanted[v]:
            wanted[v] -= 1
            drawn.append(e)
        owned[v] -= 1
    after = list(owners)
    classes = classes_of(drawn, costs, len(nodes))
    for one in classes:
        deck = []
        for i, e in enumerate(one):
            deck.append(owners[e])
            j = random_at(key, 7, e) * (i + 1) >> 64
            deck[i], deck[j] = deck[j], deck[i]
        for e, v in zip(one, deck):
            after[e] = v
    return after, classes


# --- worlds ---------------------------------------------------------------------------------------------------------

class World:
    """Sizes of files, nodes with room, and who holds what at first."""

    def __init__(self, rng, **given):
        self.nodes = rng.choice([1, 2, 3, 4, 4, 7, 16])
        self.groups = rng.choice([1, 1, 1, rng.randint(1, self.nodes)])
        files = rng.choice([1, 5, 40, 300, 1000, 3000])
        most = rng.choice([300, 20 * K, 200 * K, 10 * M])
        self.sizes = [rng.choice([rng.randrange(most), rng.randrange(most), most // 2]) for _ in range(files)]
        for _ in range(rng.choice([0, 0, 3])):
            self.sizes[rng.randrange(files)] = rng.randrange(1500 * M)
        self.__dict__.update(given)
        self.costs = extents_of(self.sizes)
        self.members = [range(-(-g * self.nodes // self.groups), -(-(g + 1) * self.nodes // self.groups))
                        for g in range(self.groups)]
        whole = sum(self.costs) * self.groups // self.nodes + 1
        kind = rng.choice(['ample', 'uneven', 'none', 'scarce'])
        self.rooms = [{'ample': 2 * whole, 'uneven': rng.randrange(4 * whole), 'scarce': rng.randrange(whole),
                       'none': rng.choice([0, 3 * whole])}[kind] for _ in range(self.nodes)]
        self.holders = None
        if rng.random() < 0.5:
            often = rng.random()
            self.holders = [[rng.choice(mine) if rng.random() < often else NOBODY for _ in self.costs]
                            for mine in self.members]
        self.__dict__.update(given)

        self.kept = [0] * self.nodes
        for owners in self.holders or []:
            for e, v in enumerate(owners):
                if v != NOBODY:
                    self.kept[v] += self.costs[e]
        # What a node holds: all that it keeps, perhaps more that another one keeps, perhaps compressed.
        self.holdings = []
        for room, kept in zip(self.rooms, self.kept):
            cost = kept + rng.choice([0, 0, rng.randrange(whole)])
            self.holdings.append((room, cost, rng.choice([cost, cost * rng.randrange(100) // 100])))

    def __str__(self):
        return (f'{self.nodes} nodes, {self.groups} groups, {len(self.sizes)} files, {len(self.costs)} extents, '
                f'rooms {self.rooms}, {"held" if self.holders else "nothing held"}')


class Layouts:
    """The program under test."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, world, line, *parts):
        self.process.stdin.write(line.encode() + b'\n' + b''.join(parts))
        self.process.stdin.flush()
        head = self.process.stdout.readline().decode()
        if not head or head.startswith('refused'):
            raise Wrong(head or 'it died')
        self.digest = head.split('digest=')[1].strip()
        n = len(world.costs)
        must(head.startswith(f'extents={n} '), head)
        raw = self.process.stdout.read(2 * n * world.groups)
        owners = struct.unpack(f'<{n * world.groups}H', raw)
        return [list(owners[g * n:(g + 1) * n]) for g in range(world.groups)]

    def deal(self, w):
        held = [struct.pack(f'<{len(one)}H', *one) for one in w.holders or []]
        return self.ask(w, f'deal nodes={w.nodes} groups={w.groups} files={len(w.sizes)} held={int(bool(held))}',
                        struct.pack(f'<{len(w.sizes)}Q', *w.sizes),
                        *(struct.pack('<3Q', *h) for h in w.holdings), *held)

    def extend(self, w, rooms):
        return self.ask(w, f'extend nodes={w.nodes}', struct.pack(f'<{w.nodes}Q', *rooms))

    def exchange(self, w, cause, fraction, epoch, seed):
        return self.ask(w, f'exchange cause={cause} fraction={fraction} epoch={epoch} seed={seed}')


class Wrong(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Wrong(what)


# --- what must hold -------------------------------------------------------------------------------------------------

def bytes_of(owners, costs, node):
    return sum(c for v, c in zip(owners, costs) if v == node)


def check_turn(w, before, after, fraction, epoch, seed):
    """One exchange: as the model says; everybody owns as many; bytes change within what the classes allow."""
    for group, mine in enumerate(w.members):
        expected, classes = exchange_group(before[group], w.costs, mine, fraction, epoch, seed, group)
        must(after[group] == expected, f'owners in group {group}')
        slack = {v: 0 for v in mine}
        for one in classes:
            spread = max(w.costs[e] for e in one) - min(w.costs[e] for e in one)
            must(spread < min(w.costs[e] for e in one) or len(one) == 1, 'costs of a class')
            for e in one:
                slack[before[group][e]] += spread
        for v in mine:
            must(after[group].count(v) == before[group].count(v), f'counts of node {v}')
            change = bytes_of(after[group], w.costs, v) - bytes_of(before[group], w.costs, v)
            must(abs(change) <= slack[v], f'bytes of node {v} change by {change}')
        moved = sum(a != b for a, b in zip(before[group], after[group]))
        drawn = sum(map(len, classes))
        must(moved <= drawn, 'none changes that is not drawn')
        must(all((a == NOBODY) == (b == NOBODY) for a, b in zip(before[group], after[group])), 'without an owner')


def check_deal(layouts, rng, w):
    rooms = [room_left(*h, kept) for h, kept in zip(w.holdings, w.kept)]
    owners = layouts.deal(w)
    for _ in range(2):
        for group, mine in enumerate(w.members):
            if before := w.holders and w.holders[group]:
                must(all(b == NOBODY or a == b for a, b in zip(owners[group], before)), 'what is held stays')
            expected = spread_group(before or [NOBODY] * len(w.costs), w.costs, mine, [rooms[v] for v in mine])
            must(owners[group] == expected, f'owners in group {group}')
        w.holders = owners
        rooms = [rng.choice([0, rng.randrange(sum(w.costs))]) for _ in rooms]
        owners = layouts.extend(w, rooms)


def check_exchanges(layouts, rng, w):
    owners = layouts.deal(w)
    for fraction in rng.sample([0, 10000, 100000, 300000, WHOLE, rng.randrange(WHOLE)], 3):
        epoch, seed = rng.choice([0, 1, 7, MASK]), rng.choice([0, 1, rng.getrandbits(64)])
        digest = layouts.digest
        after = layouts.exchange(w, EXCHANGE, fraction, epoch, seed)
        check_turn(w, owners, after, fraction, epoch, seed)
        must((layouts.digest == digest) == (after == owners), 'the digest tells owners')
        owners = after
    after = layouts.exchange(w, SHUFFLE, WHOLE, 0, seed)
    check_turn(w, owners, after, WHOLE, 0, seed)


def check_mixing(layouts, rng, cause):
    """Class-sorted parts: afterwards who had an extent says nothing about who has it."""
    nodes, each = 4, 3000
    w = World(rng, nodes=nodes, groups=1, sizes=[rng.randint(64 * K, 192 * K) for _ in range(nodes * each)],
              rooms=[1 << 40] * nodes, holders=[[e // each for e in range(nodes * each)]])
    before = layouts.deal(w)[0]
    for fraction in [WHOLE] if cause == SHUFFLE else [WHOLE, 300000]:
        after = layouts.exchange(w, cause, fraction, 0, rng.getrandbits(64))[0]
        table = [[0] * nodes for _ in range(nodes)]
        for a, b in zip(before, after):
            table[a][b] += 1
        moved = sum(a != b for a, b in zip(before, after))
        due = each * nodes * fraction // WHOLE * (nodes - 1) // nodes
        must(abs(moved - due) < due // 10, f'{moved} of {due} moved')
        if fraction == WHOLE:
            expected = each / nodes
            chi = sum((n - expected) ** 2 / expected for row in table for n in row)
            must(chi < 33, f'chi-square {chi:.1f} of 9 degrees of freedom')  # one in 10,000
        before = after


def check_rounds(layouts, rng):
    """Many small exchanges in a row: the first owners are forgotten, counts and bytes are not."""
    w = World(rng, nodes=4, groups=1, sizes=[rng.randint(64 * K, 192 * K) for _ in range(4000)],
              rooms=[1 << 40] * 4, holders=[[e // 1000 for e in range(4000)]])
    first = before = layouts.deal(w)[0]
    for epoch in range(60):
        before = layouts.exchange(w, EXCHANGE, 100000, epoch, 5)[0]
    stayed = sum(a == b for a, b in zip(first, before))
    must(850 <= stayed <= 1150, f'{stayed} of 4000 are where they were at first; 1000 would be chance')
    for v in range(4):
        was, is_now = bytes_of(first, w.costs, v), bytes_of(before, w.costs, v)
        must(before.count(v) == 1000 and abs(was - is_now) * 50 < was, f'node {v}: {was} bytes became {is_now}')


def check_refused(layouts, rng):
    w = World(rng)
    layouts.deal(w)
    wrong_ones = (ROOM, 0, 0), (EXCHANGE, WHOLE + 1, 0), (SHUFFLE, 5, 0), (SHUFFLE, WHOLE, 1), (9, 0, 0)
    for cause, fraction, epoch in wrong_ones:
        try:
            layouts.exchange(w, cause, fraction, epoch, 0)
        except Wrong as wrong:
            must(str(wrong).startswith('refused 22'), wrong)
        else:
            raise Wrong(f'taken: cause {cause}, fraction {fraction}, epoch {epoch}')


# --- tests ----------------------------------------------------------------------------------------------------------

def test(what, function, *arguments):
    try:
        function(*arguments)
        ok(True, what)
    except Wrong as wrong:
        ok(False, what)
        diag(wrong)


def many(worlds, check, layouts, rng):
    for _ in range(worlds):
        w = World(rng)
        try:
            check(layouts, rng, w)
        except Wrong as wrong:
            raise Wrong(f'{wrong}\nin {w}') from None


def main():
    layouts = Layouts(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    diag(f'seed {seed}')
    test('100 random worlds: dealt, and dealt again with new room', many, 100, check_deal, layouts, rng)
    test('100 random worlds: exchanges and shuffles', many, 100, check_exchanges, layouts, rng)
    test('an exchange of all, and of a part, mixes', check_mixing, layouts, rng, EXCHANGE)
    test('a shuffle mixes', check_mixing, layouts, rng, SHUFFLE)
    test('60 exchanges of a tenth mix, and keep counts and bytes', check_rounds, layouts, rng)
    test('what is no exchange and no shuffle is refused', check_refused, layouts, rng)
    return done_testing()


if __name__ == '__main__':
    sys.exit(main())
