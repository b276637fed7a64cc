"""Providers' own context management: the documentation's examples and numbers worked out from its rules."""

import pytest
from msgspec.structs import replace

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Call, Conversation, Iteration, Message, ToolCall, Usage
from ctxbench.strategies.base import Unsupported
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Cleared, ClearedThinking, Dropped, Failed
from ctxbench.strategies.providers.anthropic import ClearToolUses
from ctxbench.strategies.providers.openai import OpenAICompaction
from ctxbench.strategies.providers.truncation import ContextWindowCompression
from tests.strategies.scripted_models import COUNTER, Replying, Sent, refusing, sending, summarised
from tests.strategies.sized import agent, talk_of, words

PLACEHOLDER = " a" * 6
"""With the frame of a message, 10 tokens."""


def cleared(step: Sent) -> list[int]:
    return [int(message.id[1:]) for message in step.messages if message.role == "tool" and message.text == PLACEHOLDER]


def after_results(strategy: ClearToolUses, conversation: Conversation, *results: int) -> list[Sent]:
    """What is sent after each number of results; the strategy sees every step before."""
    steps = sending(strategy, conversation, None, *range(3, len(conversation.messages) + 1, 2), twice=True)
    return [steps[at - 1] for at in results]


class TestClearToolUses:
    def test_a1_all_but_three(self) -> None:
        """A1: of 12 tool uses over 100,000 tokens, 9 are cleared and the 3 newest kept."""
        (last,) = sending(ClearToolUses(placeholder=PLACEHOLDER), agent(12, result=9_000), None, 25)
        assert cleared(last) == list(range(1, 10))

    def test_a2_the_edit_is_reported(self) -> None:
        """A2: the event has the number of cleared uses and of cleared tokens."""
        conversation = agent(11, base=1_000, result=6_260)
        (last,) = sending(ClearToolUses(trigger=30_000, placeholder=PLACEHOLDER), conversation, None, 23)
        assert last.events == (Cleared(tuple(f"r{at}" for at in range(1, 9)), 50_000),)

    def test_a3_count_tokens(self) -> None:
        """A3: with trigger 30,000 and keep 5, a prompt of 70,000 is 25,000 after an edit that saves 45,000."""
        conversation = agent(20, base=5_800, result=3_010)
        strategy = ClearToolUses(trigger=30_000, keep=5, placeholder=PLACEHOLDER)
        (last,) = sending(strategy, conversation, None, 41)
        assert sum(map(COUNTER.message, conversation.messages)) == 70_000
        assert last.tokens == 25_000
        assert last.events == (Cleared(tuple(f"r{at}" for at in range(1, 16)), 45_000),)

    @pytest.mark.parametrize(("tokens", "edits"), [(30_000, 0), (30_001, 2)])
    def test_a4_the_trigger_is_exceeded(self, tokens: int, edits: int) -> None:
        """A4: a prompt of exactly the trigger is sent as it is; one token more is edited."""
        conversation = agent(5, base=tokens - 5 * 5_200)
        (last,) = sending(ClearToolUses(trigger=30_000, placeholder=PLACEHOLDER), conversation, None, 11)
        assert len(cleared(last)) == edits

    @pytest.mark.parametrize(("counts", "gone"), [("all", [1, 3, 4]), ("clearable", [1, 3])])
    def test_a5_excluded_tools(self, counts: str, gone: list[int]) -> None:
        """A5: of E W E E W E E with W excluded, keep 3 clears three or two E, by what `keep` counts; W never."""
        strategy = parse(
            f"anthropic.clear_tool_uses(trigger=100, exclude_tools=['W'], keep_counts='{counts}', "
            f"placeholder='{PLACEHOLDER}')"
        )
        (last,) = sending(strategy, agent(7, 50, 30, 50, "EWEEWEE"), None, 15)
        assert cleared(last) == gone

    @pytest.mark.parametrize(
        ("sticky", "tokens", "upto"),
        [
            (True, [30_000, 20_230, 25_430, 20_650, 25_850, 21_070], [0, 3, 3, 5, 5, 7]),
            (False, [30_000, 20_230, 20_440, 20_650, 20_860, 21_070], [0, 3, 4, 5, 6, 7]),
        ],
    )
    def test_a6_step_by_step(self, sticky: bool, tokens: list[int], upto: list[int]) -> None:
        """A6: what is sent and cleared after 5 to 10 results, to the token, in both readings."""
        strategy = ClearToolUses(trigger=30_000, sticky=sticky, placeholder=PLACEHOLDER)
        steps = after_results(strategy, agent(10), 5, 6, 7, 8, 9, 10)
        assert [step.tokens for step in steps] == tokens
        assert [cleared(step) for step in steps] == [list(range(1, last + 1)) for last in upto]

    def test_a7_clear_at_least(self) -> None:
        """A7: with clear_at_least 12,000 the edits are at 6 and 9 results; at 8 only 9,980 could be cleared."""
        strategy = ClearToolUses(trigger=30_000, clear_at_least=12_000, placeholder=PLACEHOLDER)
        steps = after_results(strategy, agent(9), *range(1, 10))
        assert {at: event.tokens for at, step in enumerate(steps, 1) for event in step.events} == {6: 14_970, 9: 14_970}  # type: ignore[union-attr]

    def test_a8_too_little_to_clear(self) -> None:
        """A8: where 4,900 tokens could be cleared and 5,000 must be, nothing changes."""
        conversation = agent(2, base=1_000, result=4_910)
        strategy = ClearToolUses(trigger=5_000, keep=1, clear_at_least=5_000, placeholder=PLACEHOLDER)
        (last,) = sending(strategy, conversation, None, 5)
        assert (last.messages, last.events) == (list(conversation.messages), ())

    def test_inputs_are_cleared_by_tool(self) -> None:
        """The arguments of the tools named are cleared with their results; calls keep id and name."""
        (last,) = sending(
            ClearToolUses(trigger=100, keep=0, clear_tool_inputs=("E",)), agent(2, 50, 30, 50, "EW"), None, 5
        )
        calls = [call for message in last.messages for call in message.calls]
        assert [(call.id, call.name, call.arguments) for call in calls] == [
            ("call1", "E", "{}"),
            ("call2", "W", '{"path": "a.py"}'),
        ]


