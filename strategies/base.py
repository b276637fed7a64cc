"""What a strategy is: a frozen dataclass whose `start` opens one conversation and returns a Context → Context function.

    @dataclass(frozen=True, slots=True)
    class LastTen:
        '''The last ten messages, whatever they are.'''

        def start(self, desk: Desk) -> View:
            return lambda context: context.sending(context.messages[-10:])

Its parameters are its identity (`scenarios.spec` prints and parses them). Two class variables, `source` and `fails`,
are shown by `ctxbench list strategies`: where it comes from, and the words after "Fails when". A third, `copyable`,
says that what `start` returns may be copied (`is_copyable`). State, if any, lives in what `start` returns. A strategy
never reads the wall clock and never measures itself: the harness does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..scenarios.model import Fact, Message, Tool
from ..scenarios.view import Messages
from .events import Event


class Context(msgspec.Struct, frozen=True):
    """What a model is sent: messages in order, the cache marks on them, the tools offered."""

    messages: Messages
    marks: tuple[int, ...] = ()
    """A cache breakpoint stands after each of these messages (their places, from 0)."""
    tools: tuple[Tool, ...] = ()

    def sending(self, messages: Sequence[Message]) -> Context:
        """The same context with other messages, and no marks: they named places that are gone."""
        return Context(Messages.of(messages), (), self.tools)


View = Callable[[Context], Context]
"""Gets everything said so far before each model call, and returns what to send."""


class Prompt(msgspec.Struct, frozen=True):
    """What a strategy asks of a model: an instruction, and the material that it is about.

    The `offline` model is no chat model: it extracts what matters from the material, and reads no instruction.
    """

    instruction: str
    """`{conversation}` stands where the material goes, a line each."""
    material: tuple[str, ...]
    max_tokens: int
    """Of the reply."""
    about: tuple[Message, ...] = ()
    """The messages that the reply will stand for. The harness compares them with the material: what was not shown
    cannot survive."""
    temperature: float = 0.3
    model: str = ""
    """Empty = the run's summariser."""

    def text(self) -> str:
        """The whole prompt."""
        return self.instruction.replace("{conversation}", "\n".join(self.material))


class ModelError(Exception):
    """A model or an embedder could not answer: refused, timed out, empty, over the spend limit. The text says which."""


class Misfit(TypeError):
    """A strategy gave the harness what it cannot use. The text is a sentence; the strategy loses its cell."""


def described(value: object) -> str:
    """What a value is, in a sentence: None, a list, an int."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def returned(found: object, by: str = "the strategy") -> Context:
    """What a view returned, if it is a Context. Raises Misfit."""
    if not isinstance(found, Context):
        raise Misfit(f"{by} returned {described(found)}, a Context is wanted: context.sending(messages) makes one")
    return found


class StrategyContext(Protocol):
    """All that a strategy may use of the outside. Every figure is exact in the run's encoding.

    Sums over messages cost the number of stretches that the messages are made of, not their length.
    """

    @property
    def conversation(self) -> str:
        """The id of the conversation."""
        ...

    @property
    def now(self) -> float | None:
        """The recorded time of this model call, in seconds since 1970; None if the recording has no times."""
        ...

    def record(self, event: Event) -> None:
        """Report what the strategy did at this step."""
        ...

    def complete(self, prompt: Prompt) -> str:
        """A model's reply, never empty. Its tokens are charged to the strategy. Raises ModelError."""
        ...

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        """Unit vectors, one row a text, as what is searched for or (by default) what is found. Raises ModelError."""
        ...

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        """Have `answer(arguments as JSON text)` give the result when a model that is sent the context calls `tool`."""
        ...

    def facts(self, message: Message) -> tuple[Fact, ...] | None:
        """What the recording states as facts of a message; None if it states none of any message."""
        ...

    def text_tokens(self, text: str) -> int:
        """Tokens of a text alone."""
        ...

    def tokens(self, message: Message) -> int:
        """Tokens of one message in the chat format."""
        ...

    def total(self, messages: Messages) -> int:
        """Tokens of messages together."""
        ...

    def schemas(self, tools: tuple[Tool, ...]) -> int:
        """Tokens of the schemas of the tools that are offered."""
        ...

    def fit(self, messages: Messages, budget: int) -> int:
        """The smallest start such that messages[start:], system messages aside, take at most `budget` tokens."""
        ...

    def systems(self, messages: Messages) -> Messages:
        """The system messages among these."""
        ...

    def opening(self, messages: Messages, start: int) -> int | None:
        """Where the user message is that opened the turn which messages[start:] go on with; None if they open one."""
        ...

    def whole(self, messages: Messages) -> Messages:
        """These messages without the tool results whose call is not among them."""
        ...


class Strategy(Protocol):
    """A way to turn a history into what the model is sent."""

    def start(self, desk: StrategyContext) -> View:
        """Open one conversation. The function returned gets everything said so far, each time."""
        ...


def is_copyable(strategy: Strategy) -> bool:
    """Whether the strategy says that a copy of what `start` returned goes on as that would have.

    A question that is asked of a copy leaves no trace. Without it the conversation is replayed for each question.
    """
    return bool(getattr(strategy, "copyable", False))


def budget_of(strategy: Strategy) -> int | None:
    """Tokens that the strategy promises its messages never exceed; None if it promises nothing.

    Raises Misfit where `budget` is no number of tokens, and whatever a property raises.
    """
    if inspect.getattr_static(strategy, "budget", None) is None:
        return None
    budget: object = strategy.budget  # type: ignore[attr-defined]
    if budget is None:
        return None
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 <= budget < 2**63:
        raise Misfit(f"the strategy's budget is {budget!r}, a whole number of tokens (or None) is wanted")
    return budget
