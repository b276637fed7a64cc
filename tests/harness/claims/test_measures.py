"""Claims that no row can say, on inputs made by hand: where each must hold, fail, and cannot be told."""

import json
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.claims import measures
from ctxbench.harness.claims.claim import Finding, Measured
from ctxbench.harness.claims.measures import Figures
from ctxbench.harness.claims.registry import CLAIMS
from ctxbench.harness.claims.rows import ClaimInputs, ClaimSettings, Row, differences, loads, measure_row
from ctxbench.harness.models import Settings
from ctxbench.harness.tier_bench import archive, rag
from ctxbench.harness.tier_bench.rag import SearchOutcome
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Call, Conversation, Message, Usage
from ctxbench.strategies.tiers.rag import RETRIEVERS
from tests.harness.claims.builders import FEW, MANY, Stored, figures, inputs, spread, verdict


def deciding(finding: Finding) -> list[str]:
    """The settings that decide a claim."""
    return [row.setting for row in finding.rows if row.decides]


def plain(size: int, text: str = "?") -> list[Conversation]:
    """Conversations of one message, each a little different."""
    return [Conversation(str(at), (Message("m", "user", text + " ok" * (at % 2)),)) for at in range(size)]


def test_the_composition_is_chosen_by_the_other_conversations() -> None:
    """What is best for one conversation alone is not taken there: by the others' bills it is not the best.

    Costs of two compositions: a 1, b 9 in the first conversation; a 9, b 1 in the two others. By the others, the first
    takes b (9), the second a tie, a (1 + 9 = 10 each, first of equals: 9), the third the same: 27 of 30.
    """
    costs = np.array([[1.0, 9.0], [9.0, 1.0], [9.0, 1.0]])
    found, most = measures.chosen_by_others(["a", "b"], costs, np.full(3, 10.0), "abc")
    assert not isinstance(found, Missing)
    assert (found.mean, most) == (pytest.approx(1 - 27 / 30), "a")
    assert isinstance(measures.chosen_by_others(["a"], costs[:1, :1], np.full(1, 10.0), "a")[0], Missing)


def test_arithmetic_prices_and_examples() -> None:
    """2500 × 0.1 + 100 = 350, not 400; Anthropic's 90 % stands, OpenAI's 50 % does not; 5 + 20 of 25 messages."""
    (row,) = CLAIMS["C10"].finding(inputs()).rows
    assert (row.found, row.verdict) == ((350.0, 350.0, 350.0), "fails")
    discounts = CLAIMS["C09"].finding(inputs())
    by = {(row.setting, row.unit): row.verdict for row in discounts.rows}
    assert (by["claude-sonnet-5", "share"], by["gpt-5.6", "share"]) == ("holds", "fails")
    assert discounts.verdict == "fails"
    examples = CLAIMS["C18"].finding(inputs())
    assert [row.found for row in examples.rows[1:]] == [(5, 5, 5), (20, 20, 20)]
    assert examples.verdict == "holds"


def calls(cached: float, fresh: float, unit: str = "") -> Conversation:
    """Two calls, one of which the provider read from its cache."""
    said = []
    for at, (read, seconds) in enumerate(((900, cached), (0, fresh))):
        call = Call("m", started=100.0 * at, usage=Usage(input=1000, output=10, cache_read=read))
        said += [
            Message(
                f"u{at}",
                "user",
                "The committee has read it." + " Well." * (round(100 * cached) % 3),
                time=100.0 * at - 1,
            ),
            Message(f"a{at}", "assistant", "It has.", time=100.0 * at + seconds, call=call),
        ]
    return Conversation(f"c{cached}{fresh}", tuple(said), meta={"unit": unit} if unit else {})


def test_latencies_are_recorded_or_cannot_be_told() -> None:
    """Without recordings nothing is known; with some, the first row is, and the second stays open."""
    assert verdict("C29", inputs()) == "cannot tell"
    for seconds, word in ((1.0, "holds"), (2.0, "fails")):
        said = [calls(seconds + at / 100, 2.0) for at in range(MANY)]
        first, second = CLAIMS["C29"].finding(inputs(recorded=said)).rows
        assert (first.verdict, second.verdict) == (word, "cannot tell")