def thoughtful(turns: int, tokens: int = 5_000, model: str = "") -> Conversation:
    """Questions and answers u1, a1, u2 …, each answer with so many tokens of reasoning."""
    said = []
    for at in range(1, turns + 1):
        said += [
            Message(f"u{at}", "user", "and?"),
            Message(f"a{at}", "assistant", "so", thinking=words(tokens), call=Call(model)),
        ]
    return Conversation("talk", (*said, Message(f"u{turns + 1}", "user", "well?")))


class TestClearThinking:
    def test_a9_the_newest_turns_keep_theirs(self) -> None:
        """A9: of 5 assistant turns with thinking, keep 2 strips turns 1 to 3, and the event says so."""
        (last,) = sending(parse("anthropic.clear_thinking(keep=2)"), thoughtful(5), None, 11)
        assert [message.id for message in last.messages if message.thinking] == ["a4", "a5"]
        assert last.names == [message.id for message in thoughtful(5).messages]
        assert last.events == (ClearedThinking(("a1", "a2", "a3"), 3, 15_000),)

    def test_a2_the_edit_is_reported(self) -> None:
        """A2: 3 turns and 15,000 tokens are in the event, and each turn is reported once."""
        steps = sending(parse("anthropic.clear_thinking(keep=1)"), thoughtful(5), None, 9, 10, 11, twice=True)
        assert [step.events for step in steps] == [
            (ClearedThinking(("a1", "a2", "a3"), 3, 15_000),),
            (ClearedThinking(("a4",), 1, 5_000),),
            (),
        ]

    LOOP = (
        Message("u1", "user", "why?"),
        Message("a1", "assistant", thinking="I look.", calls=(ToolCall("c", "look"),), call=Call("claude-sonnet-4-5")),
        Message("r1", "tool", "that", answers="c"),
        Message("a2", "assistant", "so", thinking="I see.", call=Call("claude-sonnet-4-5")),
        Message("u2", "user", "and then?"),
    )

    @pytest.mark.parametrize(
        ("strategy", "kept"),
        [
            ("anthropic.clear_thinking", [["a1"], []]),
            ("anthropic.clear_thinking(turn='answer')", [["a1"], []]),
            ("anthropic.clear_thinking(model='claude-opus-4-5')", [["a1"], ["a1", "a2"]]),
            ("anthropic.clear_thinking(keep='all')", [["a1"], ["a1", "a2"]]),
            ("anthropic.clear_thinking(keep=1)", [["a1"], ["a1", "a2"]]),
            ("anthropic.clear_thinking(keep=1, turn='answer')", [["a1"], ["a2"]]),
        ],
    )
    def test_a10_defaults_by_model(self, strategy: str, kept: list[list[str]]) -> None:
        """A10: a user's message that is no tool result strips think1 and think2 under Sonnet 4.5; Opus 4.5 keeps both.

        With keep 1 the turn of both, or the newest answer, is the one that is kept."""
        steps = sending(parse(strategy), Conversation("talk", self.LOOP), None, 3, 5)
        assert [[message.id for message in step.messages if message.thinking] for step in steps] == kept

    def test_a_model_without_a_default(self) -> None:
        """Where no default is documented, the conversation has no result, and the error says what to give."""
        with pytest.raises(Unsupported, match=r"for gpt-5\.5: give keep or a Claude model"):
            sending(parse("anthropic.clear_thinking"), thoughtful(1, model="gpt-5.5"), None, 3)

    def test_hidden_reasoning_has_no_tokens(self) -> None:
        """Of redacted reasoning the event has no number."""
        first, answer, *rest = thoughtful(2).messages
        hidden = (first, replace(answer, thinking="", thinking_hidden=True), *rest)
        (last,) = sending(parse("anthropic.clear_thinking(keep=1)"), Conversation("talk", hidden), None, 5)
        assert last.events == (ClearedThinking(("a1",), 1, None),)


