"""Count the replies of models: asked for, usable, unusable as recorded, and failed, which are to be asked for again.

All is counted from what a run folder stores, so that a command that continues another counts what that one did.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import pyarrow.compute as pc

from ctxbench.strategies.events import Called, Failed

from ..folder.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from ..graders.profiles import Profile

Role = Literal["answerer", "grader", "summariser", "embedder"]


class Tally(NamedTuple):
    """The replies of a model in one role."""

    role: Role
    model: str
    asked: int
    usable: int
    failed: int = 0
    """Calls without a reply: they are made again by the same command. What else is missing was replied, and is of no
    use."""
    why: str = ""  # the last reason why a reply is missing; empty if none is
    strategy: str = ""  # the strategy that asked, of a summariser or an embedder

    @property
    def missing(self) -> int:
        """Number of replies that cannot be used."""
        return self.asked - self.usable


def in_all(tallies: Iterable[Tally]) -> list[Tally]:
    """Return one tally for each role and model, over all strategies."""
    sums: dict[tuple[str, str], Tally] = {}
    for tally in tallies:
        before = sums.get((tally.role, tally.model), tally._replace(asked=0, usable=0, failed=0, strategy=""))
        sums[tally.role, tally.model] = before._replace(
            asked=before.asked + tally.asked,
            usable=before.usable + tally.usable,
            failed=before.failed + tally.failed,
            why=tally.why or before.why,
        )
    return list(sums.values())


def tallies_json(tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    """Return the exact counts."""
    return [{**tally._asdict(), "missing": tally.missing} for tally in tallies]


def answer_tallies(answers: pd.DataFrame, grades: pd.DataFrame, answerer: str, grader: str) -> list[Tally]:
    """Return the replies of the answer model and of the grader's model; without a model there are none."""
    models: list[tuple[Role, str, pd.DataFrame]] = [
        ("answerer", "" if answerer == "offline" else answerer, answers),
        ("grader", model_in(grader), grades),
    ]
    tallies = []
    for role, model, rows in models:
        counts = Counter(rows.reply.dropna()) if model else Counter[str]()
        if counts:
            whys = rows.missing[rows.reply.astype(object).isin(["failed", "unusable"])]
            why = "" if whys.empty else str(whys.iloc[-1])
            tallies.append(Tally(role, model, counts.total(), counts["usable"], counts["failed"], why))
    return tallies


def model_in(grader: str) -> str:
    """Return the model in the name of a grader: its chat model; empty if it needs none."""
    found = re.search(r"\bmodel='([^']+)'", grader)
    return found[1] if found and found[1] != "offline" else ""


def profile_tally(profile: Profile) -> Tally | None:
    """Return the replies of a grader's model for a set of labelled answers; None for a grader that needs none."""
    model = model_in(profile.grader)
    replied = {why: times for why, times in profile.missing.items() if why.startswith(("failed", "unusable"))}
    failed = sum(times for why, times in replied.items() if why.startswith("failed"))
    asked = profile.graded + sum(replied.values())
    why = next(iter(replied), "").partition(": ")[2]
    return Tally("grader", model, asked, profile.graded, failed, why) if model and asked else None


ASKED: dict[str, Role] = {"summary": "summariser", "facts": "summariser", "embedding": "embedder"}
"""The model that is asked for what a strategy may fail to get."""
EVENTS_OF_PROBES = ["strategy", "conversation", "number", "events"]
"""The columns of `probes` that replies are counted from."""
# A failure of a provider's model begins with its name, PROVIDER/MODEL; one of a cassette with a path.
_FAILED = re.compile(r"([A-Za-z]\w*/\S+): ")
_NAMED = re.compile(r"summariser='([^']+)'")
_KIND = re.compile(r'\{"event":"(called|failed)"')


def run_tallies(run: Run, left_out: Collection[str] = ()) -> list[Tally]:
    """Return the replies that the strategies of a run asked for, in all conversations but those left out."""
    plan = run.manifest.plan
    if not _told(run, "called|failed"):  # then no data frame is made
        return []
    tables = run.table("events"), run.arrow("probes").select(EVENTS_OF_PROBES).to_pandas()
    events, probes = (rows[~rows.conversation.isin(left_out)] for rows in tables)
    return strategy_tallies(events, probes, plan.summariser, plan.embedder)


