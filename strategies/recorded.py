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
        # How many compactions were seen, the place of the first message kept by the last one, and what precedes it.
        seen, first, start = 0, 0, Messages()
        # Placeholders of the results that were cleared in some call, by their ids.
        placeholders: dict[str, Message] = {}

        def compact(compaction: Compaction, history: Messages) -> None:
            """Take a compaction into account, and report it. Raises Unsupported where the recording lacks its text."""
            nonlocal seen, first, start
            if compaction.hidden:
                raise Unsupported(f"the summary of a compaction is not in the recording: {compaction.hidden}")
            place = {message.id: at for at, message in enumerate(history)}
            if compaction.after not in place or compaction.first_kept not in (None, *place):
                raise StrategyTypeError("`recorded` replays the whole recording: it must be the first stage of a chain")
            # What the summary was made of: the earlier summary, and what
            # came after it up to the first message that is kept.
            kept = first_kept(compaction, place)
            before = start + history[first:kept]
            replaced = tuple(message.id for message in history[first:kept] if message.role != "system")
            start = Messages.of(compacted_start(compaction, history[:kept]))
            seen, first = seen + 1, kept
            if not compaction.summary:
                services.record(Dropped(replaced))
                return
            call = compaction.call
            model, used = ("", None) if call is None else (call.model, call.usage)
            if used is None or used.input is None or used.output is None:
                tokens = services.total(before), services.text_tokens(compaction.summary)
                services.record(Called("summariser", model, *tokens, basis="estimated"))
            else:
                usage = used.input, used.output, used.cost
                read = used.cache_read or 0
                services.record(Called("summariser", model, *usage, basis="recorded", cache_read=read))
            services.record(Summarised(replaced, compaction.summary, by=RECORDED))

        def without_results(messages: Messages) -> Messages:
            """Return the messages with placeholders for the tool results that the provider cleared in this call."""
            edits = [edit for edit in services.edits() if edit.kind.startswith(_CLEARS_RESULTS)]
            if not edits:
                return messages
            if any(edit.tool_uses is None for edit in edits):
                raise Unsupported("the provider cleared tool results, and the recording does not say how many")
            count = sum(edit.tool_uses or 0 for edit in edits)
            # Each edit says how many uses it cleared in this call, not how
            # many more than before: the oldest `count` are all of them.
            results = [message for message in messages if message.role == "tool"][:count]
            if new := [message for message in results if message.id not in placeholders]:
                cleared = [replace(message, text=CLEARED, media=()) for message in new]
                saved = sum(map(services.tokens, new)) - sum(map(services.tokens, cleared))
                placeholders.update((message.id, message) for message in cleared)
                services.record(Cleared(tuple(message.id for message in new), saved))
            sent = {message.id: placeholders[message.id] for message in results}
            return Messages.of(tuple(sent.get(message.id, message) for message in messages))

        def view(context: Context) -> Context:
            history = context.messages
            for compaction in services.compactions()[seen:]:
                compact(compaction, history)
            sent = without_results(services.whole(start + history[first:]) if seen else history)
            return context if sent is history else context.sending(sent)

        return view
