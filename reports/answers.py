"""Answers and their grades, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..harness.answers.figures import BOUNDS, AnswerFigures, StrategyAnswers, figures
from ..harness.answers.store import USUAL, Answered, answered
from ..harness.folder.run import Run
from ..harness.graders.profiles import Profiles
from ..metrics.statistics.intervals import Ends
from ..metrics.value import Missing, Value
from .calibration import quoted
from .render import Table, count, percent, reasons, shares, tokens

HEADS = (
    "strategy",
    "correct",
    "95 %",
    "normalised_gain",
    "95 %",
    "unknown",
    "abstained",
    "missing",
    "tokens in",
    "out",
    "cost",
)
SPARE = ("out", "abstained", "tokens in", "cost")
APART = "†"
"""After a strategy too little of which is graded to be compared."""

HOW = (
    "Correct: of the probes that have an answer, the share whose answer the grader takes for right. Retention: of what "
    "the evidence alone makes right (evidence_only) and the last turn alone does not (last_turn), the share that is "
    "still right. Both over the same probes for all; intervals over conversations. Unknown: no answer was found, of "
    "probes that have one. Abstained: of those that have none, the share where that was seen. Missing: no answer, or no "
    "grade."
)


def tables(found: AnswerFigures, said: Sequence[str], by_kind: bool = True) -> list[Table]:
    """The main table, the bounds, correct by category, why answers are missing, and who answered and graded."""
    strategies = [each for each in found.strategies if each.strategy not in BOUNDS]
    bounds = [each for each in found.strategies if each.strategy in BOUNDS]
    made = [
        Table(_title(found), HEADS, tuple(map(_row, strategies)), tuple(filter(None, _notes(found))), spare=SPARE),
        Table(
            "Bounds of the answers",
            _bound(HEADS),
            tuple(_bound(_row(each)) for each in bounds),
            () if by_kind else tuple(said),
            spare=SPARE,
        ),
    ]
    if by_kind and (kinds := _kinds(found)):
        made.append(kinds)
    if why := _why(found):
        made.append(why)
    return [*made, Table("Who answered, who graded", (), (), tuple(said))] if by_kind else made


def run_tables(answers: Answers, by_kind: bool = False) -> Iterator[Table]:
    """Those of a run: of who is nearest to a user's model, and the shares correct of all others beside."""
    if answers.found:
        first = answers.found[0]
        yield from tables(first, answers.notes[first.answerer, first.grader], by_kind)
    if len(answers.found) > 1:
        yield beside(answers)
    if answers.left:
        yield Table("Answers that are left out", (), (), answers.left)


def beside(answers: Answers) -> Table:
    """Correct under each who answered and who graded."""
    names = dict.fromkeys(each.strategy for found in answers.found for each in found.strategies)
    shares = [{each.strategy: each for each in found.strategies} for found in answers.found]
    none = Missing("undefined", "not answered")
    rows = tuple((name, *(percent(of[name].correct if name in of else none) for of in shares)) for name in names)
    heads = tuple(f"{found.answerer} / {found.grader}" for found in answers.found)
    return Table("Correct, by who answered / who graded", ("strategy", *heads), rows)


def all_json(answers: Answers | None) -> list[dict[str, Any]] | None:
    """Exact figures of a run, by who answered and graded."""
    if answers is None:
        return None
    return [as_json(found, answers.notes[found.answerer, found.grader]) for found in answers.found]


def as_json(found: AnswerFigures, said: Sequence[str]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "answerer": found.answerer,
        "grader": found.grader,
        "conversations": found.conversations,
        "probes": found.probes,
        "paired": found.paired,
        "without_gold": found.without_gold,
        "strategies": {each.strategy: _plain(each) for each in found.strategies},
        "notes": list(said),
    }


def _plain(each: StrategyAnswers) -> dict[str, Any]:
    made = {name: getattr(each, name) for name in each.__slots__ if name not in ("strategy", "why")}
    return made | {"why": [{"why": why, "times": times} for why, times in each.why]}


def _title(found: AnswerFigures) -> str:
    return (
        f"Answers by {found.answerer}, graded by {found.grader}: {count(found.probes, 'probe')} in "
        f"{count(found.conversations, 'conversation')}, {found.paired:,} graded under every strategy"
    )


