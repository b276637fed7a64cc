"""What coding agents do when their context is full: numbers of their own tests, and others worked out by rule."""

import pytest

from ctxbench.harness.invariants import steps
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.agents.summaries import split_by_characters
from ctxbench.strategies.base import Prompt
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Cleared, Failed
from tests.strategies.scripted_models import COUNTER, Replying, Sent, chat, numbered, refusing, sending, summarised
from tests.strategies.sized import agent, talk_of, words


def sent(strategy: str, conversation: Conversation, at: int = 0, model: Replying | None = None) -> Sent:
    """What is sent after `at` messages, by default after all."""
    (last,) = sending(parse(strategy), conversation, model or Replying(), at or len(conversation.messages), twice=True)
    return last


@pytest.mark.parametrize(
    ("strategy", "trigger"),
    [
        ("claude_code", 167_000),  # B1
        ("claude_code(window=1000000)", 967_000),
        ("claude_code(percent=80)", 160_000),
        ("claude_code(percent=90)", 167_000),
        ("codex", 244_800),  # B2: 90 % of the window, which a limit of its own can only lower
        ("codex(window=872000)", 784_800),
        ("codex(limit=260000)", 244_800),
        ("codex(limit=200000)", 200_000),
        ("opencode", 148_000),  # B8
        ("opencode(reserve_without_limit=False)", 168_000),
        ("opencode(input_limit=160000)", 140_000),
        ("roo", 171_808),  # B13: less a tenth and 8,192
        ("aider(window=8192)", 1_024),  # B17: a sixteenth, from 1,024 to 8,192
        ("aider(window=32768)", 2_048),
        ("aider", 8_000),
        ("aider(window=200000)", 8_192),
        ("cline(input_limit=128000)", 115_200),  # B19
        # 40,000, 30,000 and 27,000 below the windows that it knew, else at most a fifth.
        *((f"cline.old(window={of})", at) for of, at in ((200_000, 160_000), (128_000, 98_000), (64_000, 37_000))),
        *((f"cline.old(window={of})", at) for of, at in ((1_000_000, 960_000), (100_000, 80_000))),
    ],
)
def test_triggers(strategy: str, trigger: int) -> None:
    """Each begins where its own tests or its source say."""
    assert parse(strategy).trigger == trigger  # type: ignore[attr-defined]


class TestClaudeCode:
    @pytest.mark.parametrize(("answer", "compacts"), [(5_999, False), (6_000, True)])
    def test_the_last_usage_decides(self, answer: int, compacts: bool) -> None:
        """At the trigger, a last response of 10,000 tokens, everything before the waiting message is one summary."""
        last = sent("claude_code(window=43000)", talk_of(4_000, answer, 50))
        assert last.names == (["claude_code:m1", "m2"] if compacts else ["m0", "m1", "m2"])

    def test_within_a_turn_the_summary_is_all(self) -> None:
        """In the middle of a turn, the newest result is in the summary too."""
        said = agent(3, 4_000, 100, 2_000)
        last = sent("claude_code(window=41000)", said)
        assert last.names == ["claude_code:r3"]
        assert summarised([last])[0].replaced == tuple(message.id for message in said.messages)

    def test_older_results_are_cleared_first(self) -> None:
        """Over `clear_trigger` tokens, all results but the newest 3 are cleared, and stay so."""
        steps = sending(parse("claude_code(clear_trigger=30000)"), agent(7), Replying(), 11, 13, 15)
        gone = [[m.id for m in step.messages if m.text == "[Old tool result content cleared]"] for step in steps]
        assert gone == [[], ["r1", "r2", "r3"], ["r1", "r2", "r3"]]
        assert [type(event) for step in steps for event in step.events] == [Cleared]

    @pytest.mark.parametrize(("pause", "cleared"), [(300.0, []), (301.0, ["r0", "r1"])])
    def test_cleared_when_the_cache_is_cold(self, pause: float, cleared: list[str]) -> None:
        """In the other reading size does not count: all results but 3 are cleared after more than five minutes."""
        said = [Message("u", "user", "look around", time=0.0)]
        for at in range(5):
            said.append(Message(f"a{at}", "assistant", calls=(ToolCall(f"c{at}", "look", "{}"),), time=1.0))
            said.append(Message(f"r{at}", "tool", words(400), answers=f"c{at}", time=1.0))
        said += [Message("b", "assistant", "so", time=10.0), Message("u2", "user", "go on", time=10.0 + pause)]
        conversation = Conversation("agent", (*said, Message("c", "assistant", "yes", time=400.0)))
        last = steps(parse("claude_code(microcompact='cold', clear_trigger=100)"), conversation)[-1]
        assert [message.id for message in last.context.messages if "cleared" in message.text] == cleared


