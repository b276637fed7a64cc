"""Cost of the strategies' own model calls, such as summaries, at the step at which each was made.

What `offline` summarised for nothing is charged at the billed model's price: in production, a summary is never free.
How a summary is asked for decides what it costs (`Prompt.kind`, which each strategy states):

    separate   the tokens of its own prompt, at the plain price
    history    the tokens of the last prompt and its answer, at the plain price: nothing of a cache is shared
    extends    the same tokens, of which what the cache still has of the last prompt is read

Sources are those of decision 18.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from ctxbench.metrics.cache.mechanisms import (
    FIVE_MINUTES,
    HOUR,
    AutomaticRules,
    BoundaryRules,
    ExplicitRules,
    UnitRules,
)
from ctxbench.metrics.cache.rules import Rules, day_of
from ctxbench.strategies.events import Called

from ..folder.contexts import Ints
from . import SummaryPrompt
from .requests import RunRequests
from .simulation import Scheme, rule_of

FREE = "offline"
"""The extractive summariser: it is no model and costs nothing in the run, but is billed as if it were one."""


class OwnCalls(NamedTuple):
    """The strategies' own model calls, and for each the row of the step at which it was made."""

    rows: Ints
    calls: list[Called]

    @classmethod
    def of(cls, requests: RunRequests) -> OwnCalls:
        """Read the calls from the events of a run."""
        steps, first = requests.steps, requests.bounds[:-1]
        events = requests.run.table("events").dropna(subset=["input_tokens"])
        at = steps.iloc[first]
        first_row = dict(zip(zip(at.conversation.tolist(), at.strategy.tolist(), strict=True), first, strict=True))
        keys = zip(events.conversation.tolist(), events.strategy.tolist(), strict=True)
        decoder = msgspec.json.Decoder(Called)
        made = [
            (first_row[key] + step, decoder.decode(text))
            for key, step, text in zip(keys, events.step.tolist(), events.event.tolist(), strict=True)
            if key in first_row
        ]
        return cls(np.array([row for row, _ in made], np.int64), [call for _, call in made])


class ChargedPrompts(NamedTuple):
    """Tokens that each own call is charged for, in the provider's counts."""

    tokens: Ints
    read: Ints
    """Tokens read from the cache; the rest is plain."""


def charged(
    requests: RunRequests, own: OwnCalls, asked: Ints, sent: SentPrompts, scheme: Scheme, prompt: SummaryPrompt | None
) -> ChargedPrompts:
    """Return the prompts of own calls, all asked for in one way, or with None each in its strategy's own.

    `asked`: tokens of the prompts that the run made for them. At the first step of a conversation there is no last
    prompt: the call's own is charged.
    """
    firsts = set(requests.bounds[:-1])
    kinds = np.array([prompt or call.prompt for call in own.calls])
    later = np.array([row not in firsts for row in own.rows.tolist()], bool) & (kinds != SummaryPrompt.separate)
    last = np.where(later, own.rows - 1, 0)
    tokens = np.where(later, sent.tokens[last] + sent.output[last], asked)
    is_read = later & (kinds == SummaryPrompt.extends)
    started = requests.started
    pauses = np.nan_to_num(started[own.rows] - started[last])
    cached = [
        still_cached(rules_at(scheme, started[row]), int(sent.tokens[before]), int(sent.cached[before]), pause, scheme)
        if reads
        else 0
        for row, before, pause, reads in zip(
            own.rows.tolist(), last.tolist(), pauses.tolist(), is_read.tolist(), strict=True
        )
    ]
    return ChargedPrompts(tokens, np.array(cached, np.int64))


class SentPrompts(NamedTuple):
    """Tokens of every row of the table `steps`, in the provider's counts."""

    tokens: Ints
    output: Ints
    cached: Ints
    """Tokens read or written."""


def rules_at(scheme: Scheme, started: float) -> Rules | None:
    """Return the rules of the scheme's model when a call started; NaN = the time is not known."""
    rule = rule_of(scheme, None if np.isnan(started) else day_of(started))
    return None if rule is None else rule.rules


def still_cached(rules: Rules | None, tokens: int, marked: int, pause: float, scheme: Scheme) -> int:
    """Return how much of a prompt the cache has after a pause in seconds."""
    match rules:
        case ExplicitRules():
            return marked if pause < (HOUR if scheme.placement == "hour" else FIVE_MINUTES) else 0
        case BoundaryRules():
            return marked if pause < rules.lifetime else 0
        case AutomaticRules() | UnitRules():
            return rules.read(tokens) if pause < rules.lifetime else 0
    return 0
