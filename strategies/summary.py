"""S2, `summary` and `session_summary`: a summary of what is old, then the newest messages as they are.

`summary` is design document 003 §3.3 and §5 (multi-level: §10), `session_summary` is 000 §2.3 and §3.2. They differ in
when they summarise and what they keep; both send the system messages, the summary as one more, the kept messages.

What both do where the documents are silent: a tool call and its results stay or go together, so more is kept rather
than less. If the model fails, nothing is replaced, the failure is recorded, and it is asked again at the next call. If
a stage before this one takes away messages that the summary stands for, it is begun anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..metrics.language import Language
from ..metrics.models import window_of
from ..metrics.tokens import FRAME, ROLE
from .base import Context, StrategyContext, View
from .parts.rolling_summary import Rolling
from .parts.summarize import RunningSummary, Summariser
from .parts.units import at_least, one_limit

PROMPTS: dict[Language, str] = {
    "zh": """请对以下对话进行摘要，保留关键信息：

1. 用户的主要意图和需求
2. 重要的决策和结论
3. 待办事项或后续步骤
4. 关键的数据或事实

对话内容：
{conversation}

请用简洁的中文输出摘要（最多 {limit} 字）：""",
    "en": """Summarise the following conversation and keep what matters:

1. What the user mainly wants and needs
2. Important decisions and conclusions
3. Open tasks and next steps
4. Key figures and facts

Conversation:
{conversation}

Write a concise summary in English (at most {limit} tokens):""",
}
"""000 §3.2; 003 has no prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rolled:
    """What both have: how summaries are written, and that the user message of a turn begun before stays."""

    max_summary_tokens: int = 500
    max_input_tokens: int | None = None
    temperature: float = 0.3
    levels: int = 1
    fan_in: int = 4
    language: Language = "zh"
    summariser: str = ""
    user_first: bool = True

    def _rolling(self, desk: StrategyContext, name: str) -> Rolling:
        return Rolling(desk, RunningSummary(desk, self._summariser(name), self.levels, self.fan_in), self.user_first)

    def _summariser(self, name: str) -> Summariser:
        """Raises ValueError for parameters that are none."""
        return Summariser(
            name,
            PROMPTS[self.language],
            self.language,
            self.max_summary_tokens,
            self.max_input_tokens,
            self.temperature,
            self.summariser,
        )


@dataclass(frozen=True, slots=True)
class Summary(_Rolled):
    """The oldest messages are summarised, the newest `threshold` are kept; later ones are merged into the summary.

    It summarises when at least `every` messages are over the `threshold` (003's example: 25 messages → the first 5 are
    summarised, 20 kept; 5 more → the next 5 are merged in). With `every=1`, the document's letter, that is every call
    of a long conversation, and each rewrites the start of the context.

    With `max_tokens` (or `model`, for that model's context window) it also summarises when what would be sent is over
    `trigger` of it; then only the newest messages that take, with the system's, at most `keep` of it are kept. The
    document does not say how many; more would mean to summarise again at once. What is sent then never exceeds
    `max_tokens`: if what is not summarised is over it (the model failed, or the newest messages are long), OverBudget is
    recorded and the newest that fit are sent, as in a window. If not one fits beside the summary, the summary is left
    out of that call; if one does not fit alone, it is. System messages alone may be over.

    `levels` and `fan_in`: see `summarising.Running`. `max_input_tokens` limits what the model is shown of what it
    summarises (None = all; LangChain's default is 4000): what it was not shown is lost. `summariser` names a model
    other than the run's.

    Where what is kept goes on with a turn, the user message that opened it is sent as well, if it fits: providers
    refuse requests without one. `user_first=False` is the document's letter, exactly the newest `threshold`.
    """

    threshold: int = 20
    every: int = 1
    max_tokens: int | None = None
    model: str | None = None
    trigger: float = 0.8
    keep: float = 0.5

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "003 §3.3, §5 and §10"
    fails: ClassVar[str] = "a detail matters that the summary left out: each round of summarising loses some more"

    def __post_init__(self) -> None:
        one_limit(self.max_tokens, self.model)
        at_least(1, threshold=self.threshold, every=self.every, max_tokens=self.max_tokens)
        at_least(1, levels=self.levels, fan_in=self.fan_in)
        self._summariser("summary")
        at_least(0, at_most=1, trigger=self.trigger)
        if not 0 < self.keep < self.trigger:
            raise ValueError(f"keep must be above 0 and below trigger, {self.trigger}, not {self.keep}")
        budget, written = self.budget, self.levels * self.max_summary_tokens
        if budget is not None and written > (self.trigger - self.keep) * budget:
            raise ValueError(
                f"levels * max_summary_tokens, {written}, do not fit a budget of {budget}: "
                f"summaries may take {(self.trigger - self.keep) * budget:.0f} of it, trigger - keep"
            )

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent never exceed, if there is a limit."""
        return window_of(self.model) if self.model is not None else self.max_tokens

    def start(self, desk: StrategyContext) -> View:
        rolling = self._rolling(desk, "summary")
        budget = self.budget

        def view(context: Context) -> Context:
            rolling.read(context.messages)
            if rolling.summarise(max(self._over_threshold(rolling), self._over_budget(rolling, desk, budget))):
                rolling.summarise(self._over_budget(rolling, desk, budget))  # it may be longer than what it replaced
            return rolling.sending(context, budget)

        return view

    def _over_threshold(self, rolling: Rolling) -> int:
        """How many messages are to be summarised for their number."""
        over = len(rolling.kept) - self.threshold
        return rolling.upto(over) if over >= self.every else 0

    def _over_budget(self, rolling: Rolling, desk: StrategyContext, budget: int | None) -> int:
        """How many messages are to be summarised for their tokens."""
        if budget is None or rolling.tokens <= self.trigger * budget:
            return 0
        room = int(self.keep * budget) - rolling.system_tokens
        return rolling.beyond(desk.fit(rolling.kept, room) if room > 0 else len(rolling.kept))


@dataclass(frozen=True, slots=True)
class SessionSummary(_Rolled):
    """Once there are more than `token_threshold` tokens, everything but the last `preserve_recent` messages.

    A message costs its tokens and `overhead`; a summary counts as one, so the next time is when it and what was said
    since are over the threshold again. `user_first` is as in `summary`. Promises no budget: the last messages are sent
    however long they are.

    The document may store the summary in long-term memory as well (`session_summary`, importance 7.0). A chain cannot:
    stages share no memory, and `layered` makes memories of recorded messages, never of what another stage wrote.
    """

    token_threshold: int = 8000
    preserve_recent: int = 4
    overhead: int = 4

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "000 §2.3, §3.2"
    fails: ClassVar[str] = "what was said more than four messages ago is asked for word by word"

    def __post_init__(self) -> None:
        at_least(1, token_threshold=self.token_threshold, preserve_recent=self.preserve_recent)
        at_least(1, levels=self.levels, fan_in=self.fan_in)
        self._summariser("session_summary")

    def start(self, desk: StrategyContext) -> View:
        rolling = self._rolling(desk, "session_summary")
        overhead = self.overhead - FRAME - ROLE  # beyond what the chat format costs, which is 4 as well

        def view(context: Context) -> Context:
            rolling.read(context.messages)
            counted = rolling.running.messages + rolling.kept
            over = len(rolling.kept) - self.preserve_recent
            if over > 0 and desk.total(counted) + overhead * len(counted) > self.token_threshold:
                rolling.summarise(rolling.upto(over))
            return rolling.sending(context, None)

        return view