class TestCodex:
    def test_b3_user_messages_within_20_000_tokens(self) -> None:
        """B3: of 9,000, 8,000 and 7,000 tokens, the newest two stay whole, and 5,000 of the first."""
        said = [Message(f"m{at}", ("user", "assistant")[at % 2], words(size)) for at, size in enumerate([9_000, 1] * 3)]
        for at, size in ((2, 8_000), (4, 7_000)):
            said[at] = Message(f"m{at}", "user", words(size))
        last = sent("codex(window=20000)", Conversation("chat", tuple(said)))
        assert last.names == ["m0", "m2", "m4", "codex:m5"]
        first, *whole, _ = last.messages
        assert whole == [said[2], said[4]]
        mark = "…4000 tokens truncated…"
        assert COUNTER.text(first.text) == 5_000 + COUNTER.text(mark)
        assert len(first.text.partition(mark)[0]) == len(first.text.partition(mark)[2])

    def test_b4_one_long_message(self) -> None:
        """B4: at a limit of 16 tokens, one message of 200 words leaves two items: its two ends, and the summary."""
        said = (Message("u", "user", words(200)), Message("a", "assistant", "so"))
        last = sent("codex(window=100, keep_users=16)", Conversation("chat", said))
        assert last.names == ["u", "codex:a"]
        assert "184 tokens truncated" in last.messages[0].text

    def test_a_summary_is_no_user_message(self) -> None:
        """The next compaction keeps the user messages, and not the summary of the last one."""
        steps = sending(parse("codex(window=100, keep_users=46)"), talk_of(*[50] * 7), Replying(), 3, 5, 7)
        assert [step.names for step in steps][-1] == ["m4", "codex:m5", "m6"]
        assert summarised(steps)[-1].replaced[-1] == "m5"


class TestGoose:
    @pytest.mark.parametrize(("answer", "compacts"), [(4_000, False), (4_010, True)])
    def test_b16_above_80_percent(self, answer: int, compacts: bool) -> None:
        """B16: a usage of 80.0 % of the window does nothing, 80.1 % compacts."""
        last = sent("goose(window=10000)", talk_of(4_000, answer, 50))
        assert last.names == (["goose:m1", "goose:m1:answer", "m2"] if compacts else ["m0", "m1", "m2"])

    def test_the_newest_user_message_comes_again(self) -> None:
        """Within a turn, the message that opened it follows the summary and its answer."""
        last = sent("goose(window=5000)", agent(3, 4_000, 100, 2_000))
        assert last.names == ["goose:r3", "goose:r3:answer", "u"]


class TestRoo:
    @pytest.mark.parametrize(("size", "hidden"), [(11, 4), (12, 4), (13, 6)])
    def test_b12_an_even_half_is_hidden(self, size: int, hidden: int) -> None:
        """B12: of 11 messages 1 to 4 are hidden and a marker follows, of 12 as many; 13 hide 6."""
        last = sent("roo(window=100, max_tokens=80, condense=False)", chat(size, system=False))
        assert last.names == ["m1", f"roo:m{hidden + 1}", *numbered(hidden + 2, size)]
        assert last.messages[1].text == f"[Sliding window truncation: {hidden} messages hidden to reduce context]"

    @pytest.mark.parametrize(("newest", "compacts"), [(1_808, False), (1_809, True)])
    def test_b13_what_is_allowed(self, newest: int, compacts: bool) -> None:
        """B13: 200,000 less a tenth and 8,192 tokens allow 171,808."""
        last = sent("roo", talk_of(100_000, 70_000, newest))
        assert last.names == (["roo:m1", "m2"] if compacts else ["m0", "m1", "m2"])

    def test_it_truncates_where_the_model_fails(self) -> None:
        """A summary that failed is an event, and half of the messages are hidden instead."""
        last = sent("roo(window=100, max_tokens=80)", chat(11, system=False), model=Replying(refusing))
        assert last.names[:3] == ["m1", "roo:m5", "m6"]
        assert [type(event) for event in last.events] == [Failed]


