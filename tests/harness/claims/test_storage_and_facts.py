"""Claims on archives, triggers, facts, counting and Focus, on inputs made by hand."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from ctxbench.harness.claims import search, storage
from ctxbench.harness.claims import tokens as token_claims
from ctxbench.harness.claims.claim import Verdict, verdict_of
from ctxbench.scenarios.model import Conversation, Message
from tests.harness.claims.builders import FEW, MANY, SIZES, WORDS, Stored, figures, inputs, saving, spread


def test_a_turn_of_few_thousand_tokens() -> None:
    """Half of the turns must take fewer than 10,000 tokens, all calls of a turn together."""
    for tokens, size, word in zip((3000, 6000, 3000), SIZES, WORDS, strict=True):
        rows = [(f"kind/{at}", turn, tokens) for at in range(size) for turn in range(4) for _ in range(2)]
        steps = pd.DataFrame(rows, columns=["conversation", "turn", "tokens_sent"]).assign(strategy="archive")
        made = inputs(run=Stored({"steps": steps}), figures=figures({"archive": {"x": spread(1, size)}}))
        assert verdict_of(storage.turns(made).rows) == word


def test_the_documents_load() -> None:
    """Ten turns, each with a result of 50,000 characters, the same for a seed and another for the next."""
    one, other = storage.loads(2)
    results = [len(message.text) for message in one.messages if message.role == "tool"]
    assert results == [50_000] * 10
    assert one.messages[3].text != other.messages[3].text
    assert next(storage.loads(1)) == one


def test_the_documents_load_is_whole_where_its_first_page_is_long() -> None:
    """The first page of seed 8 is three times as long as the others on average: ten turns are filled all the same."""
    *_, ninth = storage.loads(9)
    assert [len(message.text) for message in ninth.messages if message.role == "tool"] == [50_000] * 10


def test_archived_results_come_back_to_the_byte() -> None:
    """Of three results the model has seen two: both are loaded by its own tool, and are what was stored."""
    (said,) = storage.loads(1)
    three = Conversation("three", said.messages[:13])
    assert storage.restored(three, inputs()) == (2, 2)
    short = Conversation("short", said.messages[:2])
    assert storage.restored(short, inputs()) == (0, 0)


@pytest.mark.parametrize(("same", "absent", "word"), [(1.0, 0.0, "holds"), (0.9, 0.0, "fails"), (1.0, 0.2, "fails")])
def test_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, same: float, absent: float, word: Verdict) -> None:
    """A result that comes back otherwise, or evidence that cannot be had, fails the claim."""
    monkeypatch.setattr(storage, "restored", lambda *_: (same * 10, 10))
    known = {"evidence_absent": [(absent, 1.0)] * MANY, "grounding": spread(0.9)}
    said = [Conversation(str(at), (Message("m", "user", "?"),)) for at in range(MANY)]
    made = inputs(figures=figures({"archive": known}), conversations=said)
    assert verdict_of(storage.lossless(made).rows) == word


def test_archiving_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the document's load: 80 % of the tokens, an overflow without an archive, and none with one."""
    for share, without, word in ((0.9, 1.0, "holds"), (0.5, 1.0, "fails"), (0.9, 0.0, "fails")):
        overflows = {"none": [(without, 1.0)] * MANY, "archive": [(0.0, 1.0)] * MANY}
        known = {name: {"net_saving": saving(share), "overflows": rows} for name, rows in overflows.items()}
        monkeypatch.setattr(storage, "measured", lambda *_, known=known: figures(known))
        made = inputs(figures=figures(known))
        run = Stored({})
        made.run_strategies = lambda *_, run=run, **__: run  # type: ignore[method-assign]
        monkeypatch.setattr(storage, "loads", lambda seeds: [])
        assert verdict_of(storage.saving(made).rows) == word


def test_triggers_by_what_they_load() -> None:
    """Two results are archived, an answer rests on one: loading both is half precise, loading it alone is right."""

    def run(loaded: list[str], size: int) -> Stored:
        events = [
            (
                f"kind/{at}",
                "archive",
                3,
                "archived",
                json.dumps({"event": "archived", "message": each, "uuid": each * 2}),
            )
            for at in range(size)
            for each in ("a", "b")
        ]
        told = [json.dumps({"event": "loaded", "uuid": each * 2}) for each in loaded]
        probes = [(f"kind/{at}", "archive", 0, "", 5.0, ["a"], told) for at in range(size)]
        probes += [(f"kind/{at}", "archive", 1, "", 1.0, ["a"], []) for at in range(size)]  # too early
        names = ["conversation", "strategy", "number", "failed", "step", "evidence", "events"]
        return Stored(
            {
                "events": pd.DataFrame(events, columns=["conversation", "strategy", "step", "kind", "event"]),
                "probes": pd.DataFrame(probes, columns=names),
            }
        )

    both, right, none = (storage.counted(run(each, MANY), "archive") for each in (["a", "b"], ["a"], []))  # type: ignore[arg-type]
    assert both == {f"kind/{at}": [1, 2, 1] for at in range(MANY)}
    assert [storage.difference(both, each, {}).mean for each in (right, none)] == [  # type: ignore[union-attr]
        pytest.approx(1 / 3),
        pytest.approx(-2 / 3),
    ]
    made = inputs(run=run(["a"], MANY), figures=figures({"none": {"x": spread(1)}}))
    assert verdict_of(storage.triggers(made).rows) == "cannot tell"


