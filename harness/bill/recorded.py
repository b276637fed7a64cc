"""Read from a run which models were recorded, how their token counts differ from ours, and what their calls cost.

A run is billed under the model that was recorded, in tokens as that model's provider counts them, unless the user names
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from ctxbench.metrics.prices import Prices
from ctxbench.metrics.thinking import KeptThinking, ThinkingRule, reported_thinking, thinking_rule, thinking_tokens
from ctxbench.metrics.tokens import TokenCounter, TokenFactor, token_factor
from ctxbench.metrics.value import Missing

from ..folder.run import Run, recorded_models
from . import MODELS, usual_prices


def billed_models(run: Run, named: Sequence[str] = (), prices: Prices | None = None) -> tuple[str, ...]:
    """Return the models that a run is billed under, the most important first: those named, or else MODELS.

    Without any named, the recorded model with the most calls is the first, where its price is known.
    """
    if named:
        return tuple(dict.fromkeys(named))
    main = next(iter(recorded_models(run)), "")
    recorded = (main,) if main and (prices or usual_prices()).tariff(main) is not None else ()
    return tuple(dict.fromkeys((*recorded, *MODELS)))[: len(MODELS)]


class TokenFactors(NamedTuple):
    """How many tokens a model's provider counts for each token that the run counts."""

    prompt: float = 1.0
    answer: float = 1.0
    family: TokenFactor | None = None
    """The family that the factors are of; None = they are of the recorded calls, or not known."""


def token_factors(run: Run, model: str, thinking: bool = False) -> TokenFactors:
    """Return a model's token factors: of its recorded calls, where they have usage, else of its family.

    The factor of prompts is the growth of the recorded prompts from call to call, in all, over the growth of our counts
    (as `ctxbench lab validate` fits it): what a recording lacks, such as a system prompt, cancels. Where a prompt
    shrank, the recorded agent sent something else than the history: that call is left out, and so is one before which
    images or files were added, whose tokens we do not count. The factor of answers is
    that of their sums; reasoning that is not in the recording is part of it. Families were measured against
    `o200k_base`: under another encoding, and for a family that was not measured, the factor is 1.

    With `thinking`, recorded reasoning is part of our prompts as the model's provider keeps it, and what the provider
    reports of it is taken from the recorded ones.
    """
    family = token_factor(model) if run.manifest.plan.encoding == FACTORED else None
    messages = run.messages
    calls = messages[(messages.model == model) & messages.usage_input.notna()]
    if not len(calls):
        return TokenFactors(family.factor, family.factor, family) if family else TokenFactors()
    calls = calls.assign(media=_media_before(run, calls))
    rule = thinking_rule(model) if thinking else None
    if rule is not None:
        counted, reported = _reasoning_before(run, calls, rule)
        calls = calls.assign(whole=calls.whole + counted, usage_input=calls.usage_input - reported)
    grown = calls.groupby("conversation", observed=True)[["usage_input", "whole", "media"]].diff()
    grown = grown[(grown.usage_input > 0) & ~calls.compacted & (grown.media == 0)]
    answered = calls[calls.usage_output > 0]
    otherwise = family.factor if family else 1.0
    return TokenFactors(
        _ratio(grown.usage_input.sum(), grown.whole.sum(), otherwise),
        _ratio(answered.usage_output.sum(), answered.tokens.sum(), otherwise),
    )


FACTORED = "o200k_base"
"""Encoding that the factors of families are against."""


def hidden_prefixes(run: Run) -> dict[str, int]:
    """Estimate the tokens, by our count, of what stood in front of every prompt and is not in the recording.

    By conversation, for those that record neither a system prompt nor tools: the first prompt with usage, in our tokens
    by the factor of its model, less what of it is recorded. `ctxbench lab validate` has it as a constant likewise.
    """
    tools = run.table("conversations").astype({"conversation": str}).set_index("conversation").tools_tokens
    messages = run.messages
    starts = messages[messages["at"] == 0].astype({"conversation": str}).set_index("conversation").role
    calls = messages[messages.usage_input.notna() & ~messages.compacted]
    calls = calls.astype({"conversation": str, "model": str})
    firsts = calls.drop_duplicates("conversation").set_index("conversation")
    firsts = firsts[(starts.loc[firsts.index] != "system") & (tools.loc[firsts.index] == 0)]
    firsts = firsts[_media_before(run, firsts.reset_index()).to_numpy() == 0]
    factors = {model: token_factors(run, model).prompt for model in firsts.model.unique()}
    estimates = firsts.usage_input / firsts.model.map(factors).astype(float) - firsts.whole
    return {str(name): round(estimate) for name, estimate in estimates.items() if round(estimate) > 0}


def _media_before(run: Run, calls: pd.DataFrame) -> pd.Series:
    """Return the number of messages with images, sounds, films or files that stand before each call."""
    places = zip(calls.conversation.astype(str), calls["at"], strict=True)
    counts = [sum(place < at for place in run.media.get(name, ())) for name, at in places]
    return pd.Series(counts, calls.index, dtype="int64")


def _reasoning_before(run: Run, calls: pd.DataFrame, rule: ThinkingRule) -> tuple[pd.Series, pd.Series]:
    """Return the tokens of the reasoning in each call's prompt: by our count, and as its provider reports it."""
    counter = TokenCounter(run.manifest.plan.encoding)
    sums = dict[tuple[str, int], tuple[int, int]]()
    recordings = {conversation.id: conversation.messages for conversation in run.conversations()}
    for name, places in calls["at"].groupby(calls.conversation.astype(str)):
        messages = recordings[str(name)]
        kept = KeptThinking(rule.keeps, messages)
        # A sum up to each message, of both counts: a prompt has the difference of two of them.
        ours, theirs = [0], [0]
        for at, message in enumerate(messages):
            tokens = thinking_tokens(message, counter.text) if kept.of(at) else 0
            known = 0 if isinstance(tokens, Missing) else tokens
            said = bool(reported_thinking(message))
            ours.append(ours[-1] + known * (not said))
            theirs.append(theirs[-1] + known * said)
        for at in places:
            start = kept.stripped(at)
            sums[str(name), at] = ours[at] - ours[start], theirs[at] - theirs[start]
    frame = pd.DataFrame(
        [sums[key] for key in zip(calls.conversation.astype(str), calls["at"], strict=True)], calls.index
    )
    return frame[0], frame[1]


def _ratio(recorded: float, ours: float, otherwise: float) -> float:
    return float(recorded / ours) if recorded > 0 and ours > 0 else otherwise
