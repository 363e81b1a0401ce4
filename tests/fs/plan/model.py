"""The planner against a second one, written plainly from the design and the papers: every list, over random worlds.

usage: model.py PLANNER [SEED [WORLDS]]
Speaks TAP. Needs nothing but Python.
"""

import random
import struct
import subprocess
import sys

import swaps

NOBODY = 0xFFFF
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
LOCALITY, REGULAR, LOCAL = range(3)
PAD, DROP, SHORT = range(3)
EXAMPLE, BATCH = range(2)
ONE = 1000000


# --- generators -----------------------------------------------------------------------------------------------------

def mt19937(seed):
    """Matsumoto's generator, one number after the other."""
    state = [seed & 0xFFFFFFFF]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) & 0xFFFFFFFF)
    i = 0
    while True:
        y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7FFFFFFF)
        state[i] = state[(i + 397) % 624] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
        y = state[i]
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        yield y ^ y >> 18
        i = (i + 1) % 624


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def random_at(seed, use, position):
    return mix((mix((seed + use * GOLDEN) & MASK) + (position + 1) * GOLDEN) & MASK)


def randperm(n, seed):
    draw = mt19937(seed)
    order = list(range(n))
    for i in range(n - 1):
        z = i + next(draw) % (n - i)
        order[i], order[z] = order[z], order[i]
    return order


# --- the pipeline ---------------------------------------------------------------------------------------------------

def repeats(w, use, position):
    return w.echo // ONE + (random_at(w.seed, use, position) % ONE < w.echo % ONE)


def stirred(w, stream, buffer):
    if buffer < 2:
        return stream
    draw = mt19937(random_at(w.seed, 3, 0))
    held, coming, out = stream[:buffer], stream[buffer:], []
    while held:
        # what was first goes to the place of what is taken; the next comes in at the end
        place = next(draw) % len(held)
        out.append(held[place])
        held[place] = held[0]
        held.pop(0)
        if coming:
            held.append(coming.pop(0))
    return out


def echo_examples(w, order):
    return stirred(w, [x for i, x in enumerate(order) for _ in range(repeats(w, 1, i))], w.echo_buffer)


