"""The requests of the recorded agent itself: its own compactions, and its provider's edits of its prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ctxbench.scenarios.model import RECORDED, Compaction, Message, compacted_start, first_kept
from ctxbench.scenarios.view import Messages

from .base import Context, StrategyContext, StrategyTypeError, Unsupported, View
from .events import Called, Cleared, Dropped, Summarised

CLEARED = "[cleared]"
"""Text that a cleared tool result is sent as. The provider's own words are not published."""
_CLEARS_RESULTS = "clear_tool_uses"


@dataclass(frozen=True, slots=True)
class RecordedAgent:
    """The recorded agent's own context: its compactions and its provider's edits. Without any it equals `none`.

    From a compaction on, the system messages, its summary and the messages that it kept are sent. Where the provider
    cleared the results of n tool uses in a call, the oldest n are sent as a placeholder in that call. Tool results
    whose call was summarised go with it. The summary is charged by its recorded usage; without one it is estimated:
    the messages that it replaced are read, and the summary is written.

    What the recording does not say is not made up: a conversation with a summary that is encrypted or not recorded,
    and one whose edits do not say what they cleared, has no result. It must be the first stage of a chain.
    """

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "the recording"
    fails: ClassVar[str] = "the summary left out what the agent needs later, or the recording does not have its text"

    def start(self, services: StrategyContext) -> View:
        return _RecordedView(services)


class _RecordedView:
    """The view of one conversation: what its compactions so far have left of it."""

    def __init__(self, services: StrategyContext) -> None:
        self._services = services
        # How many compactions were seen, the place of the first message kept by the last one, and what precedes it.
        self._seen, self._first, self._start = 0, 0, Messages()
        # Placeholders of the results that were cleared in some call, by their ids.
        self._placeholders: dict[str, Message] = {}

    def __call__(self, context: Context) -> Context:
        history = context.messages
        for compaction in self._services.compactions()[self._seen :]:
            self._compact(compaction, history)
        sent = self._start + history[self._first :] if self._seen else history
        sent = self._without_results(self._services.whole(sent) if self._seen else sent)
        return context if sent is history else context.sending(sent)

    def _compact(self, compaction: Compaction, history: Messages) -> None:
        """Take a compaction into account, and report it. Raises Unsupported where the recording lacks its summary."""
        if compaction.hidden:
            raise Unsupported(f"the summary of a compaction is not in the recording: {compaction.hidden}")
        services, place = self._services, {message.id: at for at, message in enumerate(history)}
        if compaction.after not in place or compaction.first_kept not in (None, *place):
            raise StrategyTypeError("`recorded` replays the whole recording: it must be the first stage of a chain")
        first = first_kept(compaction, place)
        # What the summary was made of: the earlier summary, and what
        # came after it up to the first message that is kept.
        before = self._start + history[self._first : first]
        replaced = tuple(message.id for message in history[self._first : first] if message.role != "system")
        self._start = Messages.of(compacted_start(compaction, history[:first]))
        self._seen, self._first = self._seen + 1, first
        if not compaction.summary:
            services.record(Dropped(replaced))
            return
        services.record(self._charge(compaction, before))
        services.record(Summarised(replaced, compaction.summary, by=RECORDED))

    def _charge(self, compaction: Compaction, before: Messages) -> Called:
        """Return the model call that wrote a summary of the messages `before`, as recorded or as an estimate."""
        call, services = compaction.call, self._services
        model, used = ("", None) if call is None else (call.model, call.usage)
        if used is None or used.input is None or used.output is None:
            tokens = services.total(before), services.text_tokens(compaction.summary)
            return Called("summariser", model, *tokens, basis="estimated")
        read = used.cache_read or 0
        return Called("summariser", model, used.input, used.output, used.cost, basis="recorded", cache_read=read)

    def _without_results(self, messages: Messages) -> Messages:
        """Return the messages with placeholders for the tool results that the provider cleared in this call."""
        edits = [edit for edit in self._services.edits() if edit.kind.startswith(_CLEARS_RESULTS)]
        if not edits:
            return messages
        if any(edit.tool_uses is None for edit in edits):
            raise Unsupported("the provider cleared tool results, and the recording does not say how many")
        count = sum(edit.tool_uses or 0 for edit in edits)
        # Each edit says how many uses it cleared in this call, not how
        # many more than before: the oldest `count` are all of them.
        results = [message for message in messages if message.role == "tool"][:count]
        new = [message for message in results if message.id not in self._placeholders]
        if new:
            placeholders = [replace(message, text=CLEARED, media=()) for message in new]
            saved = sum(map(self._services.tokens, new)) - sum(map(self._services.tokens, placeholders))
            self._placeholders.update((message.id, message) for message in placeholders)
            self._services.record(Cleared(tuple(message.id for message in new), saved))
        cleared = {message.id: self._placeholders[message.id] for message in results}
        return Messages.of(tuple(cleared.get(message.id, message) for message in messages))
