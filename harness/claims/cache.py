"""C20–C22: the Working tier's hit rate by policy, beside the hit rate that no policy can exceed."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from ...metrics.statistics.intervals import Interval, of_seeds
from ...metrics.value import Missing, Value
from ...strategies.tiers.working import CAPACITY
from ...strategies.tiers.working.policies import PolicyRecipe, parse
from ...strategies.tiers.working.traces import TRACES, Trace, scan, zipf
from ..tier_bench.working import Load, bounds, measured
from .claim import Claimed, ClaimRow, Measurement, exact
from .inputs import ClaimInputs, Measures

HITS = "hit rate"
PLAIN, DOCUMENT = "lru_k", "lru_k_document"
PEERS = (PLAIN, "lru_k(correlated=100)", "lru", "lfu", "arc", "s3_fifo", "belady_size")
READINGS = ("mem_002_recent", "mem_002_pareto")
PROFILES = {
    "load_default": "hybrid",
    "load_conversation": "hybrid(profile='conversation')",
    "load_knowledge": "hybrid(profile='knowledge')",
    "load_context": "hybrid(profile='context')",
}
SHORT, SMALL = 5_000, 32_768
"""Accesses of the traces on which the document's algorithm is compared, and the tokens of the cache. Both are small
because that algorithm looks at all items whenever it evicts."""


def hit_rate(inputs: ClaimInputs) -> Measurement:
    """Measure C20: the load of MEM-002 as it is written, a fifth chosen by chance, and its other two readings."""
    rows: list[ClaimRow] = []
    for name in ("mem_002", *READINGS):
        load = Load(name, [TRACES[name](seed) for seed in range(inputs.seeds)], "seed")
        bound = bounds(load, CAPACITY)
        for policy in PEERS if name == "mem_002" else (PLAIN,):
            (row,) = measured(load, CAPACITY, [parse(policy)])
            rows.append(
                ClaimRow(
                    setting=f"{policy}, {name}",
                    figure=HITS,
                    unit="share",
                    found=row.hits,
                    claimed=Claimed(least=0.9, above=True),
                    bound=bound.hits,
                    of=_seeds(inputs),
                    decides=name == "mem_002" and policy == PLAIN,
                )
            )
        if name == "mem_002" and not isinstance(bound.expected, Missing):
            expected = 100 * bound.expected
    return Measurement(tuple(rows), {"expected": expected})


def hybrid(inputs: ClaimInputs) -> Measurement:
    """Measure C21: each profile on its own load, less plain LRU-K, in pairs of seeds."""
    rows: list[ClaimRow] = []
    for name, policy in PROFILES.items():
        samples = [TRACES[name](seed) for seed in range(inputs.seeds)]
        ours = hits(samples, policy, CAPACITY)
        for base, decides in ((PLAIN, True), ("lru_k(correlated=100)", False)):
            rows.append(_difference(f"{policy} − {base}, {name}", ours, hits(samples, base, CAPACITY), inputs, decides))
    return Measurement(tuple(rows))


def as_written(inputs: ClaimInputs) -> Measurement:
    """Measure C22: whether the document's code protects items with few uses, and how it does beside O'Neil's LRU-K."""
    rows = [
        ClaimRow(
            setting=f"{DOCUMENT}: A A B C with room for two",
            figure="items with fewer than K uses that are evicted before one with K",
            unit="count",
            found=exact(evicted_protected()),
            claimed=Claimed(most=0.0),
        )
    ]
    generators = {"zipf": zipf, "scan": scan}
    loads: dict[str, tuple[list[Trace], int]] = {
        name: ([make(seed, SHORT) for seed in range(inputs.seeds)], SMALL) for name, make in generators.items()
    }
    loads["mem_002"] = [TRACES["mem_002"](seed) for seed in range(inputs.seeds)], CAPACITY
    for name, (samples, size) in loads.items():
        ours, took = _timed(samples, DOCUMENT, size)
        reference, plain = _timed(samples, PLAIN, size)
        rows.append(_difference(f"{DOCUMENT} − {PLAIN}, {name}", ours, reference, inputs, name != "mem_002", True))
        rows.append(
            ClaimRow(
                setting=f"{DOCUMENT} over {PLAIN}, {name}",
                figure="time of an access",
                unit="times",
                found=of_seeds([one / other for one, other in zip(took, plain, strict=True)]),
                of=_seeds(inputs),
                decides=False,
                timed=True,
            )
        )
    return Measurement(tuple(rows))


def evicted_protected() -> int:
    """Return how many items used once are evicted while one that was used twice stays."""
    cache = parse(DOCUMENT).sized(2)
    evicted: list[str] = []
    for at, id in enumerate("AABC"):
        evicted += cache.access(id, 1, float(at)).evicted
    return sum(id == "B" for id in evicted)


def hits(samples: Sequence[Trace], policy: str, size: int) -> list[Value]:
    """Return the hit rate of each sample."""
    return _timed(samples, policy, size)[0]


def _timed(samples: Sequence[Trace], policy: str, size: int) -> tuple[list[Value], list[float]]:
    recipe: PolicyRecipe = parse(policy)
    rates, seconds = list[Value](), list[float]()
    for trace in samples:
        began = perf_counter()
        (row,) = measured(Load(trace.name, [trace], "seed"), size, [recipe])
        seconds.append(perf_counter() - began)
        rates.append(row.hits if isinstance(row.hits, Missing) else row.hits.mean)
    return rates, seconds


def _difference(
    setting: str,
    ours: Sequence[Value],
    base: Sequence[Value],
    inputs: ClaimInputs,
    decides: bool,
    no_worse: bool = False,
) -> ClaimRow:
    return ClaimRow(
        setting=setting,
        figure="difference in hit rate",
        unit="points",
        found=paired(ours, base),
        claimed=Claimed(least=0.0, above=not no_worse),
        of=_seeds(inputs),
        decides=decides,
    )


def paired(ours: Sequence[Value], base: Sequence[Value]) -> Interval | Missing:
    """Return the difference by seed, with its interval over seeds."""
    values: list[Value] = []
    for one, other in zip(ours, base, strict=True):
        if isinstance(one, Missing):
            return one
        if isinstance(other, Missing):
            return other
        values.append(one - other)
    return of_seeds(values)


def _seeds(inputs: ClaimInputs) -> str:
    return f"{inputs.seeds} seeds"


MEASURES: Measures = {
    "C20": (hit_rate, ()),
    "C21": (hybrid, ()),
    "C22": (as_written, ()),
}