@pytest.mark.parametrize(
    "measure", [measures.estimate, measures.counting, measures.kinds, measures.lossless, measures.recorded_latencies]
)
@pytest.mark.parametrize("unit", ["", "generator"])
def test_conversations_of_one_unit_are_one_draw(
    measure: Callable[[ClaimInputs], Figures], unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many conversations one generator made, what is measured on them has no interval."""
    monkeypatch.setattr(measures, "restored", lambda *_: (10, 10))
    monkeypatch.setattr(archive, "coded", lambda *_: Missing("undefined"))
    monkeypatch.setattr(measures, "fastest", lambda _: 1e-7)
    said = [calls(1 + at / 100, 2.0, unit) for at in range(MANY)]
    first = next(measure(inputs(conversations=said, recorded=said)))
    assert isinstance(first, Measured)
    assert not isinstance(first.found, Missing)
    assert isinstance(first.found.low, Missing) == bool(unit)


def test_the_documents_load() -> None:
    """Ten turns, each with a result of 50,000 characters, the same for a seed and another for the next.

    The first page of seed 8 is three times as long as the others on average: ten turns are filled all the same.
    """
    nine = list(loads(9))
    for said in nine:
        assert [len(message.text) for message in said.messages if message.role == "tool"] == [50_000] * 10
    assert nine[0].messages[3].text != nine[1].messages[3].text
    assert next(loads(1)) == nine[0]


def test_archived_results_come_back_to_the_byte() -> None:
    """Of three results the model has seen two: both are loaded by its own tool, and are what was stored."""
    (said,) = loads(1)
    assert measures.restored(Conversation("three", said.messages[:13]), TokenCounter()) == (2, 2)
    assert measures.restored(Conversation("short", said.messages[:2]), TokenCounter()) == (0, 0)


def _triggered(loaded: list[str]) -> Stored:
    """Results a and b are archived at step 3; of two probes whose answer rests on a, one is asked before."""
    stored = [(each, json.dumps({"event": "archived", "message": each, "uuid": each * 2})) for each in ("a", "b")]
    events = [(f"kind/{at}", "archive", 3, "archived", event) for at in range(MANY) for _, event in stored]
    told = [json.dumps({"event": "loaded", "uuid": each * 2}) for each in loaded]
    probes = [(f"kind/{at}", "archive", 0, "", 5.0, ["a"], told) for at in range(MANY)]
    probes += [(f"kind/{at}", "archive", 1, "", 1.0, ["a"], []) for at in range(MANY)]
    names = ["conversation", "strategy", "number", "failed", "step", "evidence", "events"]
    columns = ["conversation", "strategy", "step", "kind", "event"]
    return Stored({"events": pd.DataFrame(events, columns=columns), "probes": pd.DataFrame(probes, columns=names)})


def test_triggers_by_what_they_load() -> None:
    """Two results are archived, an answer rests on one: loading both is half precise, loading it alone is right."""
    known = figures({"none": {"x": spread(1)}})
    both, right, none = (inputs(run=_triggered(each), figures=known) for each in (["a", "b"], ["a"], []))
    for figure, expected in {"f1": [2 / 3, 1, 0], "precision": [1 / 2, 1], "recall": [1, 1, 0]}.items():
        rows = [measure_row(Row(figure, "archive", loaded=figure), made)[0].found for made in (both, right, none)]  # type: ignore[arg-type]
        assert [row.mean for row in rows if isinstance(row, Interval)] == pytest.approx(expected)
    made = inputs(run=_triggered(["a"]), figures=known)
    assert verdict("C14", made) == "cannot tell"  # no model has answered


def test_which_facts_are_chosen() -> None:
    """Similarity must find more evidence than confidence alone, in pairs of conversations."""
    for ours, sure, size, word in (
        (0.6, 0.2, MANY, "holds"),
        (0.2, 0.6, MANY, "fails"),
        (0.6, 0.2, FEW, "cannot tell"),
    ):
        rows = [
            (f"kind/{at}", strategy, ["e"], ["e"] if number < 10 * found + at % 3 else ["x"] if number % 2 else None)
            for strategy, found in zip(CLAIMS["C15"].strategies, (ours, sure, 0.1), strict=True)
            for at in range(size)
            for number in range(10)
        ]
        probes = pd.DataFrame(rows, columns=["conversation", "strategy", "evidence", "recalled"])
        known = figures({"none": {"x": spread(1, size)}})
        assert verdict("C15", inputs(run=Stored({"probes": probes, "steps": probes}), figures=known)) == word


def test_the_facts_documents_example() -> None:
    """Three turns and four facts. The pytest fact ties with Docker's: each shares one word that no other fact has.

    n = 4 facts. A word in one fact weighs a = ln(5/2) + 1, `python`, in two, b = ln(5/3) + 1. Of the turns' words the
    facts know python, use, fastapi and test. Whole words: `tests` is no word of any fact, and `uses` is.
    """
    a, b = math.log(5 / 2) + 1, math.log(5 / 3) + 1
    turns = math.sqrt(3 * a * a + b * b)
    pytest_fact = docker = a * a / (math.sqrt(3) * a) / turns
    hints = b * b / math.sqrt(3 * a * a + b * b) / turns
    fastapi = (a * a + b * b) / math.sqrt(2 * a * a + b * b) / turns
    found = CLAIMS["C31"].finding(inputs())
    expected = [pytest_fact - docker, hints - docker, fastapi - docker]
    assert [row.found.mean for row in found.rows[:3]] == pytest.approx(expected, abs=1e-4)  # type: ignore[union-attr]
    assert [row.verdict for row in found.rows] == ["fails", "fails", "holds", "fails", "fails", "holds"]
    assert found.verdict == "fails"


def test_the_estimate_by_language() -> None:
    """Four characters a token in every text holds; Chinese has nearly one a token, and fails; one text cannot tell."""
    english = "The committee has met twice. A cat sat on a mat, and it ran to us as we sat by it, at 4."
    chinese = "会议讨论了港口和新桥的年度报告,并决定继续研究。"
    assert verdict("C16", inputs(conversations=plain(MANY, english))) == "holds"
    assert verdict("C16", inputs(conversations=plain(MANY, chinese))) == "fails"
    assert verdict("C16", inputs(conversations=plain(FEW, english))) == "cannot tell"


def test_a_seed_without_a_figure_leaves_none() -> None:
    lost = Missing("undefined", "no access counts")
    assert differences([lost, 0.62], [0.48, 0.60]) == lost


def test_percentiles_by_order_statistics() -> None:
    """Of 1..1000 the p99 is about 990, between the 984th and the 998th; of a hundred its upper end is not known."""
    found = measures.percentile(np.arange(1.0, 1001.0), 0.99)
    assert not isinstance(found, Missing)
    assert (round(found.mean), found.low, found.high) == (990, 984.0, 998.0)
    assert isinstance(measures.percentile(np.ones(100), 0.99).high, Missing)  # type: ignore[union-attr]
    assert isinstance(measures.percentile(np.zeros(0), 0.99), Missing)


def test_the_document_evicts_what_it_protects() -> None:
    """A A B C with room for two: B has been used once, is said to be protected, and is what leaves."""
    (evicted,) = measures.as_written(inputs())
    assert evicted.found == (1, 1, 1)


def test_top_five_has_two_readings_and_an_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the evidence of every question is a recall of 50 % and a hit of 100 %; the remark names the embedder."""
    outcomes = [
        SearchOutcome(way, f"c{at}", f"c{at}", "single", 0.5, 1.0, 1.0)
        for at in range(MANY)
        for way in rag.ways(RETRIEVERS)
    ]
    monkeypatch.setattr(rag, "searched", lambda *_, **__: (pd.DataFrame(outcomes), []))
    made = inputs(ClaimSettings("", models=Settings(embedder="text-embedding-3-small")))
    found = CLAIMS["C26"].finding(made)
    by = {row.figure: row for row in found.rows if row.setting == measures.ALL}
    assert (by["evidence recall at 5"].found.mean, by["hit at 5"].found.mean) == (0.5, 1.0)  # type: ignore[union-attr]
    assert (by["evidence recall at 5"].decides, by["hit at 5"].decides) == (True, False)
    assert "(hit@5) for 100.0 %" in found.why
    assert "The embedder is `text-embedding-3-small`" in found.why
