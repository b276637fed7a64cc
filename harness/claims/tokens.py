"""C01–C04, C06, C07, C16–C19: tokens that strategies save, how tokens are counted, and the limit of Focus."""

from __future__ import annotations

import timeit
from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from ctxbench.metrics.figures import units_of
from ctxbench.metrics.tokens import TokenCounter, estimates, text_counter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.base import Strategy
from ctxbench.strategies.chain import RECIPES, parse

from ..compare.figures import measured
from ..folder.run import Run
from ..replay import ConversationIndex, RecordedContext, replay
from .claim import Claimed, ClaimRow, Measurement, exact, shown
from .inputs import (
    ClaimInputs,
    Measures,
    against,
    by_kind,
    never_or_always,
    of_groups,
    of_sums,
    row,
    sums_of,
    units_among,
)

SAVED, NET = "tokens saved", "tokens saved, net of its own model calls"
WINDOW, WIDE = "window(max_tokens=8000)", "window(max_tokens=32000)"
SMART = "smart(window=32000)"
ALL = RECIPES["all_of_000"].chain
"""Every strategy that design document 000 has."""
TURNS = {1: 0.0, 5: 0.47, 10: 0.67, 20: 0.80}
"""Savings by turn (000 §5.1)."""
SUMMARIES = ("summary(every=5)", "session_summary")
QUALITY = {"answer_quality": "answers that are right", "context_recall": "evidence sent word for word"}
"""Figures of answers that are compared: the first that the run has."""


def _savings(inputs: ClaimInputs, own: str, *others: str, least: float, upper: float) -> Measurement:
    """Measure the net saving of the claim's own setting, of others, and of the own one by kind of conversation."""
    claimed = Claimed(least=least, upper=upper)
    rows = [row(inputs, own, "net_saving", NET, claimed)]
    rows += [row(inputs, strategy, "net_saving", NET, claimed, decides=False) for strategy in others]
    return Measurement((*rows, *by_kind(inputs, own, "net_saving", NET, claimed)))


def window(inputs: ClaimInputs) -> Measurement:
    """Measure C01. The own setting is 8000 tokens, the example of 003: 000 names no size."""
    savings = _savings(inputs, WINDOW, WIDE, least=0.3, upper=0.6)
    # A window that drops the newest message saves tokens at calls that would fail, so those are left out once.
    figure = f"{SAVED} at calls that have the newest message"
    claimed = Claimed(least=0.3, upper=0.6)
    return Measurement((*savings.rows, row(inputs, WINDOW, "saving_with_newest", figure, claimed, decides=False)))


def smart(inputs: ClaimInputs) -> Measurement:
    """Measure C06 against a window of the same number of tokens: tokens saved, and the evidence of answers."""
    rows = [
        row(inputs, SMART, "net_saving", NET, Claimed(least=0.5, upper=0.8)),
        ClaimRow(
            setting=f"{SMART} − {WIDE}",
            figure="difference in tokens saved, net",
            unit="points",
            found=against(inputs, SMART, WIDE, "net_saving"),
            claimed=Claimed(least=0.0, above=True),
            of=inputs.of,
        ),
    ]
    metric = next((name for name in QUALITY if not isinstance(sums_of(inputs, SMART, name), Missing)), "context_recall")
    rows.append(
        ClaimRow(
            setting=f"{SMART} − {WIDE}",
            figure=f"difference in {QUALITY[metric]}",
            unit="points",
            found=against(inputs, SMART, WIDE, metric),
            claimed=Claimed(least=0.0),
            of=inputs.of,
        )
    )
    return Measurement(tuple(rows))


def growth(inputs: ClaimInputs) -> Measurement:
    """Measure C07: tokens of a call by turn, each conversation once a turn (`metrics.figures.growth`)."""
    steps = inputs.rows(inputs.run_of(ALL), "steps")
    rows = []
    for strategy in dict.fromkeys((ALL, "session_summary")):
        rows += _by_turn(steps[steps.strategy.astype(str) == strategy], strategy, inputs.units)
    return Measurement(tuple(rows))