def echo_batches(w, batches):
    """The numbers of the batches, by step. A shorter last one stays at the end."""
    size = w.ranks * w.batch
    whole = [b for b, batch in enumerate(batches) if len(batch) == size]
    stream = stirred(w, [b for b in whole for _ in range(repeats(w, 2, b * size))], w.echo_buffer // size)
    for b in range(len(whole), len(batches)):
        stream += [b] * repeats(w, 2, b * size)
    return stream[w.skip // size:]


def first_entry(w):
    """Where batches are echoed, steps are skipped and not entries of the order."""
    return 0 if w.echo != ONE and w.echo_at == BATCH else w.skip


def cut(w, order):
    rest = order[first_entry(w):]
    odd = len(rest) % w.ranks
    if w.tail == PAD and odd:
        wanted = w.ranks - odd
        filler = order
        while len(filler) < wanted:
            filler = filler + order
        rest = rest + filler[:wanted]
    if w.tail == DROP and odd:
        rest = rest[:-odd]
    size = w.ranks * w.batch
    return [rest[i:i + size] for i in range(0, len(rest), size)]


def regular(w, batch):
    return [batch[r::w.ranks] for r in range(w.ranks)]


def share(w, n, rank):
    return len(range(rank, n, w.ranks))


def algorithm_1(w, batch, home, target):
    """Looking for the largest each time. Where each of the batch goes, and how many transfers that takes."""
    count = [home.count(v) for v in range(w.nodes)]
    nobodys = len(batch) - sum(count)
    lack = [max(0, t - c) for t, c in zip(target, count)]
    excess = [max(0, c - t) for t, c in zip(target, count)]
    gifts = {v: [] for v in [*range(w.nodes), NOBODY]}

    def give(giver, most):
        taker = lack.index(max(lack))
        size = min(most, lack[taker])
        lack[taker] -= size
        gifts[giver] += [taker] * size
        return size

    while nobodys:
        nobodys -= give(NOBODY, nobodys)
    transfers = 0
    while any(excess):
        giver = excess.index(max(excess))
        excess[giver] -= give(giver, excess[giver])
        transfers += 1
    keeps = [min(t, c) for t, c in zip(target, count)]
    goes = []
    for x, v in zip(batch, home):
        if v < w.nodes and keeps[v]:
            keeps[v] -= 1
            goes.append((x, v))
        else:
            goes.append((x, gifts[v if v < w.nodes else NOBODY].pop(0)))
    return goes, transfers


def locality(w, batch, used):
    """What was used is at home where it was; it and what the batch has twice are the last to move."""
    target = [sum(share(w, len(batch), r) for r in w.ranks_of(v)) for v in range(w.nodes)]
    homes = choose_owners(w, batch, list(target), used if w.echoes() else {})
    stays = [w.echoes() and (x in used or batch.count(x) > 1) for x in batch]
    going = sorted(zip(batch, homes, stays), key=lambda g: not g[2])
    goes, transfers = algorithm_1(w, [g[0] for g in going], [g[1] for g in going], target)
    hands = [[] for _ in range(w.nodes)]
    for x, v in goes:
        hands[v].append(x)
    lists = [None] * w.ranks
    for v in range(w.nodes):
        mine = w.ranks_of(v)
        for place, r in enumerate(mine):
            lists[r] = hands[v][place::len(mine)]
    return lists, goes, transfers


def choose_owners(w, order, room, used):
    """Whose sample each is. Of several groups one owner after the other takes what evens the nodes out."""
    if len(w.owners) == 1:
        return [used.get(x, w.owners[0][x]) for x in order]
    homes = []

    def roomiest(x):
        return max((o[x] for o in w.owners if o[x] < w.nodes), key=lambda v: room[v], default=NOBODY)

    def change(least, surplus_only):
        changes = 0
        for i, x in enumerate(order):
            v = homes[i]
            if v == NOBODY or x in used or surplus_only and room[v] >= 0:
                continue
            to = roomiest(x)
            if to != v and room[to] - room[v] >= least:
                room[v] += 1
                room[to] -= 1
                homes[i] = to
                changes += 1
        return changes

    for x in order:
        homes.append(used[x] if x in used else roomiest(x))
        if homes[-1] != NOBODY:
            room[homes[-1]] -= 1
    for _ in range(16):
        if min(room) >= 0 or not (change(2, False) or change(1, True)):
            break
    return homes


def local_order(w, order):
    """The order dealt to the nodes in equal parts, and their lists merged."""
    target = [len(range(v, len(order), w.nodes)) for v in range(w.nodes)]
    goes, _ = algorithm_1(w, order, choose_owners(w, order, list(target), {}), target)
    read = [iter([x for x, to in goes if to == v]) for v in range(w.nodes)]
    return [next(read[i % w.nodes]) for i in range(len(order))]


class Item(int):
    """A sample that knows its position in its batch."""
    def __new__(cls, sample, position):
        item = super().__new__(cls, sample)
        item.position = position
        return item


def deal(w, batch, used):
    if w.mode == REGULAR:
        dealt = regular(w, batch)
        return dealt, [(x, w.node_of(r)) for r in range(w.ranks) for x in dealt[r]], 0
    return locality(w, batch, used)


def balance(w, batches, dealt, used):
    """Lists of ranks, by step, after the swaps of a window."""
    sets = [w.ranks_of(v) for v in range(w.nodes)] if w.mode == LOCAL else [range(w.ranks)]

    def away(x, rank):
        owners = [o[x] for o in w.owners if o[x] < w.nodes]
        return bool(owners) and w.node_of(rank) not in owners and used.get(x) != w.node_of(rank)

    return swaps.Window(batches, [[[x.position for x in one] for one in lists] for lists in dealt], w.cost,
                        [x + 1 for x in range(w.samples)], away, w.balance, [list(ranks) for ranks in sets])


def windows(w, steps, first):
    """Steps that are balanced together; first: the number of the first one, counted from the order's beginning."""
    for i, step in enumerate(steps):
        if i == 0 or not w.cost or w.ranks == 1 or (first + i) % w.window == 0 or w.echo != ONE and w.echo_at == BATCH:
            window = []
            yield window
        window.append((i, step))


def whole_window(w):
    """A plan that begins in the middle of a window: where the window begins, and how many steps later it does."""
    size = w.ranks * w.batch
    if not w.cost or w.ranks == 1 or w.skip % size or w.echoes() or w.echo != ONE and w.echo_at == BATCH:
        return w.skip, 0
    lead = w.skip // size % w.window
    return w.skip - lead * size, lead


def plan(w):
    skip = w.skip
    w.skip, lead = whole_window(w)
    order = echo_examples(w, w.order) if w.echo != ONE and w.echo_at == EXAMPLE else w.order
    order = local_order(w, order) if w.mode == LOCAL else order
    batches = [[Item(x, i) for i, x in enumerate(batch)] for batch in cut(w, order)]
    steps = echo_batches(w, batches) if w.echo != ONE and w.echo_at == BATCH else range(len(batches))
    first, w.skip = w.skip // (w.ranks * w.batch), skip
    wanted = range(lead, len(steps)) if w.steps is None else range(lead + w.steps[0], lead + w.steps[1] + 1)
    lists = [[] for _ in range(w.ranks)]
    facts = dict.fromkeys(('samples', 'local', 'moved', 'unowned', 'moved_bytes', 'unowned_bytes', 'fresh',
                           'fresh_bytes', 'refetched', 'duplicates', 'transfers', 'swaps', 'swapped_moved',
                           'swapped_bytes'), 0)
    ratios, used, done = [], {}, set()
    for window in list(windows(w, steps, first)):
        dealt = [deal(w, batches[step], used) for _, step in window]
        shown = any(i in wanted for i, _ in window)
        if w.cost and w.ranks > 1:
            swapped = balance(w, [batches[step] for _, step in window], [one[0] for one in dealt], used)
            dealt = [(one, [(x, w.node_of(r)) for r in range(w.ranks) for x in one[r]], old[2])
                     for one, old in zip(swapped.lists(), dealt)]
            if shown:
                ratios.append((swapped.before, swapped.after))
                if window[0][1] not in done:
                    facts['swaps'] += swapped.swaps
                    facts['swapped_moved'] += swapped.moved
                    facts['swapped_bytes'] += swapped.moved_bytes
        for (i, step), (one, goes, transfers) in zip(window, dealt):
            kept = facts if i in wanted else dict.fromkeys(facts, 0)
            if step in done:
                kept['samples'] += len(goes)
                kept['local'] += len(goes)
            else:
                kept['transfers'] += transfers
                count_uses(w, goes, used if w.echoes() else None, kept)
            done.add(step)
            for r in range(w.ranks if i in wanted else 0):
                lists[r] += one[r]
    for name, which in ('before', 0), ('after', 1):
        values = sorted(pair[which] for pair in ratios) or [0]
        facts[f'median_{name}'], facts[f'worst_{name}'] = values[(len(values) - 1) // 2], values[-1]
    return lists, facts


def count_uses(w, goes, used, facts):
    """What a batch that went so comes to; `used`: where each sample was used first."""
    for x, v in goes:
        owners = [o[x] for o in w.owners if o[x] < w.nodes]
        where = 'local' if v in owners or used and used.get(x) == v else 'moved' if owners else 'unowned'
        facts['samples'] += 1
        facts[where] += 1
        if where != 'local':
            facts[f'{where}_bytes'] += x + 1
        if used is None or x not in used:
            facts['fresh'] += 1
            facts['fresh_bytes'] += x + 1
        elif where != 'local':
            facts['refetched'] += 1
        if used is not None:
            used.setdefault(x, v)
    if used is not None:
        facts['duplicates'] += len(goes) - len({x for x, _ in goes})


# --- worlds ---------------------------------------------------------------------------------------------------------

class World:
    def __init__(self, rng, **given):
        self.samples = rng.choice([1, 2, 7, 30, 100, 100, 257, 400])
        self.nodes = rng.choice([1, 1, 2, 3, 4, 7, 16])
        self.groups = 1
        self.ranks = self.nodes * rng.choice([1, 1, 2, 3])
        self.placed = None
        if rng.random() < 0.3:
            self.ranks = rng.randint(1, 20)
            self.placed = [rng.randrange(self.nodes) for _ in range(self.ranks)]
        self.batch = rng.choice([1, 2, 3, 8, 20, 1000])
        self.mode = rng.choice([LOCALITY, LOCALITY, REGULAR, LOCAL])
        self.tail = rng.choice([PAD, DROP, SHORT])
        self.seed = rng.getrandbits(64)
        self.echo, self.echo_at, self.echo_buffer = ONE, EXAMPLE, 0
        self.cost, self.balance, self.window, self.steps = None, ONE + 20000, 1, None
        if rng.random() < 0.3:
            self.echo = rng.choice([ONE, 2 * ONE, ONE + 500000, 3 * ONE + 1, rng.randint(ONE, 5 * ONE)])
            self.echo_at = rng.choice([EXAMPLE, BATCH])
            self.echo_buffer = rng.choice([0, 1, 2, 10, 10000])
        self.__dict__.update(given)
        if 'echo' in given and self.echo != ONE:
            self.echo_at = rng.choice([EXAMPLE, BATCH])
            self.echo_buffer = rng.choice([0, 1, 2, 10, 100, 10000])
        alpha = rng.choice([0, 0.3, 1, 1])
        weight = [rng.choice([0, 1, 1, 5]) for _ in range(self.nodes)]
        weight[0] += not any(weight)
        self.owners = []
        for g in range(self.groups):
            mine = [v for v in range(self.nodes) if v * self.groups // self.nodes == g]
            weights = [weight[v] + 0.01 for v in mine]
            self.owners.append([rng.choices(mine, weights)[0] if rng.random() < alpha else
                                rng.choice([NOBODY, NOBODY, self.nodes]) for _ in range(self.samples)])
        self.order = list(range(self.samples))
        rng.shuffle(self.order)
        if rng.random() < 0.2:
            self.order = [rng.randrange(self.samples) for _ in range(rng.randint(0, 2 * self.samples))]
        self.skip = rng.choice([0, 0, 0, rng.randint(0, len(self.order)), len(self.order)])
        if self.echo != ONE and self.echo_at == BATCH:
            self.skip -= self.skip % (self.ranks * self.batch)
        self.__dict__.update(given)

        if 'costs' in given:
            kind = rng.choice([lambda: rng.randint(0, 3), lambda: rng.randint(1, 1000), lambda: 7,
                               lambda: int(665 * rng.lognormvariate(0, 0.9)), lambda: rng.choice([1, 1, 1, 1 << 31])])
            self.cost = [kind() for _ in range(self.samples)]
            self.balance = rng.choice([ONE, ONE + 20000, ONE + 20000, 2 * ONE])
            batches_echoed = self.echo != ONE and self.echo_at == BATCH
            self.window = 1 if batches_echoed else rng.choice([1, 1, 2, 3, 8])
            if rng.random() < 0.1:
                self.cost = None
        if 'costs' in given and 'steps' not in given and rng.random() < 0.3 and self.echo_at == EXAMPLE:
            left = len(self.order) - self.skip
            steps = left // (self.ranks * self.batch) if self.echo == ONE else 0
            if steps:
                self.steps = sorted((rng.randrange(steps), rng.randrange(steps)))

    def ranks_of(self, node):
        if self.placed:
            return [r for r in range(self.ranks) if self.placed[r] == node]
        each = self.ranks // self.nodes
        return list(range(node * each, (node + 1) * each))

    def echoes(self):
        return self.echo != ONE and self.echo_at == EXAMPLE

    def node_of(self, rank):
        return next(v for v in range(self.nodes) if rank in self.ranks_of(v))

    def __str__(self):
        return ' '.join(f'{k}={v}' for k, v in self.__dict__.items() if k not in ('owners', 'order', 'cost', 'costs'))


class Planner:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def order(self, n, seed):
        self.process.stdin.write(b'order %d %d\n' % (n, seed))
        self.process.stdin.flush()
        return list(struct.unpack(f'<{n}I', self.process.stdout.read(4 * n)))

    def plan(self, w):
        line = (f'plan samples={w.samples} count={len(w.order)} ranks={w.ranks} batch={w.batch} mode={w.mode} '
                f'tail={w.tail} skip={w.skip} echo={w.echo} echo_at={w.echo_at} echo_buffer={w.echo_buffer} '
                f'seed={w.seed} nodes={w.nodes} groups={w.groups} placed={int(bool(w.placed))} bytes=1 '
                f'cost={int(bool(w.cost))} balance={w.balance} window={w.window} '
                + (f'chosen=1 from={w.steps[0]} to={w.steps[1]}\n' if w.steps else '\n'))
        to, out = self.process.stdin, self.process.stdout
        to.write(line.encode())
        for owners in w.owners:
            to.write(struct.pack(f'<{len(owners)}H', *owners))
        to.write(struct.pack(f'<{len(w.order)}I', *w.order))
        if w.placed:
            to.write(struct.pack(f'<{w.ranks}I', *w.placed))
        if w.cost:
            to.write(struct.pack(f'<{w.samples}I', *w.cost))
        to.flush()
        head = out.readline().decode()
        if head.startswith('refused'):
            return head, None
        facts = {k: v if k == 'digest' else int(v) for k, v in (pair.split('=') for pair in head.split())}
        lists = []
        for _ in range(w.ranks):
            n, = struct.unpack('<Q', out.read(8))
            lists.append(list(struct.unpack(f'<{n}I', out.read(4 * n))))
        return facts, lists


# --- what must hold -------------------------------------------------------------------------------------------------

class Wrong(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Wrong(what)


def is_at(w, x, node):
    return any(o[x] == node for o in w.owners)


def check_facts(w, facts, lists):
    """The summary of what is not echoed against a count of the lists."""
    local = moved = free = moved_bytes = free_bytes = 0
    for v in range(w.nodes):
        for r in w.ranks_of(v):
            for x in lists[r]:
                if is_at(w, x, v):
                    local += 1
                elif any(o[x] < w.nodes for o in w.owners):
                    moved, moved_bytes = moved + 1, moved_bytes + x + 1
                else:
                    free, free_bytes = free + 1, free_bytes + x + 1
    must((facts['local'], facts['moved'], facts['unowned']) == (local, moved, free), 'local, moved, unowned')
    must((facts['moved_bytes'], facts['unowned_bytes']) == (moved_bytes, free_bytes), 'bytes')
    must(facts['samples'] == local + moved + free, 'samples')


def check_plan(planner, w):
    facts, lists = planner.plan(w)
    must(lists is not None, facts)
    expected, counted = plan(w)
    must(lists == expected, f'lists\n# {lists}\n# {expected}')
    wrong = {k: (v, facts[k]) for k, v in counted.items() if facts[k] != v}
    must(not wrong, f'expected and found: {wrong}')


def batches_of(w, lists):
    """By step the ranks' batches, taken apart from the lists."""
    steps = max(-(-len(x) // w.batch) for x in lists)
    return [[x[s * w.batch:(s + 1) * w.batch] for x in lists] for s in range(steps)]


def check_rules(planner, w):
    """Rule 7, which needs no second planner: also where there are several groups."""
    facts, lists = planner.plan(w)
    must(lists is not None, facts)
    steps = batches_of(w, lists)
    batches = cut(w, w.order)
    must(len(steps) == len(batches), 'steps')
    for dealt, batch in zip(steps, batches):
        must(sorted(x for one in dealt for x in one) == sorted(batch), 'the union is the global batch')
        lengths = {len(one) for one in dealt}
        must(len(lengths) == 1 or (w.tail == SHORT and max(lengths) - min(lengths) == 1), 'equal lengths')
    must(facts['transfers'] <= len(batches) * (w.nodes - 1), 'transfers')
    check_facts(w, facts, lists)


def fewest_moved(w, batch):
    """The least that must move where samples have several owners: what a maximum flow leaves over."""
    target = [sum(share(w, len(batch), r) for r in w.ranks_of(v)) for v in range(w.nodes)]
    at = [[] for _ in range(w.nodes)]

    def place(i, seen):
        for v in {o[batch[i]] for o in w.owners if o[batch[i]] < w.nodes}:
            if v in seen:
                continue
            seen.add(v)
            if len(at[v]) < target[v]:
                at[v].append(i)
                return True
            for other in list(at[v]):
                if place(other, seen):
                    at[v].remove(other)
                    at[v].append(i)
                    return True
        return False

    owned = [i for i in range(len(batch)) if any(o[batch[i]] < w.nodes for o in w.owners)]
    return len(owned) - sum(place(i, set()) for i in owned)


# --- tests ----------------------------------------------------------------------------------------------------------

count = failed = 0


def test(what, function, *arguments, **given):
    global count, failed
    count += 1
    try:
        function(*arguments, **given)
        print(f'ok {count} - {what}')
    except Wrong as wrong:
        failed += 1
        print(f'not ok {count} - {what}\n#   {wrong}')
    sys.stdout.flush()


def many(check, planner, rng, worlds, **given):
    for _ in range(worlds):
        w = World(rng, **given)
        try:
            check(planner, w)
        except Wrong as wrong:
            raise Wrong(f'{wrong}\n#   in {w}') from None


def orders(planner):
    for n in 0, 1, 2, 3, 10, 623, 624, 625, 626, 1248, 1249, 1250, 3000:
        for seed in 0, 1, 12345, 0xFFFFFFFF, 0x100000000, MASK:
            must(planner.order(n, seed) == randperm(n, seed), f'n={n} seed={seed}')


def resumes(planner, rng, worlds, **given):
    """What was left after some steps, planned with other ranks, is the rest of the order."""
    for _ in range(worlds):
        w = World(rng, echo=ONE, skip=0, tail=rng.choice([PAD, SHORT]), **given)
        _, first = planner.plan(w)
        steps = batches_of(w, first)
        done = rng.randint(0, len(w.order) // (w.ranks * w.batch))
        w.skip = done * w.ranks * w.batch
        _, rest = planner.plan(w)
        must([a + b for a, b in zip([x[:done * w.batch] for x in first], rest)] == first, f'same ranks: {w}')
        w.ranks, w.placed = w.nodes * rng.randint(1, 3), None
        w.tail = SHORT
        _, rest = planner.plan(w)
        seen = [x for dealt in steps[:done] for one in dealt for x in one] + [x for one in rest for x in one]
        must(sorted(seen) == sorted(w.order), f'other ranks: {w}')


def local_once(planner, rng, worlds):
    """Each sample once, except for the tail. Where all nodes have equally many ranks, no more of them elsewhere than
    what nodes own beyond their share."""
    for _ in range(worlds):
        w = World(rng, echo=ONE, skip=0, mode=LOCAL)
        facts, lists = planner.plan(w)
        read = [x for batch in cut(w, local_order(w, w.order)) for x in batch]
        must(sorted(x for one in lists for x in one) == sorted(read), f'what is read: {w}')
        must(facts['unread'] == max(0, len(w.order) - len(read)), f'unread: {w}')
        must(facts['unread'] < w.ranks and (w.tail == DROP or facts['unread'] == 0), f'left out: {w}')
        surplus = sum(max(0, sum(w.owners[0][x] == v for x in w.order) - len(range(v, len(w.order), w.nodes)))
                      for v in range(w.nodes))
        if not w.placed and len(w.order) % w.ranks == 0:
            must(facts['moved'] == surplus, f'{facts["moved"]} moved, {surplus} are surplus: {w}')


def groups(planner, rng, worlds):
    """Not only right, but near to the least that must move."""
    ours = least = 0
    for _ in range(worlds):
        nodes = rng.choice([2, 4, 8])
        w = World(rng, nodes=nodes, groups=rng.choice([2, 2, nodes]), ranks=nodes, placed=None, mode=LOCALITY, echo=ONE,
                  skip=0, samples=400, batch=rng.choice([4, 16]), tail=rng.choice([PAD, SHORT]))
        facts, _ = planner.plan(w)
        ours += facts['moved']
        least += sum(fewest_moved(w, batch) for batch in cut(w, w.order))
    print(f'# moved with several owners a sample: {ours}, at least {least}')
    must(least <= ours <= least * 1.02 + worlds, f'{ours} moved, {least} would do')


def repeats_stay(planner):
    """Of an echoed epoch nearly nothing is fetched twice, and a large buffer leaves few duplicates in a batch."""
    for groups, own in (1, 1), (1, 0.7), (2, 1):
        w = World(random.Random(1), samples=40000, nodes=8, groups=groups, ranks=8, placed=None, batch=64,
                  mode=LOCALITY, tail=PAD, skip=0, echo=2 * ONE, echo_at=EXAMPLE, echo_buffer=20000)
        rng = random.Random(2)
        w.owners = [[rng.randrange(g * 8 // groups, (g + 1) * 8 // groups) if rng.random() < own else NOBODY
                     for _ in range(w.samples)] for g in range(groups)]
        facts, _ = planner.plan(w)
        print(f"# {facts['refetched']} of {facts['samples']} refetched, {facts['duplicates']} duplicates")
        must(facts['samples'] == 80000 and facts['fresh'] == 40000, 'each twice')
        must(facts['refetched'] <= 80000 // 500, f"refetched: {facts['refetched']}")
        must(facts['duplicates'] < 80000 // 50, f"duplicates: {facts['duplicates']}")


def refusals(planner):
    for errno, given in ((34, {'skip': 9}), (33, {'ranks': 3}), (34, {'ranks': 0}), (34, {'batch': 0}),
                         (34, {'echo': ONE - 1}), (34, {'echo': 1000 * ONE + 1}), (34, {'placed': [0, 2]}),
                         (34, {'groups': 65}), (34, {'groups': 0}), (34, {'ranks': (1 << 20) + 1})):
        w = World(random.Random(0), samples=7, nodes=2, ranks=2, placed=None, batch=2, mode=LOCALITY, tail=PAD,
                  skip=0, echo=ONE)
        w.order = list(range(7))
        w.__dict__.update(given)
        w.owners = [[0] * 7 for _ in range(w.groups)]
        facts, lists = planner.plan(w)
        must(lists is None and facts.startswith(f'refused {errno} '), f'{given}: {facts}')
        must(len(facts.split()) > 4, f'{given}: says why: {facts}')


def main():
    planner = Planner(sys.argv[1])
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    worlds = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    test('orders by seed', orders, planner)
    for name, mode in ('locality', LOCALITY), ('regular', REGULAR), ('local', LOCAL):
        test(f'{worlds} worlds, {name}', many, check_plan, planner, rng, worlds, mode=mode)
    test(f'{worlds} worlds, echoes', many, check_plan, planner, rng, worlds, echo=1700000)
    for name, mode in ('locality', LOCALITY), ('regular', REGULAR), ('local', LOCAL):
        test(f'costs, {name}', many, check_plan, planner, rng, worlds // 5, mode=mode, costs=True)
    test('costs, hundreds of ranks', many, check_plan, planner, rng, worlds // 30, samples=900, nodes=4, ranks=180,
         placed=None, batch=rng.choice([2, 3]), costs=True)
    test('costs, echoes', many, check_plan, planner, rng, worlds // 5, echo=1700000, costs=True)
    test('costs, several groups', many, check_plan, planner, rng, worlds // 5, nodes=6, ranks=12, placed=None,
         groups=3, costs=True, mode=LOCALITY)
    test('one node', many, check_plan, planner, rng, 50, nodes=1, ranks=3,
         placed=None)
    test('several groups, local', many, check_plan, planner, rng, 100, nodes=6, ranks=12, placed=None,
         groups=3, mode=LOCAL)
    test(f'{worlds} worlds keep the rules', many, check_rules, planner, rng, worlds, echo=ONE, mode=LOCALITY)
    test('with several groups', many, check_rules, planner, rng, worlds, echo=ONE, mode=LOCALITY, nodes=6, ranks=12,
         placed=None, groups=3)
    test('with several groups, ranks anywhere', many, check_rules, planner, rng, 100, echo=ONE, mode=LOCALITY, nodes=4,
         ranks=7, placed=[0, 3, 3, 1, 0, 0, 3], groups=2)
    test('several groups: little is moved', groups, planner, rng, 20)
    for name, mode in ('locality', LOCALITY), ('regular', REGULAR), ('local', LOCAL):
        test(f'resumed in mid-epoch, {name}', resumes, planner, rng, worlds, mode=mode)
    test('resumed in mid-epoch, costs', resumes, planner, rng, worlds // 5, mode=LOCALITY, costs=True, steps=None)
    test('resumed in mid-epoch, local, several groups', resumes, planner, rng, 50, mode=LOCAL, nodes=6, groups=3,
         ranks=12, placed=None)
    test('local: each sample once', local_once, planner, rng, worlds)
    test('repeats stay where they were', repeats_stay, planner)
    test('refusals', refusals, planner)
    print(f'1..{count}')
    planner.process.stdin.close()
    if planner.process.wait() != 0:
        print('# the planner failed')
        sys.exit(1)
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
