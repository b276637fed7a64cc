"""C01–C04, C06, C07, C16–C19: tokens that strategies save, how tokens are counted, and the limit of Focus."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from msgspec.structs import replace

from ...metrics.statistics.intervals import Interval
from ...metrics.tokens import TokenCounter, estimates, text_counter
from ...metrics.value import Missing
from ...scenarios.embedded import scenario
from ...scenarios.model import Conversation, Message
from ...strategies.base import Strategy
from ...strategies.chain import RECIPES, parse
from ..compare.figures import measured
from ..folder.run import Run
from ..replay import ConversationIndex, RecordedContext, replay
from .claim import Claimed, ClaimRow, Measurement, exact, shown
from .inputs import Claim, ClaimInputs, against, by_kind, of_groups, of_sums, row, sums_of

if TYPE_CHECKING:
    import pandas as pd


SAVED, NET = "tokens saved", "tokens saved, net of its own model calls"
WINDOW, WIDE = "window(max_tokens=8000)", "window(max_tokens=32000)"
SMART = "smart(window=32000)"
ALL = RECIPES["all_of_000"].chain
"""Every strategy that design document 000 has."""
TURNS = {1: 0.0, 5: 0.47, 10: 0.67, 20: 0.80}
"""Savings by turn (000 §5.1)."""
QUALITY = {"answer_quality": "answers that are right", "context_recall": "evidence sent word for word"}
"""Figures of answers that are compared: the first that the run has."""


def _range(low: float, high: float) -> Claimed:
    return Claimed(least=low, upper=high)


def _saving(inputs: ClaimInputs, own: str, others: tuple[str, ...], claimed: Claimed) -> list[ClaimRow]:
    """Return the net saving of the claim's own setting, of others, and of the own one by kind of conversation."""
    rows = [row(inputs, own, "net_saving", NET, claimed)]
    rows += [row(inputs, strategy, "net_saving", NET, claimed, decides=False) for strategy in others]
    return rows + by_kind(inputs, own, "net_saving", NET, claimed)


def window(inputs: ClaimInputs) -> Measurement:
    """Measure C01. The own setting is 8000 tokens, the example of 003: 000 names no size."""
    claimed = _range(0.3, 0.6)
    rows = _saving(inputs, WINDOW, (WIDE,), claimed)
    with_newest = row(inputs, WINDOW, "saving_with_newest", f"{SAVED} at calls that have the newest message", claimed)
    return Measurement(
        (*rows, _beside(with_newest)),
        "What a window saves is what the history has beyond it, so the size decides. The claim names none: 8000 tokens "
        "is the example of another design document.",
        "Longer conversations, or a smaller window.",
    )


def summary(inputs: ClaimInputs) -> Measurement:
    """Measure C02 with both summarising strategies; the one of 003 decides."""
    rows = _saving(inputs, "summary(every=5)", ("session_summary",), _range(0.4, 0.7))
    return Measurement(tuple(rows), "The summariser's own tokens are charged.", "Longer conversations.")


def retrieval(inputs: ClaimInputs) -> Measurement:
    """Measure C03."""
    rows = _saving(inputs, "retrieval", (), _range(0.5, 0.8))
    return Measurement(
        tuple(rows), "What is recalled and the last turns are sent; the rest is not.", "Longer histories."
    )


def layered(inputs: ClaimInputs) -> Measurement:
    """Measure C04."""
    rows = _saving(inputs, "layered", (), _range(0.2, 0.4))
    return Measurement(
        tuple(rows),
        "Only recent turns and what is recalled are sent: short-term memory is what is saved.",
        "Longer histories.",
    )


def smart(inputs: ClaimInputs) -> Measurement:
    """Measure C06 against a window of the same number of tokens: tokens saved, and the evidence of answers."""
    rows = [
        row(inputs, SMART, "net_saving", NET, _range(0.5, 0.8)),
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
    return Measurement(
        tuple(rows),
        "Both have 32,000 tokens; more saved than by a window is worth it only if no more is lost.",
        "A choice of messages that loses less for what it saves; for a certain answer, more conversations with probes.",
    )


def growth(inputs: ClaimInputs) -> Measurement:
    """Measure C07: tokens of a call by turn, each conversation once a turn (`metrics.figures.growth`)."""
    steps = inputs.rows(inputs.run_of(ALL), "steps")
    rows = []
    for strategy in dict.fromkeys((ALL, "session_summary")):
        rows += _by_turn(steps[steps.strategy.astype(str) == strategy], strategy)
    return Measurement(
        tuple(rows),
        "The document's table is of fixed sums (5,000 tokens at first, 60,000 at turn 20); here are the conversations "
        "that get so far, each once, with the strategy's own model calls.",
        "Conversations that grow as fast as the document supposes: 3,000 tokens a turn.",
    )


def _by_turn(steps: pd.DataFrame, strategy: str) -> list[ClaimRow]:
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
                unit="share",
                found=of_groups(pairs, "saving"),
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
    return Measurement(rows, "Both examples are executed, as in the tests.", "Strategies that do as the example says.")


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
    messages = [Message(f"m{at}", "user" if at % 2 == size % 2 ^ 1 else "assistant", text) for at in range(size)]
    return Conversation("example", (*messages, Message("reply", "assistant", "Yes.")))


def _last(strategy: Strategy, conversation: Conversation, counter: TokenCounter) -> list[Message]:
    """Return the messages sent at the last call."""
    *_, step = replay(conversation, strategy, RecordedContext(ConversationIndex(conversation, counter)))
    return list(step.context.messages)


def _beside(row: ClaimRow) -> ClaimRow:
    return replace(row, decides=False)


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
        (message for conversation in inputs.said for message in conversation.messages), text_counter(ENCODING)
    )
    single = "; ".join(
        f"{error.language} {error.content} {shown(error.p10, 'share')} to {shown(error.p90, 'share')}"
        for error in errors
    )
    return Measurement(
        tuple(rows),
        f"The estimate less the exact count, as a share of it. Of single texts, 10th to 90th percentile: {single}.",
        "An estimate that knows the language, or an exact count.",
    )


