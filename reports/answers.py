"""Answers and their grades, as tables and as JSON, and whether the measures of quality order strategies alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS, AnswerFigures, StrategyAnswers, figures
from ctxbench.harness.answers.store import USUAL, Answered, answered
from ctxbench.harness.answers.tally import tallies_json
from ctxbench.harness.folder.names import short_names
from ctxbench.harness.folder.run import Run
from ctxbench.harness.graders.profiles import Profiles, QuotedProfile, unversioned
from ctxbench.harness.probes.ask import CEILING
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.statistics.comparison import OrderAgreement, OrderSums, alike
from ctxbench.metrics.statistics.intervals import Ends, Interval, by_unit
from ctxbench.metrics.value import Missing, Ratio, Value

from .calibration import figure, interval, quoted
from .render import REACH, Table, count, percent, reasons, sample, shares, tokens, with_reach

_HEADS = (
    *("strategy", "correct", "95 %", "normalised gain", "95 %", "not found", "abstained", "missing"),
    *("tokens in", "out", "cost"),
)
_SPARE = ("out", "abstained", "tokens in", "cost")
# Follows a strategy of which too little is graded to compare it.
_TOO_FEW = "†"
# Calibrations of a grader that stand beside its grades.
_MOST_PROFILES = 2


def tables(figures_: AnswerFigures, notes: Sequence[str], by_kind: bool = True) -> list[Table]:
    """Return the main table, the bounds, why answers are missing, and with `by_kind` the share correct by category."""
    strategies = [strategy for strategy in figures_.strategies if strategy.strategy not in BOUNDS]
    bounds = [strategy for strategy in figures_.strategies if strategy.strategy in BOUNDS]
    shown = [
        Table(
            _title(figures_), _HEADS, tuple(map(_row, strategies)), tuple(filter(None, _notes(figures_))), spare=_SPARE
        ),
        Table(
            "What are the bounds of the answers?",
            _bound(_HEADS),
            tuple(_bound(_row(strategy)) for strategy in bounds),
            () if by_kind else tuple(notes),
            spare=_SPARE,
        ),
    ]
    if by_kind and (kinds := _kinds(figures_)):
        shown.append(kinds)
    if why := _why(figures_):
        shown.append(why)
    return [*shown, Table("Who answered, and who graded?", (), (), tuple(notes))] if by_kind else shown


def by_graders(answers: Answers, *, brief: bool = False) -> list[Table]:
    """Return the shares that graders take for right, side by side, and how far each grader agrees with people.

    They are of the most capable answer model. A grader whose agreement is not known has no column, only a note. In
    brief, the agreement is a note as well.
    """
    profiles = Profiles()
    graded = [each for each in answers.figures if each.answerer == answers.figures[0].answerer]
    known = [each for each in graded if profiles.of(each.grader)]
    first, short = graded[0], list(map(_kind, known))
    names = short_names([strategy.strategy for strategy in first.strategies], _NAME)
    rows = tuple(_by_graders(names, at, known, first) for at in range(len(first.strategies)))
    heads = ("strategy", *(head for name in short for head in (name, "95 %")), "abstained", "tokens")
    asked = f"{count(first.probes, 'probe')}, {sample(first.conversations, first.units)}"
    title = f"Right answers of {first.answerer}: {asked}"
    notes = [_ceiling(each, name) for each, name in zip(known, short, strict=True)]
    notes += [f"No column for {_kind(each)}: {_NOT_KNOWN}." for each in graded if each not in known]
    beside = [
        _people_row(name, quote)
        for each, name in zip(known, short, strict=True)
        for quote in profiles.of(each.grader)[:_MOST_PROFILES]
    ]
    if brief:
        of_each = {name: [f"{row[3]} on {row[1]}" for row in beside if row[0] == name] for name in short}
        kappas = "; ".join(f"{name} {', '.join(found)}" for name, found in of_each.items())
        notes.insert(0, f"Kappa with people: {kappas}.")
    table = Table(title, heads, rows, tuple(filter(None, notes)), page=True)
    return [table, *[Table("Graders beside people", _PEOPLE_HEADS, tuple(beside), names=2, page=True)] * (not brief)]


_NAME = 32
_WHOLE = "none"
_PEOPLE_HEADS = ("grader", "people's labels", "answers", "kappa (95 %)", "right called right", "wrong called wrong")


_NOT_KNOWN = "how far it agrees with people is not known (ctxbench lab calibrate)"


def _kind(graded: AnswerFigures) -> str:
    return unversioned(graded.grader).partition("(")[0]


def _by_graders(
    names: Mapping[str, str], at: int, known: Sequence[AnswerFigures], first: AnswerFigures
) -> tuple[str, ...]:
    of_graders = [each.strategies[at] for each in known]
    shown = [cell for of in of_graders for cell in (percent(of.correct), _between(of.correct_interval))]
    strategy = first.strategies[at]
    return (names[strategy.strategy], *shown, percent(strategy.abstained), tokens(strategy.input_tokens))


def _people_row(name: str, quote: QuotedProfile) -> tuple[str, ...]:
    profile, of = quote.profile, quote.profile.quoted
    stale = " (of another version)" if quote.stale else ""
    rates = (figure(of.recall.value), figure(of.specificity.value))
    return (name, profile.set + stale, f"{of.answers:,}", interval(of.kappa), *rates)


def _ceiling(graded: AnswerFigures, name: str) -> str:
    """Say how far the ceiling is below the whole history, where it is; an empty text elsewhere."""
    shares_ = {strategy.strategy: strategy.correct for strategy in graded.strategies}
    ceiling, whole = shares_.get(CEILING), shares_.get(_WHOLE)
    if ceiling is None or whole is None or isinstance(ceiling, Missing) or isinstance(whole, Missing):
        return ""
    if ceiling >= whole:
        return ""
    return f"By {name} the whole history is above {CEILING}: the evidence alone leaves out what makes it clear."


def run_tables(answers: Answers, by_kind: bool = False) -> Iterator[Table]:
    """Yield the tables of a run: in full for the most capable answer model, and the share correct under each."""
    if answers.figures:
        first = answers.figures[0]
        yield from tables(first, answers.notes[first.answerer, first.grader], by_kind)
    if len(answers.figures) > 1:
        yield beside(answers)
    if answers.left:
        yield Table("Answers that are left out", (), (), answers.left)


def beside(answers: Answers) -> Table:
    """Return the share correct under each answer model and grader. A grader that nobody compared has no column."""
    names = dict.fromkeys(strategy.strategy for graded in answers.figures for strategy in graded.strategies)
    profiles = Profiles()
    pairs = {f"{graded.answerer} / {graded.grader}": graded for graded in answers.figures}
    known = {pair: graded for pair, graded in pairs.items() if profiles.of(graded.grader)}
    shown = [{strategy.strategy: strategy for strategy in graded.strategies} for graded in known.values()]
    rows = tuple((name, *(_correct(of.get(name)) for of in shown)) for name in names if known)
    notes = [f"{pair}: {' '.join(answers.notes[graded.answerer, graded.grader][1:])}" for pair, graded in known.items()]
    notes += [f"No column for {pair}: {_NOT_KNOWN}." for pair in pairs if pair not in known]
    heads = ("strategy", *known) if known else ()
    return Table("Correct, by answer model / grader", heads, rows, tuple(notes))


def _correct(strategy: StrategyAnswers | None) -> str:
    """Return a share correct with its interval: 46.9 % (39.1 to 55.0 %)."""
    if strategy is None:
        return percent(Missing("undefined", "not answered"))
    ends = strategy.correct_interval
    return percent(strategy.correct) + ("" if isinstance(ends, Missing) else f" ({shares(*ends)})")


def all_json(answers: Answers | None) -> list[dict[str, Any]] | None:
    """Return the exact figures of a run, for each answer model and grader."""
    if answers is None:
        return None
    return [as_json(graded, answers.notes[graded.answerer, graded.grader]) for graded in answers.figures]


def as_json(figures_: AnswerFigures, notes: Sequence[str]) -> dict[str, Any]:
    """Return the exact figures of one answer model and grader."""
    return {
        "answerer": figures_.answerer,
        "grader": figures_.grader,
        "conversations": figures_.conversations,
        "independent_units": figures_.units,
        "probes": figures_.probes,
        "paired": figures_.paired,
        "without_gold": figures_.without_gold,
        "less_exact": figures_.less_exact,
        "strategies": {
            strategy.strategy: _plain(strategy, figures_.by_category[strategy.strategy])
            for strategy in figures_.strategies
        },
        "replies": tallies_json(figures_.replies),
        "notes": list(notes),
    }


def _plain(strategy: StrategyAnswers, by_category: Mapping[str, Interval | Missing]) -> dict[str, Any]:
    plain = {name: getattr(strategy, name) for name in strategy.__slots__ if name not in ("strategy", "why")}
    kinds = {kind: share if isinstance(share, Missing) else share._asdict() for kind, share in by_category.items()}
    return plain | {"why": [{"why": why, "times": times} for why, times in strategy.why], "by_category": kinds}


def _title(graded: AnswerFigures) -> str:
    return (
        f"How many answers are correct? By {graded.answerer}, graded by {graded.grader}: "
        f"{count(graded.probes, 'probe')} in {sample(graded.conversations, graded.units)}, "
        f"{graded.paired:,} graded under every strategy"
    )


def _row(strategy: StrategyAnswers) -> tuple[str, ...]:
    return (
        strategy.strategy + f" {_TOO_FEW}" * (not strategy.in_pairs),
        percent(strategy.correct),
        _between(strategy.correct_interval),
        percent(strategy.normalised_gain),
        _between(strategy.normalised_gain_interval),
        f"{strategy.unknown:,}",
        percent(strategy.abstained),
        f"{strategy.missing + strategy.ungraded:,}",
        tokens(strategy.input_tokens),
        tokens(strategy.output_tokens),
        _dollars(strategy.cost),
    )


def _bound(cells: tuple[str, ...]) -> tuple[str, ...]:
    """Return the cells without normalised gain, which is measured against the bounds themselves."""
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


def _notes(graded: AnswerFigures) -> Iterable[str]:
    yield (
        "Correct: the share of the answerable probes that the grader takes for right. Normalised gain puts last_turn "
        "at 0 % and evidence_only at 100 %."
    )
    yield (
        "Not found: answerable probes without an answer. Abstained: the share of the unanswerable probes where the "
        "answer says so."
    )
    apart = [strategy.strategy for strategy in graded.strategies if not strategy.in_pairs]
    if apart:
        yield f"{_TOO_FEW} Less than half of its probes are graded: its share correct is not compared."
    if graded.without_gold:
        yield f"{count(graded.without_gold, 'probe has', 'probes have')} no accepted answer: answered, not graded."
    if graded.less_exact:
        yield (
            f"{count(graded.less_exact, 'graded answer is', 'graded answers are')} wrong "
            f"({percent(graded.less_exact / graded.graded)}) for a date that fits but is less exact than the gold."
        )
    yield reasons(
        value
        for strategy in graded.strategies
        for value in (
            *(strategy.correct, strategy.correct_interval, strategy.cost, strategy.abstained),
            *(() if strategy.strategy in BOUNDS else (strategy.normalised_gain, strategy.normalised_gain_interval)),
        )
        if isinstance(value, Missing)
    )


def _kinds(graded: AnswerFigures) -> Table | None:
    """Return the share correct by category of the probes, or None if there is only one."""
    kinds = list(dict.fromkeys(kind for of in graded.by_category.values() for kind in of))
    if len(kinds) < 2:
        return None
    none = Missing("undefined", "no such probe is graded")
    rows = tuple((name, *(with_reach(of.get(kind, none)) for kind in kinds)) for name, of in graded.by_category.items())
    heads = ("strategy", *(kind or "(none)" for kind in kinds))
    return Table("Which kinds of questions are answered?", heads, rows, (REACH,))


def _why(graded: AnswerFigures) -> Table | None:
    rows = tuple(
        (strategy.strategy, f"{times:,}", why) for strategy in graded.strategies for why, times in strategy.why
    )
    return Table("Why answers or grades are missing", ("strategy", "times", "why"), rows, prose=True) if rows else None


@dataclass(frozen=True, slots=True)
class Answers:
    """Figures of a run for each answer model and grader."""

    figures: tuple[AnswerFigures, ...]
    """Figures over the conversations that every strategy finished, the most capable answer model first."""
    notes: dict[tuple[str, str], tuple[str, ...]]
    """Reliability of each pair of answer model and grader, in sentences."""
    left: tuple[str, ...]
    """Answers that are left out, and why."""


def answers_of(run: Run, uneven: frozenset[str] = frozenset()) -> Answers | None:
    """Return all answers of a run, or None if there are none, without the `uneven` conversations."""
    stored = answered(run)
    if not stored.whole and not stored.left_out:
        return None
    profiles = Profiles()
    return Answers(
        tuple(_confined(answers, uneven, run.units) for answers in stored.whole),
        {(answers.answerer, answers.grader): tuple(notes(answers, profiles)) for answers in stored.whole},
        stored.left_out,
    )


def _confined(stored: Answered, uneven: frozenset[str], units: Mapping[str, str]) -> AnswerFigures:
    """Return the figures of some answers, without some conversations."""
    here = ~stored.answers.conversation.isin(uneven).to_numpy()
    return figures(stored.answers[here], stored.grades[here], stored.answerer, stored.grader, units)


def notes(stored: Answered, profiles: Profiles) -> Iterator[str]:
    """Yield who answered and graded, and how reliable that is."""
    yield f"Answered by {stored.answerer}, graded by {stored.grader}."
    if stored.answerer == USUAL[0]:
        yield (
            "The offline answer model is an extractive baseline: it finds words, and cannot add, compare or conclude. "
            "Its share correct says how much is easy to find, not how a language model would do."
        )
    if stored.asks_itself:
        yield "Warning: the model graded its own answers, and models favour themselves: name another --grader."
    yield from quoted(stored.grader, profiles.of(stored.grader)[:_MOST_PROFILES])


_AGREEMENT_HOW = (
    "1 = the same order, 0 = no better than chance (Kendall's tau-b, Spearman's rho), with 95 % intervals from "
    "resampling independent units. Only these strategies are ordered, without the bounds: among others the measures "
    "may agree less."
)


class Measure(NamedTuple):
    """One measure of quality: rows of conversation, strategy, got, wanted."""

    name: str
    sums: pd.DataFrame


class Pair(NamedTuple):
    """Two measures, and how alike they order the strategies."""

    one: str
    other: str
    strategies: int
    conversations: int
    found: OrderAgreement


def sums_of(metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of a share, got and wanted, by conversation and strategy."""
    share = METRICS[metric].of
    assert isinstance(share, Ratio)
    got, wanted = share.parts(rows)
    keys = [rows.conversation.astype(str), rows.strategy.astype(str)]
    return pd.DataFrame({"got": got, "wanted": wanted}, rows.index).groupby(keys).sum().reset_index()


