"""C14: what each way to trigger loading brings back for a question, against what its answer rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq

from ...metrics.statistics.bootstrap import Floats, Statistic, resampled
from ...metrics.statistics.interval import Interval
from ...metrics.value import Missing
from ..loading import Run
from .claim import Claimed, Measured, Row
from .inputs import Inputs

BY_RULE = ("keyword", "semantic", "hybrid")
MODEL = "archive"
"""Whose trigger is the model."""
NO_MODEL = Missing("unsupported", "no model that calls tools has answered the probes of this run")


def triggers(inputs: Inputs) -> Measured:
    """Loads and evidence by conversation: right loads, loads, and archived evidence."""
    found = {name: counted(inputs.run_of(_spec(name)), _spec(name)) for name in BY_RULE}
    model = of_model(inputs.run)
    rows = [
        Row(
            setting="the model − " + name,
            figure="difference in F1 of what is loaded",
            unit="points",
            found=NO_MODEL if model is None else difference(found[name], model),
            claimed=Claimed(least=0.0, above=True),
            of=inputs.of,
        )
        for name in ("keyword", "semantic")
    ]
    for name, sums in (found if model is None else {"model": model, **found}).items():
        table = np.array(list(sums.values()), np.float64).reshape(-1, 3)
        for figure, statistic in (("F1", f1), ("precision", precision), ("recall", recall)):
            rows.append(
                Row(
                    setting=f"trigger {name}",
                    figure=f"{figure} of what is loaded",
                    unit="share",
                    found=_interval(table, statistic),
                    of=f"{len(table)} conversations with archived evidence or loads",
                    decides=False,
                )
            )
    return Measured(
        tuple(rows),
        "Keyword, similarity and hybrid need no model and are measured; F1 joins precision and recall.",
        "Answers by a model that calls tools: `ctxbench answer RUN --answerer MODEL`.",
    )


def _spec(trigger: str) -> str:
    return f"archive(trigger='{trigger}')"


Sums = Mapping[str, Sequence[int]]
"""By conversation: right loads, loads, archived evidence."""


def counted(run: Run, strategy: str) -> Sums:
    """Of a trigger that needs no model: what it loaded when each probe was asked."""
    rows = run.probes(strategy)
    return _counted(run, strategy, ((each, _loaded(each["events"])) for each in _asked(rows)))


def of_model(run: Run) -> Sums | None:
    """What models loaded that answered the probes with the tool; None where none did."""
    folders = [each for each in (run.folder / "answers").glob("*") if each.is_dir() and each.name != "offline"]
    called: dict[tuple[str, int], list[str]] = {}
    for folder in folders:
        for part in sorted(folder.rglob("*.parquet")):
            for row in pq.read_table(part, columns=["conversation", "strategy", "number", "events"]).to_pylist():
                if row["strategy"] == MODEL:
                    called[row["conversation"], row["number"]] = _loaded(row["events"])
    if not any(called.values()):
        return None
    rows = _asked(run.probes(MODEL))
    return _counted(run, MODEL, ((each, called.get((each["conversation"], each["number"]), [])) for each in rows))


def _asked(rows: Any) -> Iterator[dict[str, Any]]:
    yield from rows[rows.failed.fillna("") == ""].to_dict("records")


def _loaded(events: Any) -> list[str]:
    """The uuids that were loaded."""
    told = [msgspec.json.decode(each) for each in ([] if events is None else events)]
    return [each["uuid"] for each in told if each["event"] == "loaded"]


def _counted(run: Run, strategy: str, asked: Iterator[tuple[dict[str, Any], list[str]]]) -> Sums:
    archived = _archived(run, strategy)
    made: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row, uuids in asked:
        known = {
            uuid: message
            for uuid, (message, step) in archived[str(row["conversation"])].items()
            if step <= row["step"]  # NaN, before the first call: nothing is archived
        }
        wanted = set(row["evidence"]) & set(known.values())
        loaded = {known[uuid] for uuid in uuids if uuid in known}
        if wanted or loaded:
            sums = made[str(row["conversation"])]
            sums[0] += len(loaded & wanted)
            sums[1] += len(loaded)
            sums[2] += len(wanted)
    return made


def _archived(run: Run, strategy: str) -> Mapping[str, Mapping[str, tuple[str, int]]]:
    """By conversation and uuid: the message that was archived, and at which step."""
    events = run.table("events")
    events = events[(events.kind == "archived") & (events.strategy.astype(str) == strategy)]
    made: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for conversation, step, event in zip(events.conversation, events.step, events.event, strict=True):
        told = msgspec.json.decode(event)
        made[str(conversation)][told["uuid"]] = told["message"], int(step)
    return made


def precision(sums: Floats) -> Floats:
    """Of what is loaded, the share that answers rest on."""
    return _over(sums[..., 0], sums[..., 1])


def recall(sums: Floats) -> Floats:
    """Of archived results that answers rest on, the share that is loaded."""
    return _over(sums[..., 0], sums[..., 2])


def f1(sums: Floats) -> Floats:
    """Their harmonic mean."""
    return _over(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _over(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Floats = top / bottom
    return made


def difference(before: Sums, after: Sums) -> Interval | Missing:
    """By how much the second F1 is larger, in pairs of conversations."""
    names = [*dict.fromkeys([*before, *after])]
    table = np.array([[*before.get(name, (0, 0, 0)), *after.get(name, (0, 0, 0))] for name in names], np.float64)
    return _interval(table.reshape(-1, 6), lambda sums: f1(sums[..., 3:]) - f1(sums[..., :3]), -1.0)


def _interval(table: Floats, statistic: Statistic, least: float = 0.0) -> Interval | Missing:
    """Of shares: they are never over 1, and differences of them never under -1."""
    if not len(table) or not np.isfinite(value := float(statistic(table.sum(axis=0)))):
        return Missing("undefined", "nothing was loaded, or no archived result has evidence")
    found = resampled(table, statistic)
    if isinstance(found, Missing):
        return Interval(value, found, found)
    ends = found.interval()
    return Interval(value, max(ends.low, least), min(ends.high, 1.0))
