"""`ctxbench lab tiers`: memory tiers alone, against their peers and their bounds."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from .arguments import ModelOptions
from .replies import end


def tiers(
    specs: list[str] | None = None,
    *,
    as_json: bool = False,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure memory tiers alone, beside the best known alternatives and the bound that none can exceed.

    Without a SPEC all tiers are measured on the acceptance loads of their design. There are

        all(index, strategy, turns)                                      a line for each tier
        working(trace, policies, capacity, seeds, preload, seconds)      hit rates of cache policies
        archive(recordings, format, level, dictionary)                   sizes, losses and speed
        focus(recordings, format, limit, truncations, beside)            what it keeps within its limit
        rag(recordings, format, retrievers, k, index, words, embedder)   recall of evidence, latency

    Where recordings are read, the exit code is 2 if one was left out, and with --strict if a reply of a model is
    missing.

    Args:
        specs (TIER): A tier and what to measure it on, written as a strategy is: 'rag(recordings="talks.jsonl", k=10)'.
            [default: all]
    """
    from ctxbench.harness.tier_bench.archive import ArchiveBench
    from ctxbench.harness.tier_bench.bench import BenchSetup
    from ctxbench.harness.tier_bench.focus import FocusBench, FocusMeasurement
    from ctxbench.harness.tier_bench.overview import Overview
    from ctxbench.harness.tier_bench.rag import RagBench
    from ctxbench.harness.tier_bench.working import Working
    from ctxbench.reports import tiers as shown
    from ctxbench.scenarios.source import Problems
    from ctxbench.scenarios.spec import parse, spec

    from .output import put
    from .progress import counting, watching
    from .streams import report_problems

    kinds = {"all": Overview, "working": Working, "archive": ArchiveBench, "focus": FocusBench, "rag": RagBench}
    names = {kind: name for name, kind in kinds.items()}
    parsed = [parse(text, kinds, "tier") for text in specs or ["all"]]
    settings, problems = reach.settings(), Problems(strict=strict)
    with TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        bench = BenchSetup(Path(folder), settings, problems, counting, watching)
        measurements = {spec(names[type(tier)], tier): tier.measure(bench) for tier in parsed}
    report_problems(problems)
    put(
        lambda: {name: shown.as_json(measurement) for name, measurement in measurements.items()},
        lambda: [table for measurement in measurements.values() for table in shown.tables(measurement)],
        as_json,
    )
    focus = [measurement for measurement in measurements.values() if isinstance(measurement, FocusMeasurement)]
    tallies = [tally for measurement in focus for tally in measurement.replies]
    end(tallies, strict, settings, anew="a new --cassette", failed=bool(problems.errors))