def _row(each: StrategyAnswers) -> tuple[str, ...]:
    return (
        each.strategy + f" {APART}" * (not each.in_pairs),
        percent(each.correct),
        _between(each.correct_interval),
        percent(each.normalised_gain),
        _between(each.retention_interval),
        f"{each.unknown:,}",
        percent(each.abstained),
        f"{each.missing + each.ungraded:,}",
        tokens(each.input_tokens),
        tokens(each.output_tokens),
        _dollars(each.cost),
    )


def _bound(cells: tuple[str, ...]) -> tuple[str, ...]:
    """Without what is measured against the bounds themselves."""
    return cells[:3] + cells[5:]


def _between(value: Ends | Missing) -> str:
    if isinstance(value, Missing):
        return f"({value.why})"
    return shares(*value)


def _dollars(value: Value) -> str:
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            return f"${value:,.4f}" if value else "$0"


def _notes(found: AnswerFigures) -> Iterable[str]:
    yield HOW
    apart = [each.strategy for each in found.strategies if not each.in_pairs]
    if apart:
        yield f"{APART} Less than half of its probes are graded: its share correct is of those, and in no comparison."
    if found.without_gold:
        yield f"{count(found.without_gold, 'probe has', 'probes have')} no accepted answer: answered, not graded."
    yield reasons(
        value
        for each in found.strategies
        for value in (
            each.correct,
            each.normalised_gain,
            each.correct_interval,
            each.retention_interval,
            each.cost,
            each.abstained,
        )
        if isinstance(value, Missing)
    )


def _kinds(found: AnswerFigures) -> Table | None:
    """Share correct by the category of the probes."""
    kinds = list(dict.fromkeys(kind for each in found.strategies for kind in each.by_category))
    if len(kinds) < 2:
        return None
    none = Missing("undefined", "no such probe is graded")
    rows = tuple(
        (each.strategy, *(percent(each.by_category.get(kind, none)) for kind in kinds)) for each in found.strategies
    )
    return Table("Correct, by category", ("strategy", *(kind or "(none)" for kind in kinds)), rows)


def _why(found: AnswerFigures) -> Table | None:
    rows = tuple((each.strategy, f"{times:,}", why) for each in found.strategies for why, times in each.why)
    return Table("Why answers or grades are missing", ("strategy", "times", "why"), rows, prose=True) if rows else None


QUOTED = 2
"""Calibrations of a grader that are quoted."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Who answered and graded a run, and what that comes to."""

    found: tuple[AnswerFigures, ...]
    """Over the conversations that every strategy finished. What is nearest to a user's own model first."""
    notes: dict[tuple[str, str], tuple[str, ...]]
    """By answerer and grader: how far they can be believed."""
    left: tuple[str, ...]
    """What is left out, and why."""


def answers_of(run: Run, uneven: frozenset[str] = frozenset()) -> Answers | None:
    """All answers of a run; None if there are none. `uneven`: conversations that some strategy did not finish."""
    stored = answered(run)
    if not stored.whole and not stored.left:
        return None
    profiles = Profiles()
    return Answers(
        tuple(_confined(each, uneven) for each in stored.whole),
        {(each.answerer, each.grader): tuple(notes(each, profiles)) for each in stored.whole},
        stored.left,
    )


def _confined(found: Answered, uneven: frozenset[str]) -> AnswerFigures:
    """The figures of some answers, without some conversations."""
    here = ~found.answers.conversation.isin(uneven).to_numpy()
    return figures(found.answers[here], found.grades[here], found.answerer, found.grader)


def notes(found: Answered, profiles: Profiles) -> Iterator[str]:
    """Who answered and graded, and how far that can be believed."""
    yield f"Answered by {found.answerer}, graded by {found.grader}."
    if found.answerer == USUAL[0]:
        yield (
            "The offline answerer is an extractive reader: it finds words, not meaning, and cannot add, compare or "
            "conclude. Its share correct says how much of what was asked is easy to find, not how a model would do. "
            "Its ceiling is evidence_only."
        )
    if found.asks_itself:
        yield "Warning: the model graded its own answers, and models are kind to themselves: name another --grader."
    yield from quoted(found.grader, profiles.of(found.grader)[:QUOTED])