def _by_turn(steps: pd.DataFrame, strategy: str, units: Mapping[str, str]) -> list[ClaimRow]:
    # A mean of each conversation's calls: a turn of many calls would otherwise count for more than one of few.
    spent = steps.assign(spent=steps.tokens_sent + steps.own_tokens)
    per = spent.groupby(["turn", "conversation"], observed=True)[["spent", "tokens_full"]].mean()
    rows = []
    for turn, least in TURNS.items():
        here = per.loc[turn] if turn in per.index.get_level_values(0) else per.iloc[:0]
        pairs = [(float(sent), float(full)) for sent, full in here.to_numpy()]
        rows.append(
            ClaimRow(
                setting=f"{strategy}, turn {turn}",
                figure=NET,
                found=of_groups(pairs, "saving", units_of(here.reset_index(), units)),
                claimed=Claimed(least=least),
                of=f"{len(pairs)} conversations",
                decides=strategy == ALL and turn > 1,
            )
        )
    return rows


def examples(_: ClaimInputs) -> Measurement:
    """Measure C18: the two worked examples of 003, executed."""
    counter = TokenCounter()
    tokens_kept, total = _window_example(counter)
    summarised, verbatim = _summary_example(counter)
    rows = (
        ClaimRow(
            setting=f"window(max_tokens=8000), a history of {total:,} tokens",
            figure="tokens kept",
            unit="tokens",
            found=exact(tokens_kept),
            claimed=Claimed(most=7200.0),
        ),
        ClaimRow(
            setting="summary, 25 messages",
            figure="messages that the summary stands for",
            unit="count",
            found=exact(summarised),
            claimed=Claimed(least=5.0, most=5.0),
        ),
        ClaimRow(
            setting="summary, 25 messages",
            figure="messages sent as they are",
            unit="count",
            found=exact(verbatim),
            claimed=Claimed(least=20.0, most=20.0),
        ),
    )
    return Measurement(rows)


