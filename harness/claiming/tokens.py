"""C01–C04, C06, C07, C18: what strategies save of the tokens (design documents 000 and 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.model import Conversation, Message
from ...strategies.base import Strategy
from ...strategies.chain import parse
from ..desk import Books, RecordedDesk
from ..replay import replay
from .claim import Claim, Claimed, Measured, Row, exact
from .figures import against, by_kind, of_groups, row, sums_of
from .inputs import Inputs

if TYPE_CHECKING:
    import pandas as pd

SAVED, NET = "tokens saved", "tokens saved, net of its own model calls"
WINDOW, WIDE = "window(max_tokens=8000)", "window(max_tokens=32000)"
SMART = "smart(window=32000)"
ALL = "layered | smart | session_summary | cache_marks"
"""The recipe `all_of_000`: everything that document 000 has."""
TURNS = {1: 0.0, 5: 0.47, 10: 0.67, 20: 0.80}
"""Savings by turn (000 §5.1)."""
QUALITY = {"correct": "answers that are right", "evidence_sent": "evidence sent word for word"}
"""What of answers is compared: the first that the run has."""


def _range(low: float, high: float) -> Claimed:
    return Claimed(least=low, upper=high)


def _saving(inputs: Inputs, own: str, others: tuple[str, ...], claimed: Claimed) -> list[Row]:
    """The net saving of the claim's own setting, of others, and of the own one by kind of conversation."""
    rows = [row(inputs, own, "net_saving", NET, claimed)]
    rows += [row(inputs, each, "net_saving", NET, claimed, decides=False) for each in others]
    return rows + by_kind(inputs, own, "net_saving", NET, claimed)


def window(inputs: Inputs) -> Measured:
    """C01. The own setting is 8000 tokens, 003's example: 000 names no size."""
    claimed = _range(0.3, 0.6)
    rows = _saving(inputs, WINDOW, (WIDE,), claimed)
    with_newest = row(inputs, WINDOW, "saving_with_newest", f"{SAVED} at calls that have the newest message", claimed)
    return Measured(
        (*rows, _beside(with_newest)),
        "What a window saves is what the history has beyond it, so the size decides: 8000 tokens is document 003's "
        "example, and 000 names none.",
        "Longer conversations, or a smaller window.",
    )


def summary(inputs: Inputs) -> Measured:
    """C02. Both summarising strategies; 003's own is the first."""
    rows = _saving(inputs, "summary(every=5)", ("session_summary",), _range(0.4, 0.7))
    return Measured(tuple(rows), "The summariser's own tokens are charged.", "Longer conversations.")


def retrieval(inputs: Inputs) -> Measured:
    """C03."""
    rows = _saving(inputs, "retrieval", (), _range(0.5, 0.8))
    return Measured(tuple(rows), "What is recalled and the last turns are sent; the rest is not.", "Longer histories.")


def layered(inputs: Inputs) -> Measured:
    """C04."""
    rows = _saving(inputs, "layered", (), _range(0.2, 0.4))
    return Measured(
        tuple(rows),
        "Short-term memory is what is saved, as in 000 §3.3: only recent turns and what is recalled are sent.",
        "Longer histories.",
    )


def smart(inputs: Inputs) -> Measured:
    """C06. Against a window of the same number of tokens, by tokens and by what answers rest on."""
    rows = [
        row(inputs, SMART, "net_saving", NET, _range(0.5, 0.8)),
        Row(
            setting=f"{SMART} − {WIDE}",
            figure="difference in tokens saved, net",
            unit="points",
            found=against(inputs, SMART, WIDE, "net_saving"),
            claimed=Claimed(least=0.0, above=True),
            of=inputs.of,
        ),
    ]
    metric = next((each for each in QUALITY if not isinstance(sums_of(inputs, SMART, each), Missing)), "evidence_sent")
    rows.append(
        Row(
            setting=f"{SMART} − {WIDE}",
            figure=f"difference in {QUALITY[metric]}",
            unit="points",
            found=against(inputs, SMART, WIDE, metric),
            claimed=Claimed(least=0.0),
            of=inputs.of,
        )
    )
    return Measured(
        tuple(rows),
        "Both have 32,000 tokens; more saved than by a window is worth it only if no more is lost.",
        "A choice of messages that loses less for what it saves; for a certain answer, more conversations with probes.",
    )