class TestOpenHands:
    def test_b5_asked_and_over_the_number(self) -> None:
        """B5: with max_size 20 and keep_first 2, of 25 events 2 to 17 are forgotten if asked for: a tail of 7."""
        last = sent("openhands(max_size=20, keep_first=2, window=1)", chat(25, system=False))
        assert summarised([last])[0].replaced == tuple(numbered(3, 18))
        assert last.names == ["m1", "m2", "openhands:m18", *numbered(19, 25)]

    def test_b6_the_smaller_tail(self) -> None:
        """B6: with max_size 30, of 40 events 26 are forgotten: a tail of 12."""
        last = sent("openhands(max_size=30, keep_first=2, window=1)", chat(40, system=False))
        assert len(summarised([last])[0].replaced) == 26
        assert len(last.names) == 2 + 1 + 12

    def test_b7_defaults(self) -> None:
        """B7: the 81st event leaves 4, a summary, and 35."""
        conversation = chat(81, system=False)
        assert sent("openhands", conversation, 80).names == numbered(1, 80)
        last = sent("openhands", conversation)
        assert summarised([last])[0].replaced == tuple(numbered(5, 46))
        assert len(last.names) == 40

    def test_little_is_not_worth_it(self) -> None:
        """Where less than a tenth of the events would go, nothing does."""
        said = talk_of(10, 10, 10, 300, 10, 10, 10, 10, 10, 10, 10)
        assert sent("openhands(keep_first=3, max_tokens=380)", said).names == [f"m{at}" for at in range(11)]

    def test_masking(self) -> None:
        """In 2025, results before the newest 5 events are masked at every step."""
        steps = sending(parse("openhands.masking"), agent(5, 50, 30, 50), None, 7, 9, 11)
        masked = [[m.id for m in step.messages if m.text == "<MASKED>"] for step in steps]
        assert masked == [[], ["r1"], ["r1", "r2"]]


class TestOpenCode:
    @pytest.mark.parametrize(
        ("outputs", "cleared"),
        [
            ((30_000, 15_000, 12_000, 9_000), [15_000, 12_000, 9_000]),
            ((30_000, 9_000, 8_000, 2_000), []),
            ((40_000, 20_000), []),
            ((40_000, 20_001), [20_001]),
        ],
    )
    def test_b9_prune(self, outputs: tuple[int, ...], cleared: list[int]) -> None:
        """B9: beyond the newest 40,000 tokens, results are cleared if they have more than 20,000 together."""
        said = [Message("u", "user", "look")]
        for at, size in reversed(list(enumerate(outputs))):
            said.append(Message(f"a{at}", "assistant", calls=(ToolCall(f"c{at}", "look", "{}"),)))
            said.append(Message(f"r{at}", "tool", words(size), answers=f"c{at}"))
        said += talk_of(10, 10, 10, 10, 10).messages
        last = sent("opencode(prune=True)", Conversation("agent", tuple(said)))
        gone = [m.id for m in last.messages if m.text == "[Old tool result content cleared]"]
        assert gone == [f"r{outputs.index(size)}" for size in reversed(cleared)]

    def test_the_tail(self) -> None:
        """What fits in 2,000 tokens of the last turns stays, a turn may be split, and `tail_turns` limits them."""
        said = talk_of(2_000, 900, 900, 900, 50)
        assert sent("opencode(input_limit=24700)", said).names == ["opencode:m1", "m2", "m3", "m4"]
        assert sent("opencode(input_limit=24700, tail_turns=1)", said).names == ["opencode:m1", "m2", "m3", "m4"]
        assert sent("opencode(input_limit=24700, tail_turns=0)", said).names == ["opencode:m3", "m4"]
        split = talk_of(2_000, 1_300, 1_300, 1_300, 50)
        assert sent("opencode(input_limit=24700)", split).names == ["opencode:m2", "m3", "m4"]

    def test_the_summariser_sees_the_start_of_long_results(self) -> None:
        """It is shown 2,000 characters of each result."""
        model = Replying()
        sent("opencode(input_limit=24000)", agent(3, 50, 30, 3_000), model=model)
        assert max(map(len, model.prompts[0].material)) == len("tool: ") + 2_000