def _window_example(counter: TokenCounter) -> tuple[int, int]:
    """Return the tokens that are kept and the tokens of the history, 9500 or more."""
    text = "word " * 90
    size = counter.message(Message("m", "user", text))
    history = _chat(-(-9500 // size), text)
    sent = _last(parse(WINDOW), history, counter)
    return sum(map(counter.message, sent)), sum(map(counter.message, history.messages[:-1]))


def _summary_example(counter: TokenCounter) -> tuple[int, int]:
    """Return how many of 25 messages are summarised, and how many stay."""
    history = _chat(25, "Something is said here.")
    sent = _last(parse("summary(user_first=False)"), history, counter)
    ids = {message.id for message in history.messages}
    stayed = sum(message.id in ids for message in sent)
    return len(history.messages) - 1 - stayed, stayed


def _chat(size: int, text: str) -> Conversation:
    """Return messages by turns and a last one that answers: the model was called before it."""
    # `^` binds more tightly than `==`: of 25 messages the even
    # ones are the user's, of 24 the odd ones. So the last one is.
    messages = [Message(f"m{at}", "user" if at % 2 == size % 2 ^ 1 else "assistant", text) for at in range(size)]
    return Conversation("example", (*messages, Message("reply", "assistant", "Yes.")))


def _last(strategy: Strategy, conversation: Conversation, counter: TokenCounter) -> list[Message]:
    """Return the messages sent at the last call."""
    *_, step = replay(conversation, strategy, RecordedContext(ConversationIndex(conversation, counter)))
    return list(step.context.messages)


ENCODING = "cl100k_base"
"""The encoding that 002 counts in."""
OFF = 0.25
SIZES = {"a fact: 1 to 200 characters": (1, 200), "201 to 2,000": (201, 2_000), "2,001 to 20,000": (2_001, 20_000)}
REST = "over 20,000"
TEXTS, ROUNDS = 400, 5
"""Texts of each size that are timed, and rounds of which the fastest counts."""


def estimate(inputs: ClaimInputs) -> Measurement:
    """Measure C16: the error of `len // 4` summed over a conversation's texts, by language and kind."""
    rows = _errors(inputs, ENCODING, True)
    if inputs.counter.encoding != ENCODING:
        rows += _errors(inputs, inputs.counter.encoding, False)
    errors = estimates(
        (message for conversation in inputs.conversations for message in conversation.messages), text_counter(ENCODING)
    )
    single = "; ".join(
        f"{error.language} {error.content} {shown(error.p10, 'share')} to {shown(error.p90, 'share')}"
        for error in errors
    )
    return Measurement(tuple(rows), {"single": single})


def _errors(inputs: ClaimInputs, encoding: str, decides: bool) -> list[ClaimRow]:
    count = text_counter(encoding)
    sums: dict[str, list[tuple[float, float]]] = defaultdict(list)
    units: dict[str, list[str]] = defaultdict(list)
    for conversation, unit in zip(inputs.conversations, units_among(inputs.conversations), strict=True):
        for error in estimates(conversation.messages, count):
            name = f"{error.language} {error.content}"
            sums[name].append((error.total * error.tokens, float(error.tokens)))
            units[name].append(unit)
    return [
        ClaimRow(
            setting=f"{name}, {encoding}",
            figure="error of len // 4",
            found=of_groups(pairs, units=units[name]),
            claimed=Claimed(least=-OFF, most=OFF),
            of=f"{len(pairs)} conversations",
            decides=decides,
        )
        for name, pairs in sorted(sums.items())
    ]


def counted(inputs: ClaimInputs) -> Measurement:
    """Measure C17: each text by itself, without the harness's cache of counts."""
    count = text_counter(inputs.counter.encoding)
    rows = []
    for name, texts in _by_size(inputs).items():
        pairs = [(sum(_fastest(count, text) for text in of_unit), float(len(of_unit))) for of_unit in texts.values()]
        rows.append(
            ClaimRow(
                setting=name,
                figure="time to count a text",
                unit="us",
                found=of_groups(pairs),
                claimed=Claimed(most=100.0),
                of=f"{sum(map(len, texts.values()))} texts",
                decides=name.startswith("a fact"),
                timed=True,
            )
        )
    return Measurement(tuple(rows))


def _by_size(inputs: ClaimInputs) -> dict[str, dict[str, list[str]]]:
    """Return some texts of each conversation, by size and independent unit."""
    texts_by_size: dict[str, dict[str, list[str]]] = {name: defaultdict(list) for name in (*SIZES, REST)}
    most = max(1, TEXTS // max(1, len(inputs.conversations)))
    for conversation, unit in zip(inputs.conversations, units_among(inputs.conversations), strict=True):
        sampled: dict[str, list[str]] = defaultdict(list)
        for text in dict.fromkeys(message.text for message in conversation.messages if message.text):
            size = next((name for name, (low, high) in SIZES.items() if low <= len(text) <= high), REST)
            if len(sampled[size]) < most:
                sampled[size].append(text)
        for size, texts in sampled.items():
            texts_by_size[size][unit] += texts
    return {size: texts for size, texts in texts_by_size.items() if texts}


def _fastest(count: Callable[[str], int], text: str) -> float:
    """Return the microseconds of the fastest of some rounds: other processes only ever make one slower."""
    return min(timeit.repeat(lambda: count(text), repeat=ROUNDS, number=1)) * 1e6


LIMIT = 8192
FOCUS, TIERED = "focus", "tiered"
NEVER = Claimed(most=0.0)


def limit(inputs: ClaimInputs) -> Measurement:
    """Measure C19 on the acceptance scenario, and on the run's conversations, some with results over the limit."""
    run = inputs.run_strategies("mem_001", ("none", FOCUS, TIERED), list(scenario("mem_001")), answers=True)
    figures = measured(run)
    rows: list[ClaimRow] = []
    for strategy in (FOCUS, TIERED):
        rows += _of_run(inputs, run, strategy, "mem_001")
        faults = figures.sums[strategy]["rejected_openai"]
        calls = figures.sums[strategy]["steps"]
        rows.append(
            ClaimRow(
                setting=f"{strategy}, mem_001",
                figure="calls whose messages do not hang together (OpenAI would reject them)",
                found=never_or_always(of_sums(np.column_stack([faults[:, 0], calls[:, 0]]), "ratio")),
                claimed=NEVER,
                of=f"{len(faults)} conversations",
            )
        )
        rows += [
            ClaimRow(
                setting=f"{strategy}, mem_001",
                figure=QUALITY[metric],
                found=of_sums(figures.sums[strategy][metric], figures.metrics[metric].form),
                of=f"{len(faults)} conversations",
                decides=False,
            )
            for metric in ("context_recall", "answer_quality")
            if metric in figures.sums[strategy]
        ]
    rows += _of_run(inputs, inputs.run_of(FOCUS), FOCUS, "the run")
    rows.append(
        ClaimRow(
            setting=f"{FOCUS} − none, the run",
            figure="difference in grounded values",
            unit="points",
            found=against(inputs, FOCUS, "none", "grounding"),
            of=inputs.of,
            decides=False,
        )
    )
    return Measurement(tuple(rows))


def _of_run(inputs: ClaimInputs, run: Run, strategy: str, name: str) -> list[ClaimRow]:
    """Return the calls over the limit, and the calls at which the strategy reported that it cannot be met."""
    steps = inputs.rows(run, "steps")
    steps = steps[steps.strategy.astype(str) == strategy]
    if steps.empty:
        return [
            ClaimRow(
                setting=f"{strategy}, {name}",
                figure=f"calls over {LIMIT:,} tokens",
                found=Missing("failed", f"{strategy} finished no conversation"),
                claimed=NEVER,
            )
        ]
    over = steps.assign(over=steps.tokens_sent > LIMIT).groupby("conversation", observed=True).over
    pairs = list(zip(over.sum().astype(float), over.count().astype(float), strict=True))
    events = run.table("events")
    over_budget = events[(events.kind == "over_budget") & (events.strategy.astype(str) == strategy)]
    units = units_of(over.sum().reset_index(), inputs.units)
    return [
        ClaimRow(
            setting=f"{strategy}, {name}",
            figure=f"calls over {LIMIT:,} tokens",
            found=never_or_always(of_groups(pairs, units=units)),
            claimed=NEVER,
            of=f"{len(steps):,} calls of {len(pairs)} conversations",
        ),
        ClaimRow(
            setting=f"{strategy}, {name}",
            figure="calls that it refused, since what must be sent is over the limit",
            found=of_groups(_over_budget_calls(steps, over_budget), units=units),
            of=f"{len(steps):,} calls",
            decides=False,
        ),
    ]


def _over_budget_calls(steps: pd.DataFrame, over_budget: pd.DataFrame) -> list[tuple[float, float]]:
    """Return by conversation the calls that were reported as over budget, and all calls."""
    calls = steps.groupby("conversation", observed=True).size()
    times = over_budget.drop_duplicates(["conversation", "step"]).groupby("conversation", observed=True).size()
    return [(float(times.get(name, 0)), float(size)) for name, size in calls.items()]


MEASURES: Measures = {
    "C01": (window, (WINDOW, WIDE)),
    # Both strategies summarise; the one of design document 003 is the claim's own.
    "C02": (lambda inputs: _savings(inputs, *SUMMARIES, least=0.4, upper=0.7), SUMMARIES),
    "C03": (lambda inputs: _savings(inputs, "retrieval", least=0.5, upper=0.8), ("retrieval",)),
    "C04": (lambda inputs: _savings(inputs, "layered", least=0.2, upper=0.4), ("layered",)),
    "C06": (smart, (SMART, WIDE)),
    "C07": (growth, (ALL, "session_summary")),
    "C18": (examples, ()),
    "C16": (estimate, ()),
    "C17": (counted, ()),
    "C19": (limit, ("none", FOCUS)),
}