class TestThresholdCompaction:
    def test_c3_least_trigger(self) -> None:
        """C3: a trigger of 49,999 tokens is refused."""
        with pytest.raises(SpecError, match="50000"):
            parse("anthropic.compact(trigger=49999)")

    @pytest.mark.parametrize(("base", "rounds"), [(29_199, 0), (29_200, 1)])
    def test_it_fires_when_the_trigger_is_reached(self, base: int, rounds: int) -> None:
        """At the trigger everything becomes a summary but the newest call with its result, and the user's message."""
        (last,) = sending(parse("anthropic.compact(trigger=50000)"), agent(4, base=base), Replying(), 9)
        assert len(summarised([last])) == rounds
        assert last.names[-3:] == (["u", "c4", "r4"] if rounds else ["r3", "c4", "r4"])

    def test_c6_requests_go_on_from_the_summary(self) -> None:
        """C6: what was compacted is not sent again; what came after the summary is."""
        steps = sending(
            parse("anthropic.compact(trigger=50000, keep_newest=False)"), agent(6, base=29_200), None, 9, 13
        )
        assert [len(step.names) for step in steps] == [1, 5]
        assert steps[1].names[1:] == ["c5", "r5", "c6", "r6"]

    def test_c4_the_client_sends_the_last_messages_again(self) -> None:
        """C4: with a pause at 100,000 and the last 3 messages kept, the next request is the block and those three.

        The summary covers all, so those three are shown twice: in the summary's input, and verbatim."""
        model = Replying()
        strategy = parse("anthropic.compact(trigger=100000, pause_keep=3)")
        (last,) = sending(strategy, talk_of(*[20_000] * 5), model, 5)
        assert [message.id for message in model.prompts[0].about] == ["m0", "m1", "m2", "m3", "m4"]
        assert last.names[1:] == ["m2", "m3", "m4"]
        assert last.messages[0].role == "system"

    def test_c5_the_budget(self) -> None:
        """C5: with a budget of 3,000,000 and a trigger of 100,000, the model is asked to wrap up at the 30th
        compaction, and not before."""
        strategy = parse("anthropic.compact(trigger=100000, budget=3000000, keep_newest=False)")
        talk = talk_of(*[100_000] * 61)
        steps = sending(strategy, talk, Replying(), *range(1, 62, 2))
        asked = [any(name == "anthropic.compact:budget" for name in step.names) for step in steps]
        assert [len(summarised(steps[:at])) for at in (29, 30)] == [29, 30]
        assert asked == [False] * 29 + [True] * 2
        assert steps[29].messages[-1].text.startswith("Please wrap up")