def failures(run: Run) -> list[Failed]:
    """Return what strategies could not have, or not as requested, at their steps and for probes."""
    return [msgspec.json.decode(text, type=Failed) for text in _told(run, "failed")]


def _told(run: Run, kinds: str) -> list[str]:
    """Return the JSON of all events of some kinds, at steps and for probes."""
    columns = run.arrow("events", ["event"])["event"], pc.list_flatten(run.arrow("probes", ["events"])["events"])
    begins = rf'^\{{"event":"(?:{kinds})"'
    chosen = (column.filter(pc.match_substring_regex(column, begins)) for column in columns)
    return [text for column in chosen for text in column.to_pylist()]


def strategy_tallies(events: pd.DataFrame, probes: pd.DataFrame, summariser: str, embedder: str) -> list[Tally]:
    """Return the replies that strategies asked for, at their steps and for probes. The two models are the run's.

    A call that was answered and directly followed by its failure (an empty text, a refusal, no list of facts) has an
    unusable reply; a failure alone, or of an embedder, is a call that failed. `offline` is no model that can fail to
    reply, so it is not counted.
    """
    counts: defaultdict[tuple[str, Role], Counter[str]] = defaultdict(Counter)
    models: dict[tuple[str, Role], str] = {}
    whys: dict[tuple[str, Role], str] = {}
    before: tuple[object, bool] = None, False
    decoder = msgspec.json.Decoder(Called | Failed)
    for strategy, conversation, step, kind, text in _events_of(events, probes):
        # called, failed: the reply was of no use (usable 0, unusable 1). failed alone: no reply (failed 1). called,
        # summarised, failed: the failure is of another call, as any event in between ends what `before` remembers.
        (answered, answer_counts), before = before, (None, False)
        if kind not in ("called", "failed"):
            continue
        event = decoder.decode(text)
        if isinstance(event, Called):
            is_counted = event.basis == "run" and event.model != "offline"
            before = (conversation, step, strategy, event.role), is_counted
            if is_counted:
                counts[strategy, event.role]["usable"] += 1
                models[strategy, event.role] = event.model
        elif event.what in ASKED and not event.used and not event.why.startswith("offline:"):
            place = strategy, ASKED[event.what]
            follows = answered == (conversation, step, *place)
            if follows and not answer_counts:
                continue
            # It was counted when the call was told of; only now is it known that the reply was of no use.
            counts[place]["usable"] -= follows
            # Texts and their question are embedded by two calls: after the first, the second can fail.
            counts[place]["unusable" if follows and event.what != "embedding" else "failed"] += 1
            whys[place] = event.why
    usual: dict[Role, str] = {"summariser": summariser, "embedder": embedder}
    tallies = []
    for (strategy, role), outcomes in counts.items():
        why = whys.get((strategy, role), "")
        # A strategy may name a model of its own, in its text or in its failure.
        own = (_NAMED.search(strategy) if role == "summariser" else None) or _FAILED.match(why)
        model = models.get((strategy, role)) or (own[1] if own else usual[role])
        if model != "offline":
            tallies.append(Tally(role, model, outcomes.total(), outcomes["usable"], outcomes["failed"], why, strategy))
    return tallies


def _events_of(events: pd.DataFrame, probes: pd.DataFrame) -> Iterator[tuple[str, str, int, str, str]]:
    """Yield strategy, conversation, step, kind and JSON of all events; those for a probe have a step of their own."""
    yield from events[["strategy", "conversation", "step", "kind", "event"]].itertuples(index=False)
    for strategy, conversation, number, texts in probes[EVENTS_OF_PROBES].itertuples(index=False):
        for text in map(str, () if texts is None else texts):
            kind = _KIND.match(text)
            # Below 0, so that an event for a probe never follows one of a step.
            yield strategy, conversation, -1 - number, kind[1] if kind else "", text


def unanswered(tallies: Sequence[Tally]) -> list[str]:
    """Return the strategies that called a model and never got a usable reply: their figures are of their fallback."""
    return list(dict.fromkeys(tally.strategy for tally in tallies if not tally.usable))
