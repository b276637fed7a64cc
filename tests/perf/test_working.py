"""`make perf`: LRU-K with history beside libcachesim's without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ctxbench.strategies.tiers.working.compiled import lru_k

pytestmark = pytest.mark.perf
Bench = Any
Ints = NDArray[np.int64]
OBJECTS, ACCESSES, CACHE = 100_000, 1_000_000, 10_000
GROUP = "LRU-K: 1M accesses, Zipf 1.0 over 100,000 objects, cache 10,000; faster than libcachesim's is asked for"


def zipf(chance: np.random.Generator, accesses: int = ACCESSES) -> Ints:
    weights = 1 / np.arange(1, OBJECTS + 1)
    return chance.choice(OBJECTS, accesses, p=weights / weights.sum()).astype(np.int64)


@pytest.fixture(scope="module")
def ids() -> Ints:
    """The trace, and LRU-K compiled."""
    lru_k(np.zeros(1, np.int64), 1)
    return zipf(np.random.default_rng(0))


@pytest.mark.benchmark(group=GROUP)
@pytest.mark.parametrize("parameters", [{}, {"correlated": 20.0}, {"retained": 0.0}], ids=str)
def test_ours(benchmark: Bench, ids: Ints, parameters: dict[str, float]) -> None:
    """With history for ever (the default), with a correlated period, without history (which is theirs)."""
    found = benchmark.pedantic(lru_k, (ids, CACHE), parameters, rounds=5, warmup_rounds=1)
    benchmark.extra_info["hit rate"] = float(found.hits.mean())


@pytest.mark.benchmark(group=GROUP)
def test_libcachesim(benchmark: Bench, ids: Ints, tmp_path: Path) -> None:
    """The peer, which keeps no history, over a binary file. It hits what ours hits without history."""
    peer = pytest.importorskip("libcachesim", reason="libcachesim has no wheel for this machine", exc_type=ImportError)
    row = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
    rows = np.zeros(len(ids), row)
    rows["id"], rows["size"], rows["next"] = ids + 1, 1, 1 << 60
    path = tmp_path / "zipf.oracleGeneral.bin"
    rows.tofile(path)

    def fresh() -> tuple[tuple[Any, ...], dict[str, object]]:
        only = peer.ReaderInitParam(ignore_obj_size=True)
        return (peer.TraceReader(str(path), peer.TraceType.ORACLE_GENERAL_TRACE, only),), {}

    def go(reader: Any) -> float:
        misses: float = peer.LRUK(CACHE, hashpower=18).process_trace(reader)[0]
        return 1 - misses

    hit_rate = benchmark.pedantic(go, setup=fresh, rounds=5, warmup_rounds=1)
    assert hit_rate == pytest.approx(lru_k(ids, CACHE, retained=0).hits.mean(), abs=1e-9)