class TestTruncation:
    def test_o4_one_is_dropped_per_message(self) -> None:
        """O4: at a limit of 5,000, the 11th message of 500 tokens drops the oldest, and each later one another."""
        strategy = parse("openai.truncation_auto(max_tokens=5000)")
        steps = sending(strategy, talk_of(*[500] * 13), None, 10, 11, 12, 13)
        assert [step.names[0] for step in steps] == ["m0", "m1", "m2", "m3"]
        assert [step.tokens for step in steps] == [5_000] * 4

    def test_whole_turns(self) -> None:
        """In the other reading a turn goes whole."""
        (last,) = sending(
            parse("openai.truncation_auto(max_tokens=5000, drop='turns')"), talk_of(*[500] * 11), None, 11
        )
        assert last.names[0] == "m2"

    def test_g1_defaults(self) -> None:
        """G1: a window of 32,768 triggers at 26,214 and keeps 13,107."""
        assert (ContextWindowCompression().trigger, ContextWindowCompression().target) == (26_214, 13_107)

    def test_g2_the_last_turns_stay(self) -> None:
        """G2: of turns of 5,000, 4,000, 3,000 and 4,500 tokens the last two are kept, and the cut stays."""
        turns = talk_of(2_000, 3_000, 2_000, 2_000, 1_000, 2_000, 2_500, 2_000, 100)
        strategy = parse("gemini.context_window_compression(trigger_tokens=16000, target_tokens=8000)")
        first, then = sending(strategy, turns, None, 8, 9)
        assert (first.names, first.tokens) == (["m4", "m5", "m6", "m7"], 7_500)
        assert then.names == [*first.names, "m8"]


class TestRetentionRatio:
    def test_o3_down_to_the_ratio(self) -> None:
        """O3: the 11th message of 500 tokens passes 5,000; three are dropped, 4,000 stay, and three more fit."""
        strategy = parse("openai.realtime_truncation(post_instructions=5000, retention_ratio=0.8)")
        steps = sending(strategy, talk_of(*[500] * 14), None, *range(10, 15))
        assert [step.tokens for step in steps] == [5_000, 4_000, 4_500, 5_000, 4_000]
        assert [step.names[0] for step in steps] == ["m0", "m3", "m3", "m3", "m6"]

    def test_o4_with_a_ratio_of_one(self) -> None:
        """O4: in plain auto mode each message drops one."""
        strategy = parse("openai.realtime_truncation(post_instructions=5000, retention_ratio=1.0)")
        steps = sending(strategy, talk_of(*[500] * 13), None, *range(11, 14))
        assert [step.names[0] for step in steps] == ["m1", "m2", "m3"]


