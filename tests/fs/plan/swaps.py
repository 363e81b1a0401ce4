"""The swaps of fs/plan/COST, written plainly from that page."""

MILLION = 10 ** 6


class Window:
    """steps: lists of ranks, each of samples; batches: their global batches as positions of these samples.

    cost, size: by sample. away(sample, rank). sets: lists of ranks."""

    def __init__(self, batches, dealt, cost, size, away, balance, sets):
        self.cost, self.size, self.away, self.balance = cost, size, away, balance
        self.ranks = len(dealt[0])
        self.at = []  # by step and rank: positions in the window, and the sample of each position
        self.sample = [x for batch in batches for x in batch]
        begin = 0
        for batch, lists in zip(batches, dealt):
            self.at.append([[begin + i for i in one] for one in lists])
            begin += len(batch)
        self.before = self.slowest()
        self.swaps = self.moved = self.moved_bytes = 0
        for ranks in sets:
            self.balance_set(ranks)
        self.after = self.slowest()

    def lists(self):
        return [[[self.sample[i] for i in one] for one in step] for step in self.at]

    def load(self, rank):
        return sum(self.cost[self.sample[i]] for step in self.at for i in step[rank])

    def count(self, rank):
        return sum(len(step[rank]) for step in self.at)

    def slowest(self):
        total, samples = (sum(f(r) for r in range(self.ranks)) for f in (self.load, self.count))
        return max([MILLION] + [self.load(r) * MILLION * samples // (total * self.count(r))
                                for r in range(self.ranks) if total and self.count(r)])

    def excess(self, rank, total, samples):
        return self.load(rank) - (total * self.balance * self.count(rank) // (samples * MILLION) if samples else 0)

    def move(self, position, source, target):
        x = self.sample[position]
        return self.away(x, target) - self.away(x, source)

    def pair(self, h, low, eh, el):
        difference = eh - el
        near, other = [], []
        for t, step in enumerate(self.at):
            for a in step[h]:
                for b in step[low]:
                    d = self.cost[self.sample[a]] - self.cost[self.sample[b]]
                    off = abs(2 * d - difference)
                    ma, mb = self.move(a, h, low), self.move(b, low, h)
                    if eh - d <= 0 and el + d <= 0:
                        near.append((ma + mb, off, self.size[self.sample[a]] * ma + self.size[self.sample[b]] * mb,
                                     a, b, t))
                    if 0 < d < difference:
                        other.append((off, a, b, t))
        return min(near)[-3:] if near else min(other)[-3:] if other else None

    def swap(self, h, low, a, b, t):
        for x, source, target in (a, h, low), (b, low, h):
            self.moved += self.move(x, source, target)
            self.moved_bytes += self.size[self.sample[x]] * self.move(x, source, target)
        self.swaps += 1
        lists = self.at[t]
        i, k = lists[h].index(a), lists[low].index(b)
        lists[h][i], lists[low][k] = b, a

    def swap_once(self, ranks, total, samples):
        e = {r: self.excess(r, total, samples) for r in ranks}
        h = min(ranks, key=lambda r: (-e[r], r))
        if e[h] <= 0:
            return False
        for low in sorted((r for r in ranks if r != h), key=lambda r: (e[r], r)):
            if e[h] - e[low] <= 1:
                return False
            pair = self.pair(h, low, e[h], e[low])
            if pair:
                self.swap(h, low, *pair)
                return True
        return False

    def balance_set(self, ranks):
        total, samples = sum(map(self.load, ranks)), sum(map(self.count, ranks))
        for _ in range(4 * len(ranks) * len(self.at)):
            if not self.swap_once(ranks, total, samples):
                break
