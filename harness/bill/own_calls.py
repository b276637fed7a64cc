"""Cost of the strategies' own model calls, such as summaries, at the step at which each was made.

What `offline` summarised for nothing is charged at the billed model's price: in production, a summary is never free.
Who asks for a summary decides what it costs, since a prompt that begins as the last one did is read from the cache:

    separate   a prompt of its own with the conversation as text, at the plain price (OpenHands, opencode, pi,
               LangChain)
    history    the last prompt and its answer, behind another system prompt or without tools: nothing is shared, so all
               of it is plain (the Anthropic SDK's own compaction, Codex, Gemini CLI)
    extends    the last prompt and its answer go on with one message more: what the cache still has of that prompt is
               read (Claude Code, Anthropic's compaction on demand)

Sources are those of decision 18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from ...metrics.cache.mechanisms import HOUR, AutomaticRules, BoundaryRules, ExplicitRules, UnitRules
from ...metrics.cache.rules import Rules
from ...strategies.events import Called
from ..folder.contexts import Floats, Ints
from . import SummaryPrompt
from .requests import RunRequests

FREE = "offline"
"""The extractive summariser: it is no model and costs nothing in the run, but is billed as if it were one."""
FIVE_MINUTES = 300.0


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


class PromptBefore(NamedTuple):
    """What the call before each own call's step sent; 0 everywhere at the first step of a conversation."""

    tokens: Ints
    output: Ints
    cached: Ints
    """Tokens of it that the cache still has."""


def prompts_before(
    requests: RunRequests,
    rows: Ints,
    columns: tuple[Ints, Ints, Ints],
    rules: Callable[[int], Rules | None],
    hour: bool,
) -> PromptBefore:
    """Return the prompts before own calls at `rows`.

    `columns`: of each row of the steps the prompt, its answer, and what of it was read or written, in the provider's
    tokens. `rules` of a row's day. `hour`: whether marks are for an hour.
    """
    firsts = set(requests.bounds[:-1])
    has = np.array([row not in firsts for row in rows.tolist()], bool)
    before = np.where(has, rows - 1, 0)
    tokens, output, marked = (np.where(has, column[before], 0) for column in columns)
    gaps = np.nan_to_num(requests.started[rows] - requests.started[before])
    cached = [
        _still(rules(int(row)), int(size), int(part), float(gap), hour)
        for row, size, part, gap in zip(rows, tokens, marked, gaps, strict=True)
    ]
    return PromptBefore(tokens, output, np.array(cached, np.int64))


def _still(rules: Rules | None, tokens: int, marked: int, gap: float, hour: bool) -> int:
    """Return how much of a prompt the cache has after a pause of `gap` seconds."""
    match rules:
        case ExplicitRules():
            return marked if gap < (HOUR if hour else FIVE_MINUTES) else 0
        case BoundaryRules():
            return marked if gap < rules.lifetime else 0
        case AutomaticRules() | UnitRules():
            return rules.read(tokens) if gap < rules.lifetime else 0
    return 0


class PriceColumns(NamedTuple):
    """Prices that apply to each call, in US dollars per token."""

    input: Floats
    read: Floats
    output: Floats


def own_cost(
    own: OwnCalls,
    sizes: tuple[Ints, Ints],
    before: PromptBefore,
    prompt: SummaryPrompt,
    price: Callable[[Ints], PriceColumns],
) -> Floats:
    """Return the cost of each own call; NaN for a model whose price is not known.

    `sizes`: tokens of each call's own prompt and reply, as the billed provider counts them. `price` takes the tokens of
    the prompts that are charged.
    """
    asked, replied = sizes
    free = np.array([call.model == FREE and call.role == "summariser" for call in own.calls])
    whole = np.where(before.tokens > 0, before.tokens + before.output, asked)
    charged = asked if prompt is SummaryPrompt.separate else whole
    read = np.where(before.tokens > 0, before.cached, 0) if prompt is SummaryPrompt.extends else np.zeros_like(charged)
    each = price(charged)
    billed = (charged - read) * each.input + read * each.read + replied * each.output
    paid = np.array([np.nan if call.cost is None else call.cost for call in own.calls], np.float64)
    return np.where(free, billed, paid)