def growth(inputs: Inputs) -> Measured:
    """C07. Tokens of a call by turn, as `metrics.figures.growth` counts them: each conversation once a turn."""
    steps = inputs.rows(inputs.run_of(ALL), "steps")
    rows = []
    for strategy in dict.fromkeys((ALL, "session_summary")):
        rows += _by_turn(steps[steps.strategy.astype(str) == strategy], strategy)
    return Measured(
        tuple(rows),
        "The document's table is of fixed sums (5,000 tokens at first, 60,000 at turn 20); here are the conversations "
        "that get so far, each once, with the strategy's own model calls.",
        "Conversations that grow as fast as the document supposes: 3,000 tokens a turn.",
    )


def _by_turn(steps: pd.DataFrame, strategy: str) -> list[Row]:
    spent = steps.assign(spent=steps.tokens_sent + steps.own_tokens)
    per = spent.groupby(["turn", "conversation"], observed=True)[["spent", "tokens_full"]].mean()
    rows = []
    for turn, least in TURNS.items():
        found = per.loc[turn] if turn in per.index.get_level_values(0) else per.iloc[:0]
        pairs = [(float(sent), float(full)) for sent, full in found.to_numpy()]
        rows.append(
            Row(
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


def examples(_: Inputs) -> Measured:
    """C18. 003's two worked examples, executed."""
    counter = TokenCounter()
    kept, total = _window_example(counter)
    summarised, verbatim = _summary_example(counter)
    rows = (
        Row(
            setting=f"window(max_tokens=8000), a history of {total:,} tokens",
            figure="tokens kept",
            unit="tokens",
            found=exact(kept),
            claimed=Claimed(most=7200.0),
        ),
        Row(
            setting="summary, 25 messages",
            figure="messages that the summary stands for",
            unit="count",
            found=exact(summarised),
            claimed=Claimed(least=5.0, most=5.0),
        ),
        Row(
            setting="summary, 25 messages",
            figure="messages sent as they are",
            unit="count",
            found=exact(verbatim),
            claimed=Claimed(least=20.0, most=20.0),
        ),
    )
    return Measured(rows, "Both examples are executed, as in the tests.", "Strategies that do as the example says.")


def _window_example(counter: TokenCounter) -> tuple[int, int]:
    """Tokens of what is kept, and of all, where 9500 have been said."""
    text = "word " * 90
    size = counter.message(Message("m", "user", text))
    said = _chat(-(-9500 // size), text)
    sent = _last(parse(WINDOW), said, counter)
    return sum(map(counter.message, sent)), sum(map(counter.message, said.messages[:-1]))


def _summary_example(counter: TokenCounter) -> tuple[int, int]:
    """Messages that are summarised and that stay, of 25."""
    said = _chat(25, "Something is said here.")
    sent = _last(parse("summary(user_first=False)"), said, counter)
    ids = {message.id for message in said.messages}
    stayed = sum(message.id in ids for message in sent)
    return len(said.messages) - 1 - stayed, stayed


def _chat(size: int, text: str) -> Conversation:
    """Messages by turns, and a last one that answers: before it the model was called."""
    said = [Message(f"m{at}", "user" if at % 2 == size % 2 ^ 1 else "assistant", text) for at in range(size)]
    return Conversation("example", (*said, Message("reply", "assistant", "Yes.")))


def _last(strategy: Strategy, said: Conversation, counter: TokenCounter) -> list[Message]:
    """What is sent at the last call."""
    *_, step = replay(said, strategy, RecordedDesk(Books(said, counter)))
    return list(step.context.messages)


def _beside(found: Row) -> Row:
    return replace(found, decides=False)


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
        "tokens of a call by turn, everything of 000 together",
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
)
