"""Anthropic's context editing and compaction, from its documentation (editing, 2026-08-21 and 2026-09; compaction by
threshold and on demand, 2026-09-22) and its Python SDK (0.121.0, 2026-08-07).

Tokens are those of the messages and the tools in the run's encoding. Where the documentation is silent, each reading
is a value of a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from ctxbench.metrics.thinking import has_thinking, opens_turn, thinking_rule, thinking_tokens, without_thinking
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt
from ctxbench.scenarios.view import Messages

from ..base import Context, StrategyContext, Unsupported, View
from ..events import Cleared, ClearedThinking, Dropped
from ..parts.compaction import Client, ClientHistory, CompactingClient
from ..parts.language import LanguageSetting
from ..parts.summarize import Summariser
from ..parts.units import SplicedHistory
from ..summary import RollingSummary


@dataclass(frozen=True, slots=True)
class ClearToolUses(Client, name="anthropic.clear_tool_uses"):
    """Old tool results become a placeholder once the prompt exceeds a threshold (`clear_tool_uses_20250919`).

    Beyond `trigger` input tokens (or tool uses, by `trigger_unit`) all results but those of the newest `keep` tool
    uses are cleared; calls stay. If that saves fewer than `clear_at_least` tokens, nothing is. Results of
    `exclude_tools` are never cleared. `clear_tool_inputs` also replaces the arguments of the calls by `{}`: of all of
    them, or of the tools that it names.

    Undocumented, so parameters. `sticky`: what was cleared stays so, and `trigger` and `clear_at_least` are judged on
    the edited prompt; False computes each edit anew from the whole history, so that every call beyond the trigger
    clears one more result and breaks the cache there. `keep_counts`: whether `keep` counts all tool uses, or only those
    that may be cleared. `placeholder`: its wording is not published; this is that of LangChain's copy.
    """

    trigger: NonNegativeInt = 100_000
    keep: NonNegativeInt = 3
    clear_at_least: NonNegativeInt = 0
    exclude_tools: tuple[str, ...] = ()
    clear_tool_inputs: bool | tuple[str, ...] = False
    trigger_unit: Literal["input_tokens", "tool_uses"] = "input_tokens"
    sticky: bool = True
    keep_counts: Literal["all", "clearable"] = "all"
    placeholder: str = "[cleared]"

    def start(self, services: StrategyContext) -> View:
        edited = SplicedHistory()
        # Place of the message of each call, with the name of its tool, and the results in order.
        calls: dict[str, tuple[int, str]] = {}
        results: list[tuple[int, str]] = []
        # Tokens that each cleared result saves, by its place.
        cleared: dict[int, int] = {}

        def clear(history: Messages, uses: list[tuple[int, str]]) -> None:
            """Replace the results and arguments, if that saves enough."""
            saved: dict[int, int] = {}
            substitutes: dict[int, Message] = {}

            def substitute(at: int, **fields: Any) -> int:
                # One message may hold several calls that are cleared one
                # after the other: each edit goes on from the one before.
                earlier = substitutes.get(at) or edited.at(at)
                substitutes[at] = replace(earlier, **fields)
                return services.tokens(earlier) - services.tokens(substitutes[at])

            for at, name in uses:
                saved[at] = substitute(at, text=self.placeholder)
                place, tool = calls[name]
                inputs = self.clear_tool_inputs
                if inputs if isinstance(inputs, bool) else tool in inputs:
                    asking = substitutes.get(place) or edited.at(place)
                    asked = (replace(call, arguments="{}") if call.id == name else call for call in asking.calls)
                    saved[at] += substitute(place, calls=tuple(asked))
            tokens = sum(saved.values())
            # Without the sticky reading, the edit is made anew each time: earlier clearing counts.
            if tokens + (0 if self.sticky else sum(cleared.values())) < self.clear_at_least:
                return
            for at in sorted(substitutes):
                edited.put(at, substitutes[at])
            cleared.update(saved)
            services.record(Cleared(tuple(history[at].id for at, _ in uses), tokens))

        def view(context: Context) -> Context:
            nonlocal calls, results, cleared
            history, before = context.messages, len(edited.history)
            same = edited.read(history)
            if same < before:
                results = [(at, call) for at, call in results if at < same]
                calls = {call: place for call, place in calls.items() if place[0] < same}
                cleared = {at: saved for at, saved in cleared.items() if at < same}
            for at, message in enumerate(history[same:], same):
                calls.update((call.id, (at, call.name)) for call in message.calls)
                if message.answers in calls:
                    results.append((at, message.answers))
            if self.trigger_unit == "tool_uses":
                exceeds = len(results) - (len(cleared) if self.sticky else 0) > self.trigger
            else:
                sent = edited.messages() if self.sticky else history
                exceeds = services.total(sent) + services.schemas(context.tools) > self.trigger
            if exceeds:
                # Each result is with its call, whose tool may be excluded.
                clearable = [use for use in results if calls[use[1]][1] not in self.exclude_tools]
                uses = clearable if self.keep_counts == "clearable" else results
                old = set(uses[: max(0, len(uses) - self.keep)])
                if new := [use for use in clearable if use in old and use[0] not in cleared]:
                    clear(history, new)
            return context.sending(edited.messages()) if cleared else context

        return view


@dataclass(frozen=True, slots=True)
class ClearThinking(Client, name="anthropic.clear_thinking"):
    """Reasoning of older turns is taken out of the prompt (`clear_thinking_20251015`).

    The newest `keep` turns with reasoning keep theirs, with "all" every turn does. "default" is what the API does
    unasked, by the model of the newest answer, or by `model`: Opus from 4.5 on, Sonnet from 4.6 on, Fable and Mythos
    keep all; older ones lose the reasoning of the turns before the user's last message.

    A turn is the documentation's assistant turn with its tool calls; whether each answer in it is one is not said.
    `turn` has both readings: `loop`, all answers up to the user's next message, and `answer`.

    Contexts count visible text alone, so their tokens stay. `ctxbench bill --thinking` has what it saves and costs.
    """

    keep: PositiveInt | Literal["all", "default"] = "default"
    turn: Literal["loop", "answer"] = "loop"
    model: str = ""

    def start(self, services: StrategyContext) -> View:
        edited, cleared = SplicedHistory(), set[int]()
        # Places of the answers with reasoning, by turn. The last turn is open.
        turns: list[list[int]] = [[]]
        # The default of a model is of whole turns.
        loops = self.turn == "loop" or self.keep == "default"

        def view(context: Context) -> Context:
            nonlocal turns, cleared
            history, known = context.messages, len(edited.history)
            same = edited.read(history)
            if same < known:
                cleared = {at for at in cleared if at < same}
                same, turns = 0, [[]]
            for at, message in enumerate(history[same:], same):
                before = (history[other] for other in range(at - 1, -1, -1))
                if opens_turn(message, before) if loops else message.role == "assistant":
                    turns.append([])
                if has_thinking(message):
                    turns[-1].append(at)
            older = [[at for at in turn if at not in cleared] for turn in self._older(turns, history)]
            if new := [at for turn in older for at in turn]:
                counts = [thinking_tokens(history[at], services.text_tokens) for at in new]
                known_counts = [count for count in counts if not isinstance(count, Missing)]
                tokens = sum(known_counts) if len(known_counts) == len(counts) else None
                for at in new:
                    edited.put(at, without_thinking(history[at]))
                cleared.update(new)
                answers = tuple(history[at].id for at in new)
                services.record(ClearedThinking(answers, sum(map(bool, older)), tokens))
            return context.sending(edited.messages()) if cleared else context

        return view

    def _older(self, turns: list[list[int]], history: Messages) -> list[list[int]]:
        """Return the turns to clear. Raises Unsupported for the default of a model that has none."""
        if self.keep == "all":
            return []
        if self.keep != "default":
            thoughtful = [turn for turn in turns if turn]
            return thoughtful[: max(0, len(thoughtful) - self.keep)]
        asked = (m.call.model for m in reversed(history) if m.call is not None and m.call.model)
        model = self.model or next(asked, "")
        if not model:  # before its first answer nothing can be cleared
            return []
        rule = thinking_rule(model) if "claude" in model else None
        if rule is None:
            raise Unsupported(f"no default of clear_thinking is documented for {model}: give keep or a Claude model")
        return [] if rule.keeps == "all" else turns[:-1]


@dataclass(frozen=True, slots=True)
class ThresholdCompaction(Client, name="anthropic.compact"):
    """Everything becomes a summary once the prompt reaches a threshold (`compact_20260112`).

    At `trigger` input tokens (at least 50,000, as the API demands) a model summarises the earlier summary and what
    came since; system messages and tools stay. Later requests begin at the summary. Its prompt varies by model and is
    not published whole: the prompt is that of `summary`.

    Whether the message being answered stays beside the summary is not documented. With `keep_newest` it does (a tool
    result with its call), and the user message that opened the turn too. Without, the context of that call is the
    summary alone, which shows as empty here, since summaries are system messages in ctxbench.

    A client may pause after the compaction (`pause_after_compaction`) and send the last `pause_keep` messages behind
    the summary, which covers them too. From a `budget` of tokens on, counted as `trigger` for each compaction, it asks
    the model to wrap up in a message behind the summary. Recorded answers do not follow it.
    """

    trigger: Annotated[int, msgspec.Meta(ge=50_000)] = 150_000
    keep_newest: bool = True
    pause_keep: NonNegativeInt = 0
    budget: PositiveInt | None = None
    max_summary_tokens: PositiveInt = 3500
    language: LanguageSetting = "auto"
    summariser: str = ""

    def start(self, services: StrategyContext) -> View:
        rolling = RollingSummary(services, Summariser.of(self, "compact", kind="extends"), self.keep_newest)
        request = Message("anthropic.compact:budget", "user", self.row["budget"])
        compactions = 0

        def is_spent() -> bool:
            return self.budget is not None and compactions * self.trigger >= self.budget

        def view(context: Context) -> Context:
            nonlocal compactions
            rolling.read(context.messages)
            asked = services.tokens(request) if is_spent() else 0
            if rolling.tokens + services.schemas(context.tools) + asked >= self.trigger:
                count = len(rolling.rest)
                if self.pause_keep:
                    compactions += rolling.summarise(count, self.pause_keep)
                else:
                    compactions += rolling.summarise(rolling.beyond(count) if self.keep_newest else count)
            sent = rolling.context(context, None)
            if not is_spent():
                return sent
            # The request to wrap up stands behind the summary.
            last = rolling.summaries[-1].id
            place = next(at for at, message in enumerate(sent.messages, 1) if message.id == last)
            return context.sending(sent.messages[:place] + Messages.of((request,)) + sent.messages[place:])

        return view


@dataclass(frozen=True, slots=True)
class CompactionOnDemand(CompactingClient, name="anthropic.compact_on_demand"):
    """The client has everything summarised over a limit of its own (`compact-2026-09-04`).

    The trigger is the usage of the last response; the documentation gives no default. The newest `keep_turns` turns
    stay verbatim behind the summary. It is a message of the user here; the provider's is a signed block at the start of
    the messages.

    With `background`, the conversation goes on for so many calls while everything sent so far is summarised. Then the
    summary replaces exactly that, and what came since stays behind it.
    """

    limit: NonNegativeInt = 150_000
    keep_turns: NonNegativeInt = 0
    background: NonNegativeInt = 0

    def __post_init__(self) -> None:
        if self.background and self.keep_turns:
            raise ValueError(
                "give keep_turns or background, not both: what is summarised beside the calls is all of it"
            )

    def compact(self, history: ClientHistory) -> None:
        if self.background:
            sent, calls = history.pending
            if calls == 1:
                history.summarise(min(sent, len(history.messages)))
            if calls:
                history.pending = sent, calls - 1
            elif history.used > self.limit:
                history.pending = len(history.messages), self.background
        elif history.used > self.limit:
            stop = history.settled
            turns = [
                at for at in range(stop) if (said := history.messages[at]).role == "user" and not history.wrote(said)
            ]
            if self.keep_turns:
                stop = history.floor(turns[-self.keep_turns]) if len(turns) >= self.keep_turns else 0
            history.summarise(stop)


@dataclass(frozen=True, slots=True)
class CompactionControl(CompactingClient, name="anthropic.compaction_control"):
    """The SDK replaces everything by one user message, a summary (`compaction_control` of the tool runner).

    The trigger is the usage of the last response. It adds up all requests that the provider made for it: with
    server-side tools several, so that it may be far over the context. Those are as recorded, in the provider's tokens.
    The tool calls of that response are not run: its calls and their recorded results are neither summarised nor sent.
    The summary is asked for without system prompt and tools.
    """

    threshold: PositiveInt = 100_000

    def compact(self, history: ClientHistory) -> None:
        last, stop = history.answered - 1, history.settled
        if last < 0:
            return
        answer = history.messages[last]
        # The requests that the provider made for the answer before the last one, as recorded.
        earlier = [iteration.usage for iteration in answer.call.iterations[:-1]] if answer.call is not None else []
        if history.used + sum((usage.input or 0) + (usage.output or 0) for usage in earlier) < self.threshold:
            return
        shown = (
            Messages.of((replace(answer, calls=()),) if answer.text else ()) if answer.calls else Messages.of((answer,))
        )
        if not history.forgotten(0, last):
            return
        text = history.write(history.messages[:last] + shown)
        if text is not None:
            # From the end to the start: a replacement moves the places behind it.
            if neither := history.forgotten(last, stop, shown):  # sent nor summarised
                history.services.record(Dropped(neither))
            history.replace(last, stop, shown)
            history.replace(0, last + len(shown), history.notes(text, last + len(shown)), text)