def evidence_rows(run: Run, uneven: frozenset[str], strategies: Collection[str]) -> pd.DataFrame:
    """Return the probes of some strategies, in the conversations in which all of them had a context for each."""
    rows = run.arrow("probes").select(["conversation", "strategy", "failed", "evidence_state"]).to_pandas()
    rows = rows[rows.strategy.isin(strategies)]
    broken = set(rows.conversation[rows.failed != ""].astype(str))
    complete: pd.DataFrame = rows[~rows.conversation.isin(broken | uneven)]
    return complete


def measures(run: Run, answers: Answers | None, uneven: frozenset[str] = frozenset()) -> list[Measure]:
    """Return context recall, and the share correct under each answer model and grader."""
    if answers is None:
        return []
    names = {name for graded in answers.figures for name in graded.counts.strategy} - set(BOUNDS)
    correct = [
        Measure(f"correct ({graded.answerer} / {graded.grader})", graded.counts[~graded.counts.strategy.isin(BOUNDS)])
        for graded in answers.figures
    ]
    return [Measure("context recall", sums_of("context_recall", evidence_rows(run, uneven, names))), *correct]


def pairs(measures: Sequence[Measure], units: Mapping[str, str]) -> list[Pair]:
    """Return how alike every two measures order the strategies; intervals are over the independent units."""
    return [_pair(one, other, units) for one, other in combinations(measures, 2)]


