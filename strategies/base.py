"""The protocol of a strategy: a frozen dataclass whose `start` opens one conversation, and returns Context → Context.

    @dataclass(frozen=True, slots=True)
    class LastTen:
        '''Send the last ten messages, whatever they are.'''

        def start(self, services: StrategyContext) -> View:
            return lambda context: context.sending(context.messages[-10:])

Its parameters are its identity (`scenarios.spec` prints and parses them). `ctxbench list strategies` shows three class
variables: `source`, where the idea comes from, `fails`, the words after "Fails when", and `family`, whose published
live runs stand beside it (`metrics.evidence`). A fourth, `copyable`, says that what `start` returns has no state but
in plain objects (`is_copyable`). State, if any, lives in what `start` returns.
A strategy never reads the wall clock and never measures itself: the harness does.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.model import Compaction, ContextEdit, Fact, Message, Tool
from ctxbench.scenarios.view import Messages

from .events import Event, PromptKind

if TYPE_CHECKING:  # an adapter in another Python has no NumPy
    import numpy as np
    from numpy.typing import NDArray

    from ctxbench.metrics.language import Language


class Context(msgspec.Struct, frozen=True):
    """A request to a model: messages in order, the cache marks on them, and the tools offered."""

    messages: Messages
    marks: tuple[int, ...] = ()
    """Places (from 0) of the messages that have a cache breakpoint after them."""
    tools: tuple[Tool, ...] = ()

    def sending(self, messages: Sequence[Message]) -> Context:
        """Return this context with other messages and without marks, which named places in the old messages."""
        return Context(Messages.of(messages), (), self.tools)


View = Callable[[Context], Context]
"""Receives the history up to a model call, and returns what to send."""


class Prompt(msgspec.Struct, frozen=True):
    """A request to a model: an instruction, and the material that it is about.

    The `offline` model is no chat model: it extracts sentences from the material and never reads the instruction.
    """

    instruction: str
    """`{conversation}` is replaced by the material, one item per line."""
    material: tuple[str, ...]
    max_tokens: int
    """Limit of the reply."""
    about: tuple[Message, ...] = ()
    """The messages that the reply will replace. The harness compares them with the material: what the model was not
    shown cannot survive."""
    temperature: float = 0.3
    model: str = ""
    """Empty = the run's summariser."""
    kind: PromptKind = "separate"
    """How it would be asked in production, by which it is billed. Models are sent `text()` all the same."""

    def text(self) -> str:
        """Return the instruction with the material in its place."""
        return self.instruction.replace("{conversation}", "\n".join(self.material))


class ModelError(Exception):
    """A model or an embedder gave no answer. The text says why: rejected, timed out, empty, cut, over its budget."""


class StrategyTypeError(TypeError):
    """A strategy gave the harness a value of the wrong type. The text is a sentence; the strategy has no result."""


class Unsupported(UserError):
    """A strategy cannot be replayed on this recording. The text says why; the conversation has no result under it."""


class SystemOverBudget(UserError):
    """The system messages alone are over the strategy's budget, so no request can be made at this step."""

    def __init__(self, tokens: int, budget: int, what: str = "the system messages") -> None:
        super().__init__(f"{what} alone take {tokens} tokens, over the budget of {budget}: give a larger one")


