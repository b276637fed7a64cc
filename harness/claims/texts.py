"""C16–C18: how tokens are estimated and counted, and the examples of 003."""

from __future__ import annotations

import timeit
from collections import defaultdict
from collections.abc import Iterator

from ctxbench.metrics.tokens import TokenCounter, estimates, text_counter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.chain import parse

from ..replay import ConversationIndex, RecordedContext, replay
from .claim import Measured, exact, shown
from .inputs import ClaimInputs, of_sums, units_among

ENCODING = "cl100k_base"
"""The encoding that 002 counts in."""
SIZES = {"a fact: 1 to 200 characters": 200, "201 to 2,000": 2_000, "2,001 to 20,000": 20_000, "over 20,000": 10**12}
"""Sizes of texts that are timed, and the most characters of each."""
TEXTS, ROUNDS = 400, 5
"""Texts of each size that are timed, and rounds of which the fastest counts."""


def estimate(inputs: ClaimInputs) -> Iterator[Measured | dict[str, float | str]]:
    """Measure C16: the error of `len // 4` summed over a conversation's texts, by language and kind."""
    conversations = inputs.conversations
    for encoding in dict.fromkeys((ENCODING, inputs.counter.encoding)):
        count = text_counter(encoding)
        sums: dict[str, list[tuple[float, float]]] = defaultdict(list)
        units: dict[str, list[str]] = defaultdict(list)
        for conversation, unit in zip(conversations, units_among(conversations), strict=True):
            for error in estimates(conversation.messages, count):
                name = f"{error.language} {error.content}"
                sums[name].append((error.total * error.tokens, float(error.tokens)))
                units[name].append(unit)
        figure = "error" if encoding == ENCODING else "error_of_run"
        for name, pairs in sorted(sums.items()):
            found, of = of_sums(pairs, units=units[name]), f"{len(pairs)} conversations"
            yield Measured(figure, f"{name}, {encoding}", found, of)
    every = (message for conversation in conversations for message in conversation.messages)
    ranges = (
        f"{error.language} {error.content} {shown(error.p10, 'share')} to {shown(error.p90, 'share')}"
        for error in estimates(every, text_counter(ENCODING))
    )
    yield {"single": "; ".join(ranges)}


def counting(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C17: some texts of each conversation by themselves, without the harness's cache of counts."""
    count = text_counter(inputs.counter.encoding)
    most = max(1, TEXTS // max(1, len(inputs.conversations)))
    texts = [
        (unit, dict.fromkeys(message.text for message in conversation.messages if message.text))
        for conversation, unit in zip(inputs.conversations, units_among(inputs.conversations), strict=True)
    ]
    shorter = 0
    for size, longest in SIZES.items():
        sampled = defaultdict[str, list[str]](list)
        for unit, of_conversation in texts:
            sampled[unit] += [text for text in of_conversation if shorter < len(text) <= longest][:most]
        # Of some rounds the fastest counts: other processes only ever make one slower.
        pairs = [
            (sum(1e6 * min(timeit.repeat(lambda: count(text), repeat=ROUNDS, number=1)) for text in group), len(group))  # noqa: B023
            for group in sampled.values()
            if group
        ]
        if pairs:
            yield Measured("time", size, of_sums(pairs), f"{sum(number for _, number in pairs)} texts")
        shorter = longest


def examples(_: ClaimInputs) -> Iterator[Measured]:
    """Measure C18: the two worked examples of 003, executed."""
    counter, text = TokenCounter(), "word " * 90
    history = _chat(-(-9500 // counter.message(Message("m", "user", text))), text)
    kept = sum(map(counter.message, _last("window(max_tokens=8000)", history, counter)))
    total = sum(map(counter.message, history.messages[:-1]))
    yield Measured("kept", f"window(max_tokens=8000), a history of {total:,} tokens", exact(kept))
    history = _chat(25, "Something is said here.")
    ids = {message.id for message in history.messages}
    stayed = sum(message.id in ids for message in _last("summary(user_first=False)", history, counter))
    yield Measured("summarised", "summary, 25 messages", exact(len(history.messages) - 1 - stayed))
    yield Measured("stayed", "summary, 25 messages", exact(stayed))


def _chat(size: int, text: str) -> Conversation:
    """Return messages by turns and a last one that answers: the model was called before it."""
    # `^` binds more tightly than `==`: of 25 messages the even ones are the user's, of 24 the odd ones. So the last is.
    messages = [Message(f"m{at}", "user" if at % 2 == size % 2 ^ 1 else "assistant", text) for at in range(size)]
    return Conversation("example", (*messages, Message("reply", "assistant", "Yes.")))


def _last(strategy: str, conversation: Conversation, counter: TokenCounter) -> list[Message]:
    """Return the messages sent at the last call."""
    *_, step = replay(conversation, parse(strategy), RecordedContext(ConversationIndex(conversation, counter)))
    return list(step.context.messages)
