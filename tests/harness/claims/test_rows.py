"""The figures that claims are about: sums by conversation, with intervals that cannot be impossible."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from ctxbench.harness.claims import compression, cost, storage, tokens
from ctxbench.harness.claims.claim import Measurement
from ctxbench.harness.claims.inputs import ClaimInputs, against, by_kind, of_groups, of_metric, of_sums
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Call, Conversation, Message, Usage
from tests.harness.claims.builders import figures, inputs, saving, spread


def test_a_saving_is_of_sums() -> None:
    """1 − (10 + 30) / (100 + 100) = 80 %, whatever the conversations' own savings average to."""
    found = of_sums(np.array([(10.0, 100.0), (30.0, 100.0)]), "saving")
    assert isinstance(found, Interval)
    assert found.mean == pytest.approx(0.8)


def test_one_conversation_has_a_value_and_no_interval() -> None:
    """What cannot be known is missing, and says why; so is a figure of nothing."""
    found = of_groups([(1.0, 2.0)])
    assert isinstance(found, Interval)
    assert found.mean == 0.5
    assert found.low == found.high == Missing("undefined", "one conversation")
    assert isinstance(of_groups([]), Missing)
    assert isinstance(of_groups([(0.0, 0.0)]), Missing)


def test_an_interval_has_no_impossible_ends() -> None:
    """A share is at most 1, a time at least 0, a saving at most 1; what may be negative is left alone."""
    share = of_groups([(1.0, 1.0), (0.2, 1.0), (1.0, 1.0)])
    time = of_groups([(1.0, 1.0), (90.0, 1.0), (2.0, 1.0)])
    error = of_groups([(-9.0, 10.0), (1.0, 10.0), (2.0, 10.0)])
    assert isinstance(share, Interval)
    assert isinstance(time, Interval)
    assert isinstance(error, Interval)
    assert (share.high, time.low) == (1.0, 0.0)
    assert error.low < 0  # type: ignore[operator]


def test_a_share_that_is_the_same_everywhere_is_not_known_exactly() -> None:
    """Of 4 units that all lose nothing, Wilson's interval for 0 of 4 reaches 3.84 / 7.84 = 0.49; 4 of 4 mirrors it."""
    none, every = of_sums(np.array([(0.0, 5.0)] * 4), "ratio"), of_sums(np.array([(0.0, 5.0)] * 4), "saving")
    assert isinstance(none, Interval)
    assert isinstance(every, Interval)
    assert none == (0.0, 0.0, pytest.approx(3.8415 / 7.8415, abs=1e-4))
    assert every == (1.0, pytest.approx(4 / 7.8415, abs=1e-4), 1.0)


def test_strategies_are_compared_in_pairs() -> None:
    """Conversations differ far more than the strategies do, and the difference is still found."""
    base = [(50.0 + 40 * (at % 2), 100.0) for at in range(8)]
    better = [(sent - 5 + at % 2, full) for at, (sent, full) in enumerate(base)]
    made = inputs(figures=figures({"none": {"net_saving": base}, "window": {"net_saving": better}}))
    found = against(made, "window", "none", "net_saving")
    assert isinstance(found, Interval)
    assert found.low > 0  # type: ignore[operator]
    assert isinstance(against(made, "smart", "none", "net_saving"), Missing)


def test_what_does_not_move_is_no_evidence() -> None:
    """Two strategies that did the same everywhere: the recordings do not tell them apart."""
    made = inputs(figures=figures({name: {"net_saving": saving(0.5)} for name in ("none", "window")}))
    found = against(made, "window", "none", "net_saving")
    assert isinstance(found, Interval)
    assert (found.mean, found.low) == (0.0, Missing("undefined", "in no conversation did anything move"))


def test_kinds_stand_beside_the_whole() -> None:
    """A row for each kind of conversation, none of which decides; a strategy that was not run has none."""
    made = inputs(figures=figures({"window": {"net_saving": saving(0.5)}}))
    (row,) = by_kind(made, "window", "net_saving", "saved", None)
    assert (row.setting, row.decides, row.of) == ("window · kind", False, "8 conversations")
    assert by_kind(made, "smart", "net_saving", "saved", None) == []
    assert of_metric(made, "smart", "net_saving") == Missing("unsupported", "smart was not run")


def _twins(unit: str) -> list[Conversation]:
    """Eight conversations that differ; where `unit` is named they are all of it."""
    twins = []
    for at in range(8):
        call = Call("m", started=100.0, usage=Usage(input=1000, output=10, cache_read=900))
        fresh = msgspec.structs.replace(call, started=200.0, usage=Usage(input=1000, output=10, cache_read=0))
        said = (
            Message("u", "user", f"The committee has met {at} times, and reads the report on the harbour again."),
            Message("a", "assistant", "It has.", time=101.0 + at / 100, call=call),
            Message("t", "tool", '{"meetings": [' + "1, " * at + "2]}", name="read"),
            Message("b", "assistant", "And again.", time=202.0, call=fresh),
        )
        twins.append(Conversation(f"c{at}", said, meta={"unit": unit} if unit else {}))
    return twins


@pytest.mark.parametrize(
    "measure",
    [tokens.estimate, tokens.counted, compression.kinds, storage.lossless, cost.latencies],
    ids=["C16", "C17", "C24", "C13", "C29"],
)
@pytest.mark.parametrize("unit", ["", "generator"])
def test_conversations_of_one_unit_are_one_draw(
    measure: Callable[[ClaimInputs], Measurement], unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many conversations one generator made, what is measured on them has no interval."""
    monkeypatch.setattr(storage, "restored", lambda *_: (10, 10))
    monkeypatch.setattr(compression, "_vectors", lambda *_, **__: None)
    monkeypatch.setattr(compression, "_width", lambda *_: None)
    said = _twins(unit)
    known = {"archive": {"evidence_absent": spread(0.1), "grounding": spread(0.9)}}
    made = inputs(conversations=said, recorded=said, figures=figures(known))
    first = next(row.found for row in measure(made).rows if row is not None)
    assert not isinstance(first, Missing)
    assert isinstance(first.low, Missing) == bool(unit)