class TestGeminiCli:
    @pytest.mark.parametrize(
        ("sizes", "calls", "share", "place"),
        [
            ((66, 68, 66, 68, 65), False, 0.5, 4),
            ((66, 68, 66, 68, 65), False, 0.9, 4),
            ((66, 68, 66, 68), True, 0.99, 2),
        ],
    )
    def test_b10_where_it_is_cut(self, sizes: tuple[int, ...], calls: bool, share: float, place: int) -> None:
        """B10: before message 4 of 5 at half and at 90 %; before a last message that calls a tool, at 2."""
        said = [Message(f"m{at}", ("user", "assistant")[at % 2], "x" * size) for at, size in enumerate(sizes)]
        if calls:
            said[-1] = Message("m3", "assistant", "x" * (sizes[-1] - 6), calls=(ToolCall("c", "look", "{}"),))
        assert split_by_characters(Messages.of(said), share) == place

    @pytest.mark.parametrize(("prompt", "compacts"), [(524_287, False), (524_288, True)])
    def test_b11_at_half_of_the_limit(self, prompt: int, compacts: bool) -> None:
        """B11: a last prompt of 524,288 tokens is compressed, one less is not; its answer does not count."""
        last = sent("gemini_cli", talk_of(prompt - 1_000, 500, 500, 500, 50))
        notes = ["gemini_cli:m1", "gemini_cli:m1:answer"]
        assert last.names == ([*notes, "m2", "m3", "m4"] if compacts else ["m0", "m1", "m2", "m3", "m4"])
        assert sum(isinstance(event, Called) for event in last.events) == (2 if compacts else 0)

    def test_a_larger_result_is_thrown_away(self) -> None:
        """A summary that is longer than what it replaces is not used, and there is no other attempt."""
        model = Replying(lambda prompt: words(900))
        strategy = parse("gemini_cli(limit=400, max_summary_tokens=1000)")
        steps = sending(strategy, talk_of(*[100] * 9), model, 5, 7, 9)
        assert [len(step.names) for step in steps] == [5, 7, 9]
        assert len(model.prompts) == 2


class TestCline:
    def test_the_newest_tokens_stay(self) -> None:
        """At the trigger the newest messages within `keep_recent` follow the summary."""
        last = sent("cline(input_limit=1000, keep_recent=350)", talk_of(300, 200, 100, 100, 100, 100))
        assert last.names == ["cline:m2", "m3", "m4", "m5"]
        assert sent("cline(input_limit=1002, keep_recent=350)", talk_of(*[150] * 6)).names[0] == "m0"

    @pytest.mark.parametrize(("window", "upto"), [(1_200, 10), (600, 14)])
    def test_b14_half_or_a_quarter_stays(self, window: int, upto: int) -> None:
        """B14: of 20 messages, 2 to 9 go; 2 to 13 where half of the usage is still over the trigger."""
        last = sent(f"cline.old(window={window})", talk_of(*[50] * 20))
        assert last.names == ["m0", "m1", *[f"m{at}" for at in range(upto, 20)]]
        assert last.messages[1].text.startswith("[NOTE]")

    def test_files_that_were_read_again(self) -> None:
        """An earlier read of the same file becomes a notice; nothing is dropped where that saves 30 %."""
        last = sent("cline.old(window=10000, read_tools=('read',))", agent(3, 50, 200, 4_000))
        assert [message.id for message in last.messages] == ["u", "c1", "r1", "c2", "r2", "c3", "r3"]
        assert ["read again" in m.text for m in last.messages if m.role == "tool"] == [True, True, False]


