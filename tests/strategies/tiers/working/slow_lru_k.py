"""LRU-K as the paper's figure has it: each eviction looks at all that is held. What our versions are compared with."""


class SlowLruK:
    """HIST and LAST as tables; an infinite distance is a HIST of minus infinity."""

    def __init__(self, capacity: int, k: int, correlated: float, retained: float) -> None:
        self.capacity, self.k, self.correlated, self.retained = capacity, k, correlated, retained
        self.held: dict[str, int] = {}
        self.hist: dict[str, list[float]] = {}
        self.last: dict[str, float] = {}
        self.used_at: dict[str, int] = {}
        self.count = 0

    def access(self, p: str, tokens: int, t: float) -> tuple[bool, list[str]]:
        self.count += 1
        never, left = float("-inf"), []
        if p in self.held:
            if t - self.last[p] > self.correlated:
                span = self.last[p] - self.hist[p][0]
                self.hist[p] = [t] + [self.hist[p][i - 1] + span for i in range(1, self.k)]
            self.last[p], self.used_at[p] = t, self.count
            return True, left
        if tokens > self.capacity:
            return False, left
        while sum(self.held.values()) + tokens > self.capacity:
            free = [q for q in self.held if t - self.last[q] > self.correlated]
            if free:
                victim = min(free, key=lambda q: (self.hist[q][self.k - 1], self.used_at[q]))
            else:
                victim = min(self.held, key=lambda q: self.used_at[q])
            del self.held[victim]
            left.append(victim)
        kept = p in self.hist and t - self.last[p] <= self.retained
        before = self.hist[p] if kept else [never] * self.k
        self.hist[p] = [t, *before[: self.k - 1]]
        self.last[p], self.used_at[p] = t, self.count
        self.held[p] = tokens
        return False, left
