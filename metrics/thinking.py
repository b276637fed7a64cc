"""Count recorded reasoning, and tell what of it a model's provider keeps in later prompts.

Contexts count visible text alone (`tokens.py`); reasoning is counted where a figure says so. The rules are data
(`data/thinking.toml`), each with its source. What the recording does not have is missing, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from msgspec.structs import replace

from ctxbench.scenarios.model import Message

from .models import FamilyRule, family_rule
from .value import Missing

Keeps = Literal["all", "turn", "tools", "none"]
"""Answers whose reasoning stays in later prompts: all, those since the user's last message, those of turns with tool
calls, none."""


class ThinkingRule(FamilyRule, frozen=True, forbid_unknown_fields=True):
    """Rule by which the provider of a family of models keeps earlier reasoning in prompts."""

    source: str
    keeps: Keeps | None = None  # None = not documented, and not seen in recordings


@cache
def thinking_rule(model: str) -> ThinkingRule | None:
    """Return the rule of a model's family, by its name with or without `provider/`; None if none is known."""
    rule = family_rule("thinking", ThinkingRule, model)
    return None if rule is None or rule.keeps is None else rule


def has_thinking(message: Message) -> bool:
    """Return whether the recording says that the model reasoned before an answer."""
    reported = reported_thinking(message)
    return bool(message.thinking or reported or (message.thinking_hidden and reported is None))


def thinking_tokens(message: Message, count: Callable[[str], int], factor: float = 1.0) -> int | Missing:
    """Return the tokens of an answer's reasoning in our count, or why they are not known.

    The provider's own count, where it reports one, is divided by `factor`, its tokens for each of ours: the text that
    it shows may be a summary. Else the recorded text is counted.
    """
    reported = reported_thinking(message)
    if reported:
        return round(reported / factor)
    if message.thinking_hidden and reported is None:
        return Missing("undefined", "its text and its tokens are not recorded")
    return count(message.thinking) if message.thinking else 0


def reported_thinking(message: Message) -> int | None:
    """Return the tokens of an answer's reasoning as the provider reports them; None if it does not."""
    usage = message.call.usage if message.call is not None else None
    return None if usage is None else usage.reasoning


def without_thinking(message: Message) -> Message:
    """Return an answer as it is sent without its reasoning."""
    return replace(message, thinking="", thinking_hidden=False, call=None)


def opens_turn(message: Message, before: Iterable[Message]) -> bool:
    """Return whether a message opens a turn; `before` are those before it, the newest first.

    A turn is a loop of calls and results. A user's message that comes behind a result, before the answer, is part of
    the loop: OpenAI kept reasoning across one (Codex recordings), and Anthropic takes it as part of the result's.
    """
    if message.role != "user":
        return False
    return next((other.role for other in before if other.role not in ("user", "system")), "") != "tool"


class KeptThinking:
    """Answers of a history that keep their reasoning in the prompt of each later call, by a rule."""

    def __init__(self, keeps: Keeps | None, messages: Sequence[Message]) -> None:
        self._keeps = keeps
        # What is reported by its size alone never came to the caller, who cannot send it again.
        reasoned = [bool(message.thinking or message.thinking_hidden) for message in messages]
        # The messages at the start of prompts of each size whose reasoning is gone.
        self._stripped = [0]
        turns, last, spoke = [0], 0, list[Message]()
        for at, message in enumerate(messages):
            if reasoned[at]:
                last = at + 1
            if opens_turn(message, spoke):
                turns.append(at)
                self._stripped.append(last)
            else:
                self._stripped.append(self._stripped[-1])
            if message.role not in ("user", "system"):
                spoke = [message]
        self._kept = [keeps not in ("none", None) and has_reasoned for has_reasoned in reasoned]
        for start, stop in pairwise((*turns, len(messages))) if keeps == "tools" else ():
            if not any(message.calls for message in messages[start:stop]):
                self._kept[start:stop] = [False] * (stop - start)

    def stripped(self, size: int) -> int:
        """Return how many messages at the start of a prompt of `size` lack reasoning that they had in another."""
        return self._stripped[size] if self._keeps == "turn" else 0

    def of(self, at: int) -> bool:
        """Return whether a prompt that stripped nothing has the reasoning of the answer at `at`."""
        return self._kept[at]
