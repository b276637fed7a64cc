"""`ctxbench lab tiers`: each tier on a load that fills it."""

from itertools import islice
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import written_to
from ctxbench.harness.tier_bench.archive import ArchiveBench
from ctxbench.harness.tier_bench.bench import BenchSetup
from ctxbench.harness.tier_bench.overview import ARCHIVED, Overview, OverviewMeasurement
from ctxbench.reports.render import markdown
from ctxbench.reports.tiers import tables
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.tiers.working.policies import parse
from ctxbench.strategies.tiers.working.traces import mem_002, replay

pytestmark = pytest.mark.slow
SMALL = "tiered(limit=2048, working=1024, archive=8192, recall=1024)"


@pytest.fixture(scope="module")
def measurement(tmp_path_factory: pytest.TempPathFactory) -> OverviewMeasurement:
    """The figures of the command, with smaller tiers under `tiered` and a shorter load for them."""
    return Overview(strategy=SMALL, turns=60).measure(BenchSetup(tmp_path_factory.mktemp("overview")))


def test_the_policies_hits_are_those_of_the_trace(measurement: OverviewMeasurement) -> None:
    """Look-up by look-up, of the documents' acceptance load at the size of its Working tier."""
    trace = mem_002(0)
    assert [row.policy for row in measurement.working.rows] == [
        "lru_k(correlated=100)", "lru_k_document", "lru", "w_tiny_lfu", "belady"
    ]  # fmt: skip
    for row in measurement.working.rows:
        hits = replay(trace, parse(row.policy), 131_072).hits[trace.counted]
        assert row.hit_rate.mean == pytest.approx(hits.sum() / 1000)  # type: ignore[union-attr]
        assert row.evictions > 0


def test_the_archive_is_the_one_of_the_longer_measurement(measurement: OverviewMeasurement, tmp_path: Path) -> None:
    """The same bytes, and the same of each coder beside it."""
    inputs = written_to(tmp_path / "two.jsonl", islice(scenario(ARCHIVED), 2))
    whole = ArchiveBench(tuple(map(str, inputs.names))).measure(BenchSetup(tmp_path))
    sizes = {size.name: size.bytes for size in whole.lossless[0].sizes}
    assert measurement.archive.archive == whole.archive
    assert measurement.archive.bytes == whole.lossless[0].original - 3  # newlines between four blocks
    assert {size.name: size.bytes for size in measurement.archive.coders}.items() <= sizes.items()


def test_it_is_short(measurement: OverviewMeasurement) -> None:
    """`make bench` has room for eight lines of a hundred characters."""
    [table] = tables(measurement)
    assert [row[0] for row in table.rows] == ["Working: hits", "Archive: bytes", "RAG: recall@5", "tiered: hits"]
    assert all(len("  ".join((row[0], f"{row[1]:<15}", row[2]))) <= 100 for row in table.rows)
    assert len(markdown([table]).splitlines()) <= 16