class TestOpenAICompaction:
    def test_o1_user_messages_and_an_item(self) -> None:
        """O1: of u1 a1 (call, result) a2 u2 a3, all that stays is u1, u2, and the item."""
        said = (
            Message("u1", "user", "one"),
            Message("a1", "assistant", "looking", calls=(ToolCall("c", "look", "{}"),)),
            Message("r1", "tool", "found", answers="c"),
            Message("a2", "assistant", "so"),
            Message("u2", "user", "two"),
            Message("a3", "assistant", "done"),
        )
        (last,) = sending(parse("openai.compact(threshold=1)"), Conversation("chat", said), Replying(), 6)
        assert last.names == ["u1", "u2", "openai.compact:a3"]

    def test_o2_the_next_request_starts_at_the_item(self) -> None:
        """O2: where the answer crosses the threshold, the next request is the item and the message after it."""
        strategy = parse("openai.compact(threshold=200000, mode='stream')")
        steps = sending(strategy, talk_of(150_000, 50_000, 100), Replying(), 3)
        assert steps[0].names == ["m0", "m1", "m2"]
        (last,) = sending(strategy, talk_of(150_000, 50_001, 100), Replying(), 3)
        assert last.names == ["openai.compact:m1", "m2"]

    @pytest.mark.parametrize(("answers", "compacts"), [(9, False), (10, True)])
    def test_o11_by_the_number_of_items(self, answers: int, compacts: bool) -> None:
        """O11: the session compacts at 10 items that are no user messages, not at 9."""
        said = talk_of(*[10] * (2 * answers + 1))
        (last,) = sending(parse("openai.compact(items=10)"), said, Replying(), 2 * answers + 1)
        assert any(name.startswith("openai.compact:") for name in last.names) == compacts

    @pytest.mark.parametrize(
        ("model", "threshold"),
        [("gpt-5.2", 360_000), ("openai/gpt-5.6", 942_818), ("gpt-5.6-sol", 942_818), ("llama", 240_000)],
    )
    def test_o12_the_sandbox_s_threshold(self, model: str, threshold: int) -> None:
        """O12: 90 % of the window that the SDK knows, and 240,000 for a model that it does not know."""
        strategy = parse(f"openai.compact(model='{model}', mode='stream')")
        assert isinstance(strategy, OpenAICompaction)
        assert strategy.limit == threshold
        with pytest.raises(SpecError, match="threshold or model, not both"):
            parse("openai.compact(model='gpt-5.2', threshold=100)")


class TestCompactionOnDemand:
    def test_d2_usage_over_the_limit(self) -> None:
        """D2: with a limit of 2,500, a response of 1,900 + 650 tokens is compacted before the next turn."""
        strategy = parse("anthropic.compact_on_demand(limit=2500)")
        (last,) = sending(strategy, talk_of(1_900, 650, 50), Replying(), 3)
        assert last.names == ["anthropic.compact_on_demand:m1", "m2"]
        (below,) = sending(strategy, talk_of(1_900, 600, 50), Replying(), 3)
        assert below.names == ["m0", "m1", "m2"]

    def test_d3_the_newest_turns_stay(self) -> None:
        """D3: of 4 turns with keep_turns 2, the request carries messages 1 to 4, and 5 to 8 follow the block."""
        model = Replying()
        strategy = parse("anthropic.compact_on_demand(limit=100, keep_turns=2)")
        (last,) = sending(strategy, talk_of(*[50] * 8), model, 8)
        assert [message.id for message in model.prompts[0].about] == ["m0", "m1", "m2", "m3"]
        assert last.names == ["anthropic.compact_on_demand:m3", "m4", "m5", "m6", "m7"]

    def test_d4_in_the_background(self) -> None:
        """D4: 1 to 5 were sent to be summarised, 6 to 8 came meanwhile: then the block, 6, 7 and 8 are sent."""
        said = [*talk_of(*[50] * 5).messages, Message("m5", "assistant", calls=(CALL_A, CALL_B))]
        said += [Message("m6", "tool", "x", answers="a"), Message("m7", "tool", "y", answers="b")]
        model = Replying()
        strategy = parse("anthropic.compact_on_demand(limit=100, background=1)")
        first, then = sending(strategy, Conversation("chat", tuple(said)), model, 5, 8)
        assert first.names == ["m0", "m1", "m2", "m3", "m4"]
        assert [message.id for message in model.prompts[0].about] == ["m0", "m1", "m2", "m3", "m4"]
        assert then.names == ["anthropic.compact_on_demand:m4", "m5", "m6", "m7"]

    def test_d5_a_failure_changes_nothing(self) -> None:
        """D5: if the summary fails the history stays, and the event says so."""
        (last,) = sending(parse("anthropic.compact_on_demand(limit=10)"), talk_of(50, 50, 50), Replying(refusing), 3)
        assert (last.names, last.events) == (
            ["m0", "m1", "m2"],
            (Failed("summary", "refused", "the history stays as it is"),),
        )