def describe_type(value: object) -> str:
    """Return the type of a value with its article, for an error message: `None`, `a list`, `an int`."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def require_context(value: object, by: str = "the strategy") -> Context:
    """Return what a view returned. Raises StrategyTypeError if it is no Context."""
    if not isinstance(value, Context):
        raise StrategyTypeError(
            f"{by} returned {describe_type(value)}, a Context is wanted: context.sending(messages) makes one"
        )
    return value


class StrategyContext(Protocol):
    """All that a strategy may use of the outside. Token counts are exact in the run's encoding.

    Sums over messages take time in the number of spans that the messages are made of, not in their length.
    """

    @property
    def conversation(self) -> str:
        """Id of the conversation."""

    @property
    def now(self) -> float | None:
        """Recorded time of this model call, in seconds since 1970; None if the recording has no times."""

    def record(self, event: Event) -> None:
        """Report an action of the strategy at this step."""

    def complete(self, prompt: Prompt) -> str:
        """Return a model's reply, never empty, cut at its limit or a refusal. Raises ModelError.

        Its tokens are charged to the strategy.
        """

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        """Return unit vectors, one row per text, of documents or (`query`) of questions. Raises ModelError."""

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        """Register `answer(arguments as JSON text)`, which gives the result when a model calls `tool`."""

    def facts(self, message: Message) -> tuple[Fact, ...] | None:
        """Return the facts that the recording states for a message; None if it states facts for no message at all."""

    def compactions(self) -> tuple[Compaction, ...]:
        """Return the compactions that the recorded agent had made before this model call, oldest first."""

    def edits(self) -> tuple[ContextEdit, ...]:
        """Return the edits that the provider made to the recorded prompt of this model call.

        A question that is asked in between has those of the call before it.
        """

    def text_tokens(self, text: str) -> int:
        """Return the tokens of a text alone."""

    def tokens(self, message: Message) -> int:
        """Return the tokens of one message in the chat format."""

    def total(self, messages: Messages) -> int:
        """Return the tokens of all the messages together."""

    def schemas(self, tools: tuple[Tool, ...]) -> int:
        """Return the tokens of the schemas of the tools."""

    def fit(self, messages: Messages, budget: int) -> int:
        """Return the smallest start such that messages[start:] without system messages take at most `budget` tokens."""

    def systems(self, messages: Messages) -> Messages:
        """Return the system messages among the messages."""

    def opening(self, messages: Messages, start: int) -> int | None:
        """Return the place of the user message that opened the turn of messages[start], if it is before `start`."""

    def whole(self, messages: Messages) -> Messages:
        """Return the messages without the tool results whose call is not among them."""


class Strategy(Protocol):
    """A way to turn a history into what the model is sent."""

    def start(self, services: StrategyContext) -> View:
        """Open one conversation, and return the function that is called with the history before each model call."""


class StoredSummary(NamedTuple):
    """A summary in long-term memory."""

    source: str
    """Id of the newest message that it covers."""
    text: str


class Grown(dict[Any, Any]):
    """A dictionary that only grows: a checkpoint is taken by its size (`harness.probes.checkpoint`)."""

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that takes out the entries that came since, however often it is called."""
        size = len(self)

        def restore() -> None:
            while len(self) > size:
                self.popitem()

        return restore


LongTermMemory = list[StoredSummary]
"""Long-term memory that the stages of a chain share in one conversation: summaries, oldest first.

A stage with the class variable `shares_memory` is opened by `start(services, memory)`.
"""


def is_copyable(strategy: Strategy) -> bool:
    """Return whether the strategy promises that what `start` returned has no state but in plain objects.

    It is put back into its state after each probe (`harness.probes.checkpoint`), so that probes leave no trace. Without
    the promise each probe replays the conversation.
    """
    return bool(getattr(strategy, "copyable", False))


def budget_of(strategy: Strategy) -> int | None:
    """Return the tokens that the strategy promises its messages never exceed; None if it promises nothing.

    Raises StrategyTypeError where `budget` is no number of tokens, and whatever a property raises.
    """
    if inspect.getattr_static(strategy, "budget", None) is None:
        return None
    budget: object = strategy.budget  # type: ignore[attr-defined]
    if budget is None:
        return None
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 <= budget < 2**63:
        raise StrategyTypeError(f"the strategy's budget is {budget!r}, a whole number of tokens (or None) is wanted")
    return budget


@cache
def data(name: str) -> dict[str, Any]:
    """Return what a file of the folder `data` holds."""
    return tomllib.loads((files(__package__) / "data" / f"{name}.toml").read_text(encoding="utf-8"))


def texts(name: str) -> dict[Language, str]:
    """Return a prompt or label of `data/texts.toml` by language. Raises KeyError for an unknown name."""
    by_language: dict[Language, str] = data("texts")[name]
    return by_language