def _errors(inputs: ClaimInputs, encoding: str, decides: bool) -> list[ClaimRow]:
    count = text_counter(encoding)
    sums: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for conversation in inputs.said:
        for error in estimates(conversation.messages, count):
            sums[f"{error.language} {error.content}"].append((error.total * error.tokens, float(error.tokens)))
    return [
        ClaimRow(
            setting=f"{name}, {encoding}",
            figure="error of len // 4",
            unit="share",
            found=of_groups(pairs),
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
        pairs = [
            (sum(_fastest(count, text) for text in texts_of_conversation), float(len(texts_of_conversation)))
            for texts_of_conversation in texts
        ]
        rows.append(
            ClaimRow(
                setting=name,
                figure="time to count a text",
                unit="us",
                found=of_groups(pairs),
                claimed=Claimed(most=100.0),
                of=f"{sum(map(len, texts))} texts",
                decides=name.startswith("a fact"),
                timed=True,
            )
        )
    return Measurement(
        tuple(rows),
        "The claim is about facts, a line each. Less than 10 µs is faster than claimed. tiktoken is not timed: ours "
        "(quicktok) counts the same, faster.",
        "A faster machine, or shorter texts.",
    )


def _by_size(inputs: ClaimInputs) -> dict[str, list[list[str]]]:
    """Return some texts of each conversation, by size."""
    texts_by_size: dict[str, list[list[str]]] = {name: [] for name in (*SIZES, REST)}
    most = max(1, TEXTS // max(1, len(inputs.said)))
    for conversation in inputs.said:
        sampled: dict[str, list[str]] = defaultdict(list)
        for text in dict.fromkeys(message.text for message in conversation.messages if message.text):
            size = next((name for name, (low, high) in SIZES.items() if low <= len(text) <= high), REST)
            if len(sampled[size]) < most:
                sampled[size].append(text)
        for size, texts in sampled.items():
            texts_by_size[size].append(texts)
    return {size: texts for size, texts in texts_by_size.items() if texts}


def _fastest(count: object, text: str) -> float:
    """Return the microseconds of the fastest of some rounds."""
    assert callable(count)
    best = float("inf")
    for _ in range(ROUNDS):
        began = perf_counter()
        count(text)
        best = min(best, perf_counter() - began)
    return best * 1e6


LIMIT = 8192
FOCUS, TIERED = "focus", "tiered"
NEVER = Claimed(most=0.0)


def limit(inputs: ClaimInputs) -> Measurement:
    """Measure C19 on the acceptance scenario, and on the run's conversations, some with results over the limit."""
    run = inputs.executed("mem_001", ("none", FOCUS, TIERED), list(scenario("mem_001")), answers=True)
    figures = measured(run, inputs.rows)
    rows: list[ClaimRow] = []
    for strategy in (FOCUS, TIERED):
        rows += _of_run(inputs, run, strategy, "mem_001")
        faults = figures.sums[strategy]["rejected_openai"]
        calls = figures.sums[strategy]["steps"]
        rows.append(
            ClaimRow(
                setting=f"{strategy}, mem_001",
                figure="calls whose messages do not hang together (OpenAI would reject them)",
                unit="share",
                found=of_sums(np.column_stack([faults[:, 0], calls[:, 0]]), "ratio"),
                claimed=NEVER,
                of=f"{len(faults)} conversations",
            )
        )
        for metric, what in (
            ("context_recall", "evidence sent word for word"),
            ("answer_quality", "answers that are right"),
        ):
            if metric in figures.sums[strategy]:
                share = of_sums(figures.sums[strategy][metric], figures.metrics[metric].form)
                rows.append(_beside_focus(f"{strategy}, mem_001", what, share, f"{len(faults)} conversations"))
    rows += _of_run(inputs, inputs.run_of(FOCUS), FOCUS, "the run")
    rows.append(
        _beside_focus(
            f"{FOCUS} − none, the run",
            "difference in grounded values",
            against(inputs, FOCUS, "none", "grounding"),
            inputs.of,
            points=True,
        )
    )
    return Measurement(
        tuple(rows),
        "Coherent is taken to mean: calls and results together, a user message first, nothing orphaned. What answers "
        "rest on goes, and is shown.",
        "A Focus tier that refuses all that is over the limit.",
    )


def _of_run(inputs: ClaimInputs, run: Run, strategy: str, name: str) -> list[ClaimRow]:
    """Return the calls over the limit, and the calls at which the strategy reported that it cannot be met."""
    steps = inputs.rows(run, "steps")
    steps = steps[steps.strategy.astype(str) == strategy]
    if steps.empty:
        return [
            ClaimRow(
                setting=f"{strategy}, {name}",
                figure=f"calls over {LIMIT:,} tokens",
                unit="share",
                found=Missing("failed", f"{strategy} finished no conversation"),
                claimed=NEVER,
            )
        ]
    over = steps.assign(over=steps.tokens_sent > LIMIT).groupby("conversation", observed=True).over
    pairs = list(zip(over.sum().astype(float), over.count().astype(float), strict=True))
    events = run.table("events")
    over_budget = events[(events.kind == "over_budget") & (events.strategy.astype(str) == strategy)]
    return [
        ClaimRow(
            setting=f"{strategy}, {name}",
            figure=f"calls over {LIMIT:,} tokens",
            unit="share",
            found=of_groups(pairs),
            claimed=NEVER,
            of=f"{len(steps):,} calls of {len(pairs)} conversations",
        ),
        _beside_focus(
            f"{strategy}, {name}",
            "calls that it refused, since what must be sent is over the limit",
            of_groups(_over_budget_calls(steps, over_budget)),
            f"{len(steps):,} calls",
        ),
    ]


def _over_budget_calls(steps: pd.DataFrame, over_budget: pd.DataFrame) -> list[tuple[float, float]]:
    """Return by conversation the calls that were reported as over budget, and all calls."""
    calls = steps.groupby("conversation", observed=True).size()
    times = over_budget.drop_duplicates(["conversation", "step"]).groupby("conversation", observed=True).size()
    return [(float(times.get(name, 0)), float(size)) for name, size in calls.items()]


def _beside_focus(setting: str, figure: str, value: Interval | Missing, of: str, *, points: bool = False) -> ClaimRow:
    return ClaimRow(
        setting=setting,
        figure=figure,
        unit="points" if points else "share",
        found=value,
        of=of,
        decides=False,
    )


CLAIMS = (
    Claim(
        "C01",
        "A sliding window saves 30–60 % of the tokens",
        "000 §1.1",
        "tokens saved against the whole history, by scenario",
        window,
        (WINDOW, WIDE),
    ),
    Claim(
        "C02",
        "Summarising saves 40–70 % of the tokens",
        "000 §1.1",
        "the same, the summariser's own tokens charged",
        summary,
        ("summary(every=5)", "session_summary"),
    ),
    Claim("C03", "Retrieval memory saves 50–80 % of the tokens", "000 §1.1", "the same", retrieval, ("retrieval",)),
    Claim(
        "C04",
        "Separating short- and long-term memory saves 20–40 % of the tokens",
        "000 §1.1",
        "the same, `layered`",
        layered,
        ("layered",),
    ),
    Claim(
        "C06",
        "Smart compression saves 50–80 %, more than a window",
        "000 §2.2",
        "at the same budget: tokens, and what answers rest on, in pairs of conversations",
        smart,
        (SMART, WIDE),
    ),
    Claim(
        "C07",
        "Savings grow by turn: 0 % at first, 47 % at 5, 67 % at 10, 80 % at 20",
        "000 §5.1",
        "tokens of a call by turn, every saving strategy together",
        growth,
        (ALL, "session_summary"),
    ),
    Claim(
        "C18",
        "A window of 8000 keeps at most 7200 of 9500 tokens; of 25 messages 5 are summarised and 20 stay",
        "003 §5.3, §6.2",
        "executable examples",
        examples,
    ),
    Claim(
        "C16",
        "`len // 4` is off by up to ±25 %",
        "002",
        "its error by language and kind of text, against exact counts",
        estimate,
    ),
    Claim("C17", "Counting tokens takes 10–100 µs", "002", "benchmark by length of text", counted),
    Claim(
        "C19",
        "Focus is never above 8192 tokens, what is over is refused or queued, the rest stays coherent",
        "004 §7",
        "the acceptance scenario and the run; coherence as structural validity, with what answers rest on beside it",
        limit,
        ("none", FOCUS),
    ),
)