CALL_A, CALL_B = ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")


class TestCompactionControl:
    @pytest.mark.parametrize(("threshold", "compacts"), [(334_400, True), (334_401, False)])
    def test_s1_requests_of_server_tools_add_up(self, threshold: int, compacts: bool) -> None:
        """S1: a usage of 63,000 + 270,000 read + 1,400 is 334,400, though the context has 64,400."""
        own = (Iteration(Usage(270_000, 0, cache_read=270_000)), Iteration(Usage(63_000, 1_400)))
        question, answer, thanks = talk_of(63_000, 1_400, 50).messages
        searched = replace(answer, call=Call("claude-sonnet-4-5", iterations=own))
        talk = Conversation("chat", (question, searched, thanks))
        (last,) = sending(parse(f"anthropic.compaction_control(threshold={threshold})"), talk, Replying(), 3)
        assert (last.names[0] == "anthropic.compaction_control:m1") == compacts
        assert COUNTER.message(question) + COUNTER.message(answer) == 64_400

    @pytest.mark.parametrize(("answer", "compacts"), [(9_999, False), (10_000, True)])
    def test_s2_at_the_threshold(self, answer: int, compacts: bool) -> None:
        """S2: 99,999 tokens of the last response do nothing; 100,000 leave one user message."""
        (last,) = sending(parse("anthropic.compaction_control"), talk_of(90_000, answer, 50), Replying(), 3)
        assert last.names == (["anthropic.compaction_control:m1", "m2"] if compacts else ["m0", "m1", "m2"])
        assert last.messages[0].role == "user"

    def test_s3_pending_tool_calls_are_dropped(self) -> None:
        """S3: a last assistant message of two calls alone is not shown to the summariser, nor are its results sent."""
        calls = (CALL_A, CALL_B)
        said = (
            Message("u", "user", "one"),
            Message("a1", "assistant", "so"),
            Message("u2", "user", "two"),
            Message("a2", "assistant", calls=calls),
            Message("ra", "tool", "x", answers="a"),
            Message("rb", "tool", "y", answers="b"),
        )
        model = Replying()
        (last,) = sending(parse("anthropic.compaction_control(threshold=1)"), Conversation("chat", said), model, 6)
        assert [message.id for message in model.prompts[0].about] == ["u", "a1", "u2"]
        assert last.names == ["anthropic.compaction_control:u2"]
        assert last.messages[0].text == "<summary>\nabout 3\n</summary>"
        assert Dropped(("a2", "ra", "rb")) in last.events

    def test_a_text_beside_the_calls_stays(self) -> None:
        """Of an assistant message with text and calls, the summariser is shown the text."""
        said = agent(2, 50, 30, 50)
        worded = replace(said.messages[3], text="I look again.")
        model = Replying()
        conversation = Conversation("agent", (*said.messages[:3], worded, said.messages[4]))
        sending(parse("anthropic.compaction_control(threshold=1)"), conversation, model, 5)
        assert model.prompts[0].material[-1] == "assistant: I look again."


@pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        ("anthropic.compact_on_demand(limit=1)", "extends"),
        ("anthropic.compaction_control(threshold=1)", "history"),
        ("openai.compact(threshold=1)", "extends"),
        ("openhands(max_size=6, keep_first=1)", "separate"),
    ],
)
def test_each_asks_in_its_own_way(strategy: str, kind: str) -> None:
    """The event of the model's call says how it would be asked, by which it is billed."""
    steps = sending(parse(strategy), talk_of(*[50] * 7), Replying(), 7)
    assert {event.prompt for step in steps for event in step.events if isinstance(event, Called)} == {kind}
