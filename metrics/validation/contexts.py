"""What stood in the prompts of a recorded conversation, as numbered prefixes.

Block 0 is the tools; the messages follow, or what the agent's own compaction left of them. How much the model was to
think stands before the first message, behind the system's: a change of it breaks what follows. A recording without
system messages has a system prompt that it does not show. Two of its conversations have the same one only if their
first prompts are of the same size. A message that is another than in an earlier prompt may begin alike (`alike.py`):
caches that count tokens within a message read that too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from ...scenarios.model import Call, Compaction, Conversation, Message, Tool
from ..cache.prefixes import Prefixes, SentPrefix, SharedStarts, content_blocks
from ..tokens import FRAME, ROLE, TokenCounter, text_encoder


class RecordedPrompt(NamedTuple):
    """What a stretch of a conversation's calls were asked with: each call with a start of it."""

    blocks: list[int]
    """The number of the prefix at the end of each block."""
    counts: list[int]
    """Our tokens up to there."""
    eligible: list[int]
    """Blocks at whose end a provider may place a breakpoint of its own."""
    system: int
    """The last block of the tools and system messages at the start."""
    base: int
    """The message that block 0 would be."""
    places: list[int]
    """Content blocks up to there."""
    heads: dict[str, int]
    """Blocks of the system messages that a compaction left, by their ids."""

    def block(self, after: str | None, place: dict[str, int], at: int) -> int | None:
        """The block of a message, in the prompt of the call at `at`; None if it was not in it. `after` None = tools."""
        if after is None:
            return 0
        if after in self.heads:
            return self.heads[after]
        block = place[after] - self.base
        return block if len(self.heads) < block and place[after] < at else None


@dataclass(slots=True)
class RecordedPrompts:
    """The contexts of one conversation, each made once."""

    conversation: Conversation
    prefixes: Callable[[str], Prefixes]
    """Of a model."""
    counter: Callable[[str], TokenCounter]
    """Counts for a model."""
    place: dict[str, int] = field(init=False)
    """Of each message, by its id."""
    _compactions: list[Compaction] = field(init=False)
    _firsts: dict[str, int] = field(init=False)
    _made: dict[tuple[int, str, str, tuple[Tool, ...]], RecordedPrompt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        messages = self.conversation.messages
        self.place = {message.id: at for at, message in enumerate(messages)}
        self._compactions = sorted(self.conversation.compactions, key=lambda each: self.place[each.after])
        self._firsts = {}
        for each in messages:
            if each.call is not None and each.call.usage is not None and each.call.usage.input is not None:
                self._firsts.setdefault(each.call.model, each.call.usage.input)

    def of(self, at: int, call: Call) -> RecordedPrompt:
        """What the call that answered with the message at `at` was asked with a start of."""
        stretch = sum(self.place[each.after] < at for each in self._compactions)
        tools = self.conversation.tools if call.tools is None else call.tools
        key = (stretch, call.model, call.effort, tools)
        if key not in self._made:
            self._made[key] = self._make(self._compactions[stretch - 1] if stretch else None, call, tools)
        return self._made[key]

    def _make(self, compaction: Compaction | None, call: Call, tools: tuple[Tool, ...]) -> RecordedPrompt:
        counter, messages = self.counter(call.model), self.conversation.messages
        first, head = 0, list[Message]()
        if compaction is not None:
            first = len(messages) if compaction.first_kept is None else self.place[compaction.first_kept]
            first = min(first, self.place[compaction.after] + 1)
            head = [each for each in messages[:first] if each.role == "system"]
            head.append(Message("", "user", compaction.summary))
        sent = [*head, *messages[first:]]
        system = next((at for at, each in enumerate(sent) if each.role != "system"), len(sent))
        hidden = None if system else self._firsts.get(call.model)
        said = (SentPrefix.of(each, call.effort if at == system else "") for at, each in enumerate(sent))
        counts = [counter.tools(tools), *map(counter.message, sent)]
        eligible = [system] if system else []
        for at, each in enumerate(sent[system:], system):
            ends = each.role == "tool" and (at + 1 == len(sent) or sent[at + 1].role != "tool")
            if ends or each.role == "user":
                eligible.append(at + 1)
        heads = {each.id: at for at, each in enumerate(head, 1) if each.role == "system"}
        blocks = self.prefixes(call.model).of([(tools, hidden), *said])
        places = list(accumulate([1, *map(content_blocks, sent)]))
        return RecordedPrompt(blocks, list(accumulate(counts)), eligible, system, first - 1 - len(head), places, heads)


def numbering(encoding: str) -> Prefixes:
    """Numbers for the prefixes of a model's prompts."""
    if encoding == "chars4":  # it has no tokens of which some could be shared
        return Prefixes()
    return Prefixes(SharedStarts(_said, text_encoder(encoding), FRAME + ROLE))


def _said(block: Hashable) -> tuple[str, str] | None:
    return (f"{block.role} {block.effort}", block.text) if isinstance(block, SentPrefix) else None
