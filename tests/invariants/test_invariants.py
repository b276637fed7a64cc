"""Invariants that every strategy keeps, ours and any that is plugged in, on any conversation."""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given
from msgspec.structs import replace

from ctxbench.harness.invariants import Replayed, check, conversations, steps
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.base import StrategyContext, View
from ctxbench.strategies.chain import Chain, parse, strategies
from tests.builders import talk
from tests.examples import examples
from tests.invariants.broken_strategies import BREAKING, Breaking

SPECS = (
    "none",
    "recorded",
    "last_turn",
    "window(max_tokens=60)",
    "window(max_tokens=60, reserve=0)",
    "window(messages=3)",
    "window(messages=6, max_tokens=90)",
    "window(messages=5, user_first=False)",
    "window(model='gpt-4')",
    "window(messages=9) | window(max_tokens=60)",
    "last_turn | window(messages=2)",
    "summary(threshold=5, max_tokens=150, max_summary_tokens=40)",
    "summary(threshold=4, every=2, levels=2, fan_in=2, language='en')",
    "session_summary(token_threshold=60, preserve_recent=3, max_summary_tokens=20)",
    "smart(window=150, system=10, memory=0.1, max_summary_tokens=15, first_turns=1, last_messages=2)",
    "retrieval(limit=3)",
    "retrieval(max_tokens=120, recent=2)",
    "retrieval(recent=1, slack=2, place='end')",
    "retrieval(recent=2) | retrieval(recent=1)",
    "layered",
    "layered(max_tokens=150, recent=2, ttl_hours=0)",
    "facts(max_tokens=60)",
    "focus(limit=160, system=20, functions=0)",
    "focus(limit=160, system=0, functions=10, truncation='tail_cutoff')",
    "focus(limit=160, system=0, functions=0, truncation='dynamic_summary', max_summary_tokens=30, keep=0.6)",
    "focus(limit=160, system=0, functions=0, truncation='conversation_merge', run=30, ratio=0.6, language='en')",
    "tiered(limit=160, working=60, archive=80, rag=60, recall=50, k=2, archive_policy='fifo', rerank=3, collect=True)",
    "tiered(tiers=2, limit=160, working=60, recall=50)",
    "tiered(tiers=3, limit=160, working=60, archive=80, recall=50, truncation='importance')",
    "tiered(limit=160, working=60, archive=80, recall=50, truncation='importance', policy='lru_k_document', tune=True)",
    "tiered(limit=300, recall=60, truncation='conversation_merge', retrievers=('graph', 'vector'), preload=True)",
    "window(messages=6) | tiered(limit=160, working=60, archive=80, recall=50)",
    "facts(extractor='offline', place='end')",
    "facts(max_tokens=60) | facts(max_tokens=60)",
    "window(messages=6) | retrieval(recent=1)",
    "summary(threshold=6) | summary(threshold=2)",
    "cache_marks(min_tokens=5)",
    "window(messages=9) | summary(threshold=4)",
    "evidence_only(evidence=('m1', 'm4'))",
    "archive(threshold=20)",
    "anthropic.clear_thinking(keep=1)",
    "anthropic.clear_thinking(keep=1, turn='answer')",
    "anthropic.clear_thinking(model='claude-sonnet-4-5')",
    "anthropic.clear_tool_uses(trigger=30, keep=1)",
    "anthropic.clear_tool_uses(trigger=2, trigger_unit='tool_uses', keep=0, clear_tool_inputs=True, sticky=False)",
    "anthropic.compact(trigger=50000, max_summary_tokens=20)",
    "openai.truncation_auto(max_tokens=90)",
    "openai.truncation_auto(max_tokens=90, drop='turns')",
    "gemini.context_window_compression(window=100)",
    "gemini.context_window_compression(window=100, count_system=False) | window(messages=3)",
    "archive(threshold=20, trigger='hybrid', similarity=-1, limit=2) | window(max_tokens=90)",
    "archive(threshold=1, fresh=False, trigger='keyword', keywords=('no',), load_tokens=60, language='en')",
    "window(messages=7) | archive(threshold=20, trigger='semantic', similarity=-1, limit=2)",
    "anthropic.compact_on_demand(limit=60, max_summary_tokens=20)",
    "anthropic.compact_on_demand(limit=60, background=2, max_summary_tokens=20)",
    "anthropic.compact_on_demand(limit=60, keep_turns=1, max_summary_tokens=20)",
    "anthropic.compaction_control(threshold=60, max_summary_tokens=20)",
    "openai.compact(threshold=60, max_summary_tokens=20)",
    "openai.compact(items=3, mode='stream', max_summary_tokens=20)",
    "openai.realtime_truncation(post_instructions=60)",
    "claude_code(window=33100, clear_trigger=40, keep=1, max_summary_tokens=20)",
    "window(messages=9) | claude_code(window=33100, microcompact='never', max_summary_tokens=20)",
    "codex(window=90, keep_users=12, max_summary_tokens=20)",
    "codex(window=90, keep_users=12, max_summary_tokens=20) | codex(window=60, max_summary_tokens=9)",
    "goose(window=90, max_summary_tokens=20)",
    "roo(window=120, max_tokens=20, max_summary_tokens=20)",
    "roo(window=120, max_tokens=20, condense=False)",
    "openhands(max_size=12, keep_first=2, max_summary_tokens=20)",
    "openhands(max_size=40, keep_first=1, max_tokens=90, window=120, max_summary_tokens=20)",
    "retrieval(recent=4) | openhands(max_size=8, keep_first=1, max_summary_tokens=20)",
    "openhands.masking(window=2)",
    "opencode(input_limit=20090, prune=True, max_summary_tokens=20)",
    "opencode(input_limit=20090, tail_turns=1, max_summary_tokens=20)",
    "gemini_cli(limit=120, max_summary_tokens=20)",
    "facts(max_tokens=60) | gemini_cli(limit=120, verify=False, max_summary_tokens=200)",
    "cline(input_limit=90, keep_recent=40, max_summary_tokens=20)",
    "cline.old(window=90, read_tools=('tool',))",
    "pi(window=120, reserve=30, keep_recent=40, max_summary_tokens=20)",
    "aider(window=1, max_summary_tokens=20)",
    "archive(threshold=20) | aider(window=1, max_summary_tokens=20) | swe_agent(n=1)",
    "swe_agent(n=2)",
    "swe_agent(n=2, polling=3)",
)
every = pytest.mark.parametrize("spec", SPECS)