def _probes(strategy: str, found: float, size: int) -> list[tuple[str, str, list[str], list[str] | None]]:
    """Ten probes a conversation; a share of them has its evidence recalled."""
    return [
        (f"kind/{at}", strategy, ["e"], ["e"] if number < 10 * found + at % 3 else ["x"] if number % 2 else None)
        for at in range(size)
        for number in range(10)
    ]


def test_which_facts_are_chosen() -> None:
    """Similarity must find more evidence than confidence alone, in pairs of conversations."""
    for ours, sure, size, word in (
        (0.6, 0.2, MANY, "holds"),
        (0.2, 0.6, MANY, "fails"),
        (0.6, 0.2, FEW, "cannot tell"),
    ):
        rows = _probes(search.OURS, ours, size) + _probes(search.SURE, sure, size) + _probes(search.SIMILAR, 0.1, size)
        probes = pd.DataFrame(rows, columns=["conversation", "strategy", "evidence", "recalled"])
        made = inputs(run=Stored({"probes": probes}), figures=figures({"none": {"x": spread(1, size)}}))
        assert verdict_of(search.weighed(made).rows) == word


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
    rows = search.example(inputs()).rows
    expected = [pytest_fact - docker, hints - docker, fastapi - docker]
    assert [row.found.mean for row in rows[:3]] == pytest.approx(expected, abs=1e-4)  # type: ignore[union-attr]
    assert [row.verdict for row in rows] == ["fails", "fails", "holds", "fails", "fails", "holds"]
    assert verdict_of(rows) == "fails"


def test_the_estimate_by_language() -> None:
    """Four characters a token in every text holds; Chinese has nearly one a token, and fails; one text cannot tell."""

    def said(text: str, size: int) -> list[Conversation]:
        return [Conversation(str(at), (Message("m", "user", text + "!" * (at % 2)),)) for at in range(size)]

    english = "The committee has met twice. A cat sat on a mat, and it ran to us as we sat by it, at 4."
    chinese = "会议讨论了港口和新桥的年度报告,并决定继续研究。"
    assert verdict_of(token_claims.estimate(inputs(conversations=said(english, MANY))).rows) == "holds"
    assert verdict_of(token_claims.estimate(inputs(conversations=said(chinese, MANY))).rows) == "fails"
    assert verdict_of(token_claims.estimate(inputs(conversations=said(english, FEW))).rows) == "cannot tell"


def test_counting_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts, a line each, decide; the row says that it is of the clock."""
    for micros, size, word in zip((5.0, 500.0, 5.0), SIZES, WORDS, strict=True):
        monkeypatch.setattr(token_claims, "_fastest", lambda _, text, micros=micros: micros)
        said = [Conversation(str(at), (Message("m", "user", "A fact."),)) for at in range(size)]
        rows = token_claims.counted(inputs(conversations=said)).rows
        assert verdict_of(rows) == word
        assert all(row.timed for row in rows)


def test_focus_is_never_over_its_limit() -> None:
    """One call over it fails; what is refused is counted, and decides nothing."""
    events = pd.DataFrame([("kind/0", "focus", 0, "over_budget")], columns=["conversation", "strategy", "step", "kind"])
    for size, word in ((8192, "holds"), (9000, "fails")):
        rows = [(f"kind/{at}", at, 8192 if at else size) for at in range(MANY)]
        steps = pd.DataFrame(rows, columns=["conversation", "step", "tokens_sent"]).assign(strategy="focus")
        made = inputs(run=Stored({"steps": steps, "events": events}))
        over, refused = token_claims._of_run(made, made.run, "focus", "here")
        assert over.verdict == word
        assert refused.found.mean == pytest.approx(1 / MANY)  # type: ignore[union-attr]
        (none,) = token_claims._of_run(made, made.run, "tiered", "here")
        assert none.verdict == "cannot tell"