def _pair(one: Measure, other: Measure, units: Mapping[str, str]) -> Pair:
    tables = [part.sums.set_index(["conversation", "strategy"]) for part in (one, other)]
    both = tables[0].index.intersection(tables[1].index)
    where, names = (list(dict.fromkeys(both.get_level_values(at))) for at in (0, 1))
    first, second = (_sums(part, where, names, units) for part in tables)
    return Pair(one.name, other.name, len(names), len(where), alike(first, second))


def _sums(
    table: pd.DataFrame, conversations: Sequence[str], strategies: Sequence[str], units: Mapping[str, str]
) -> OrderSums:
    """Return a row for each independent unit and a column for each strategy; a missing value counts 0."""
    every = pd.MultiIndex.from_product([conversations, strategies])
    shape = len(conversations), len(strategies)
    labels = [units.get(name, name) for name in conversations]
    return OrderSums(
        *(
            by_unit(table[part].reindex(every).fillna(0).to_numpy(float).reshape(shape), labels)
            for part in ("got", "wanted")
        )
    )


def agreement_table(pairs: Sequence[Pair]) -> Table:
    """Return a row for each pair of measures."""
    rows = tuple(
        (
            pair.one,
            pair.other,
            _figure(pair.found.kendall),
            _ends(pair.found.kendall_interval),
            _figure(pair.found.spearman),
            _ends(pair.found.spearman_interval),
            f"{pair.strategies:,}",
            f"{pair.conversations:,}",
        )
        for pair in pairs
    )
    heads = ("measure", "and", "tau", "95 %", "rho", "95 %", "strategies", "conversations")
    why = reasons(value for pair in pairs for value in pair.found if isinstance(value, Missing))
    return Table(
        "Do the measures order the strategies alike?", heads, rows, (_AGREEMENT_HOW, *filter(None, [why])), names=2
    )


def agreement_json(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return the exact figures of the pairs."""
    return [{**pair._asdict(), "found": pair.found._asdict()} for pair in pairs]


def _figure(value: Value) -> str:
    return f"({value.why})" if isinstance(value, Missing) else f"{value:.2f}".replace("-", "−")


def _ends(ends: Ends | Missing) -> str:
    return f"({ends.why})" if isinstance(ends, Missing) else f"{_figure(ends.low)} to {_figure(ends.high)}"