@pytest.fixture(scope="module")
def traps() -> tuple[Conversation, ...]:
    """The conversations that are made to break strategies, with texts of at most 40,000 characters."""

    def shortened(conversation: Conversation) -> Conversation:
        return replace(conversation, messages=tuple(replace(m, text=m.text[:40_000]) for m in conversation.messages))

    return tuple(map(shortened, scenario("traps")))


def test_every_strategy_is_put_through_the_invariants() -> None:
    """No strategy of ours is missing here. Those of other libraries need not keep the invariants."""
    ours = {name for name, kind in strategies().items() if not hasattr(kind, "library")}
    assert {spec.split("(")[0].strip() for text in SPECS for spec in text.split("|")} >= ours


@every
@examples(24, ignored=[HealthCheck.too_slow])
@given(conversation=conversations())
def test_any_conversation(spec: str, conversation: Conversation) -> None:
    """Every strategy keeps every invariant on any conversation."""
    check(parse(spec), conversation)


@every
def test_traps(spec: str, traps: tuple[Conversation, ...]) -> None:
    """Every strategy keeps every invariant on the conversations that are made to break them."""
    for conversation in traps:
        check(parse(spec), conversation)


@given(conversation=conversations())
def test_a_chain_is_its_stages(conversation: Conversation) -> None:
    """A chain sends what its stages send one after the other."""
    from ctxbench.harness.invariants import COUNTER
    from ctxbench.harness.replay import ConversationIndex, RecordedContext
    from ctxbench.scenarios.view import Messages
    from ctxbench.strategies.base import Context

    first, second = parse("window(messages=9)"), parse("window(max_tokens=60)")
    services = RecordedContext(ConversationIndex(conversation, COUNTER))
    one, other = first.start(services), second.start(services)
    for step in steps(Chain((first, second)), conversation):
        assert step.context == other(one(Context(Messages.prefix(conversation.messages, step.at))))


def test_a_note_is_sent_once() -> None:
    """`facts | facts`: the second stage leaves out the message that is there already."""
    conversation = talk(("system", "be brief"), ("user", "I live in Lyon since 2019."), ("assistant", "noted"))
    once, twice = (steps(parse(text), conversation)[-1] for text in ("facts", "facts | facts"))
    assert [message.role for message in once.context.messages] == ["system", "system", "user"]
    assert twice.context == once.context
    assert twice.events == once.events


@dataclass(frozen=True)
class Noting:
    """Adds a message, always under the same id."""

    text: str

    def start(self, services: StrategyContext) -> View:
        return lambda context: context.sending([*context.messages, Message("noting", "system", self.text)])


def test_stages_of_one_kind_are_told_apart() -> None:
    """What a repeated stage writes under an id that is taken gets a number; all of it is sent."""
    last = steps(Chain((Noting("a"), Noting("b"), Noting("c"))), talk(("user", "hi"), ("assistant", "yes")))[-1]
    assert [(each.id, each.text) for each in last.context.messages[1:]] == [
        ("noting", "a"),
        ("noting#2", "b"),
        ("noting#3", "c"),
    ]


@pytest.mark.parametrize("broken", BREAKING, ids=lambda broken: broken.invariant.__name__)
def test_the_invariants_can_fail(broken: Breaking) -> None:
    """Each invariant refuses a strategy that breaks it, and says what was wrong at which message."""
    with pytest.raises(AssertionError, match=broken.says):
        broken.invariant(Replayed(broken.strategy, broken.conversation))