class TestPi:
    @pytest.mark.parametrize(("tokens", "compacts"), [(95_000, True), (89_000, False)])
    def test_b15_above_the_window_less_its_reserve(self, tokens: int, compacts: bool) -> None:
        """B15: with a window of 100,000 and a reserve of 10,000, at 95,000 tokens and not at 89,000."""
        last = sent("pi(window=100000, reserve=10000)", talk_of(tokens - 21_000, 500, 20_500))
        assert last.names == (["pi:m1", "m2"] if compacts else ["m0", "m1", "m2"])

    def test_at_least_so_many_tokens_stay(self) -> None:
        """The message that crosses 20,000 tokens stays too, if it is no tool result."""
        last = sent("pi(window=60000)", talk_of(20_000, 100, 15_000, 100, 12_000))
        assert last.names == ["pi:m1", "m2", "m3", "m4"]

    def test_a_split_turn_has_two_summaries(self) -> None:
        """The start of the turn that is cut has a summary of its own, after that of the turns before."""
        said = (*talk_of(9_000, 100).messages, *agent(6, 4_000, 100, 7_000).messages)
        model = Replying()
        last = sent("pi(window=60000)", Conversation("agent", said), model=model)
        about = [[message.id for message in prompt.about] for prompt in model.prompts]
        assert about == [["m0", "m1"], ["u", "c1", "r1", "c2", "r2", "c3", "r3", "c4", "r4"]]
        assert [prompt.max_tokens for prompt in model.prompts] == [4096, 2048]
        assert last.names == ["pi:r4", "c5", "r5", "c6", "r6"]
        assert "about 2\n\n---\n\nTurn so far:\nabout 9" in last.messages[0].text


class TestAider:
    def test_the_tail_is_under_half(self) -> None:
        """Of six finished turns over 1,024 tokens, those stay that 512 tokens reach back into, behind two messages."""
        last = sent("aider(window=8192)", talk_of(*[100] * 13))
        assert last.names == ["aider:m5", "aider:m5:answer", *[f"m{at}" for at in range(6, 13)]]

    def test_four_messages_go_whole(self) -> None:
        """Where four or fewer would be before the tail, all finished turns are summarised."""
        last = sent("aider(window=8192)", talk_of(400, 400, 400, 100, 100))
        assert last.names == ["aider:m3", "aider:m3:answer", "m4"]

    def test_it_summarises_again(self) -> None:
        """A summary that is too long beside its tail is summarised with it, at most three times."""
        model = Replying(lambda prompt: words(900 if len(model.prompts) < 4 else 50))
        last = sent("aider(window=8192)", talk_of(*[100] * 13), model=model)
        assert len(model.prompts) == 2
        assert last.names == ["aider:m11", "aider:m11:answer", "m12"]


class TestSweAgent:
    @staticmethod
    def omitted(strategy: str, observations: int) -> int:
        last = sent(strategy, agent(observations - 1, 50, 30, 50))
        return sum(message.text == "Old environment output: (1 lines omitted)" for message in last.messages)

    @pytest.mark.parametrize("observations", [4, 5, 9])
    def test_b18_first_and_last_stay(self, observations: int) -> None:
        """B18: with n 3, all observations but the first and the last 3 are elided."""
        assert self.omitted("swe_agent(n=3)", observations) == observations - 3 - 1

    def test_b18_polling(self) -> None:
        """B18: with n 5 and polling 5, the same 4 of 10 to 14 observations; 9 of 15."""
        assert [self.omitted("swe_agent(n=5, polling=5)", size) for size in range(10, 16)] == [4, 4, 4, 4, 4, 9]


def test_a_second_compaction_covers_the_first() -> None:
    """The summariser is shown the earlier summary as a message; the event names what is new in it."""
    shown: list[Prompt] = []

    def reply(prompt: Prompt) -> str:
        shown.append(prompt)
        return f"summary {len(shown)}"

    steps = sending(parse("claude_code(window=33200)"), talk_of(*[150] * 7), Replying(reply), 3, 5, 7)
    assert [event.replaced for event in summarised(steps)] == [("m0", "m1"), ("m2", "m3"), ("m4", "m5")]
    assert shown[1].material[0].endswith("summary 1")


def test_a_failed_summary_is_tried_again_at_the_next_call() -> None:
    """Nothing is replaced where the model fails."""
    model = Replying(refusing)
    steps = sending(parse("claude_code(window=33200)"), talk_of(*[150] * 7), model, 3, 5)
    assert [len(step.names) for step in steps] == [3, 5]
    assert len(model.prompts) == 2


def test_what_a_stage_before_drops_is_dropped() -> None:
    """User messages that Codex keeps are sent no longer once a window before it has left them out."""
    strategy = parse("window(messages=5) | codex(window=200)")
    *_, last = sending(strategy, talk_of(*[50] * 13), Replying(), *range(5, 14, 2))
    assert [name for name in last.names if name.startswith("m")] == ["m8", "m10", "m12"]
