"""Summaries: the documents' worked examples, what the model is shown, and what is done when it fails."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Failed, OverBudget
from ctxbench.strategies.parts.passages import cut
from ctxbench.strategies.summary import SessionSummary, Summary
from tests.builders import answering, calling, talk
from tests.strategies.scripted_models import COUNTER, Replying, chat, numbered, refusing, sending, summarised


class TestOverflowForm:
    def test_the_document_s_example(self) -> None:
        """25 messages: the first 5 are summarised, 20 are kept. 5 more come: the next 5 are merged in, 20 are kept."""
        first, then = sending(Summary(user_first=False), chat(30), None, 26, 31)
        assert first.names == ["s", "summary:1:m5", *numbered(6, 25)]
        assert then.names == ["s", "summary:1:m10", *numbered(11, 30)]
        assert [event.replaced for event in summarised([first, then])] == [
            tuple(numbered(1, 5)),
            tuple(numbered(6, 10)),
        ]

    def test_twenty_messages_are_sent_as_they_are(self) -> None:
        """Up to the threshold nothing is done, not even a copy made; system messages are not among the 20."""
        conversation = chat(20)
        context = Context(Messages.of(conversation.messages))
        assert Summary().start(RecordedContext(ConversationIndex(conversation, COUNTER)))(context) is context

    def test_every_waits(self) -> None:
        """With every=5 a conversation that grows by two has a round each time that 5 or more are over the threshold."""
        rounds = [event.replaced for event in summarised(sending(Summary(every=5), chat(40)))]
        assert rounds == [tuple(numbered(*each)) for each in ((1, 4), (5, 10), (11, 16))]
        assert len(summarised(sending(Summary(), chat(40)))) == 9

    def test_the_user_message_of_a_turn_stays(self) -> None:
        """Where what is kept goes on with a turn, the message that opened it is sent after the summary, not in it.

        It is summarised with the last messages of its turn; one too long for the budget is at once, and not sent.
        """
        model = Replying()
        first, then = sending(Summary(), chat(30), model, 26, 31)
        assert first.names == ["s", "summary:1:m4", *numbered(5, 25)]
        assert then.names == ["s", "summary:1:m10", *numbered(11, 30)]
        assert [[message.id for message in prompt.about if message.id.startswith("m")] for prompt in model.prompts] == [
            numbered(1, 4),
            numbered(5, 10),
        ]
        long = Conversation("c", (Message("m1", "user", "word " * 60), *chat(9, system=False).messages[1:]))
        (sent,) = sending(Summary(threshold=2, max_tokens=200, max_summary_tokens=20), long, None, 4)
        assert sent.names == ["summary:1:m2", "m3", "m4"]

    def test_system_messages_come_first(self) -> None:
        """Those among the summarised messages stand before the summary, later ones stay in their place."""
        said = list(chat(25).messages)
        said[3:3] = [Message("s2", "system", "Early.")]
        said[20:20] = [Message("s3", "system", "Late.")]
        (sent,) = sending(Summary(user_first=False), Conversation("c", tuple(said)), None, len(said))
        assert sent.names == ["s", "s2", "summary:1:m5", *numbered(6, 18), "s3", *numbered(19, 25)]

    def test_the_summary_is_a_system_message_under_a_heading(self) -> None:
        """It is headed as in the document, or in English."""
        for language, heading in (("zh", "[之前对话摘要]"), ("en", "[Summary of the conversation so far]")):
            (sent,) = sending(parse(f"summary(language={language!r})"), chat(25), Replying(lambda _: "All well."), 26)
            assert sent.messages[1].role == "system"
            assert sent.messages[1].text == f"{heading}\nAll well."

    def test_80_percent_of_the_tokens(self) -> None:
        """Over 80 % of max_tokens the oldest are summarised though they are few; half of max_tokens is kept."""
        conversation = chat(12, "word " * 96, system=False)
        each = COUNTER.message(conversation.messages[0])
        strategy = Summary(max_tokens=10 * each, max_summary_tokens=100)
        eight, nine = sending(strategy, conversation, None, 8, 9)
        assert eight.names == numbered(1, 8)
        assert nine.names == ["summary:1:m4", *numbered(5, 9)]

    def test_calls_stay_with_their_results(self) -> None:
        """Where the threshold falls between a call and its results, all of them are kept."""
        said = [*chat(4, system=False).messages, calling("c", "x", "y"), answering("r1", "x"), answering("r2", "y")]
        conversation = Conversation("c", (*said, Message("m5", "user", "so?")))
        assert sending(Summary(user_first=False, threshold=2), conversation, None, 8)[0].names == [
            "summary:1:m4",
            *("c", "r1", "r2", "m5"),
        ]
        assert sending(Summary(user_first=False, threshold=1), conversation, None, 8)[0].names == ["summary:1:r2", "m5"]

    def test_what_is_sent_again_is_the_same_object(self) -> None:
        """A summary that has not changed is not made again: the prefix stays cached."""
        first, then = sending(Summary(every=9), chat(34), None, 30, 33)
        assert then.names == [*first.names, *numbered(30, 32)]
        assert then.messages[1] is first.messages[1]


class TestSessionForm:
    def test_above_the_threshold_all_but_four(self) -> None:
        """At 8000 tokens nothing is done; at one more, everything but the last 4 messages is summarised."""
        said = list(chat(9, "word " * 900, system=False).messages)
        conversation = Conversation("c", tuple(said))
        exactly = sum(COUNTER.text(message.text) + 4 for message in said)
        for threshold, names in ((exactly, numbered(1, 9)), (exactly - 1, ["session_summary:1:m5", *numbered(6, 9)])):
            assert (
                sending(SessionSummary(user_first=False, token_threshold=threshold), conversation, None, 9)[0].names
                == names
            )

    def test_the_next_time_counts_the_summary(self) -> None:
        """After a round the summary and what came since must be over the threshold again."""
        conversation = chat(40, "word " * 96)
        each = COUNTER.message(conversation.messages[1])
        model = Replying(lambda _: "word " * 92)  # with its heading, as long as a message
        sent = sending(SessionSummary(token_threshold=10 * each), conversation, model)
        sizes = [len(event.replaced) for event in summarised(sent)]
        assert sizes[0] == 6  # at 11 messages; the seventh opened the turn of what stays
        assert set(sizes[1:]) == {6}  # at 10 and the summary

    def test_the_document_s_prompt(self) -> None:
        """Prompt, limit and temperature are the document's, one line a message."""
        model = Replying()
        sending(SessionSummary(token_threshold=10), chat(6, "第 {} 条", system=False), model, 6)
        (prompt,) = model.prompts
        assert (prompt.max_tokens, prompt.temperature) == (500, 0.3)
        assert prompt.text() == (
            "请对以下对话进行摘要，保留关键信息：\n\n1. 用户的主要意图和需求\n2. 重要的决策和结论\n"
            "3. 待办事项或后续步骤\n4. 关键的数据或事实\n\n对话内容：\n"
            "user: 第 1 条\nassistant: 第 2 条\n\n请用简洁的中文输出摘要（最多 500 字）："
        )


class TestWhatTheModelIsShown:
    def test_the_earlier_summary_comes_first(self) -> None:
        """A later round shows the earlier summary, then the new messages, and the reply will stand for them all."""
        numbers = count(1)
        model = Replying(lambda _: f"reply {next(numbers)}")
        sending(Summary(user_first=False), chat(30), model, 26, 31)
        assert model.prompts[1].material == (
            "[Summary of the conversation so far]\nreply 1",
            *(f"{'user' if at % 2 else 'assistant'}: text {at}" for at in range(6, 11)),
        )
        assert [message.id for message in model.prompts[1].about] == ["summary:1:m5", *numbered(6, 10)]

    def test_calls_are_shown(self) -> None:
        """Tool calls are shown with their arguments: an agent's history is mostly that."""
        call = Message("c", "assistant", "Look.", calls=(ToolCall("x", "read", '{"path": "a.py"}'),))
        bare = Message("d", "assistant", calls=(ToolCall("y", "ls"),))
        model = Replying()
        sending(
            Summary(threshold=1), talk(call, answering("r", "x"), bare, answering("q", "y"), ("user", "u")), model, 5
        )
        assert model.prompts[0].material == (
            'assistant: Look. [tool call] read {"path": "a.py"}',
            "tool: done",
            "assistant: [tool call] ls {}",
            "tool: done",
        )

    def test_a_limit_shows_the_newest(self) -> None:
        """max_input_tokens leaves out the oldest, and it is recorded how much was shown of what was replaced."""
        model = Replying()
        conversation = chat(9, "{} " + "word " * 50, system=False)
        size = [COUNTER.text(message.text) for message in conversation.messages[:8]]
        strategy = Summary(threshold=1, max_input_tokens=3 * max(size) + 9)
        (sent,) = sending(strategy, conversation, model, 9)
        assert [text.split()[1] for text in model.prompts[0].material] == ["6", "7", "8"]
        (called,) = (event for event in sent.events if isinstance(event, Called))
        assert (called.about, called.shown) == (sum(size), sum(size[5:]))

    def test_one_message_over_the_limit_is_shown_in_part(self) -> None:
        """If not even the newest fits, its start is shown."""
        model = Replying()
        sending(
            Summary(user_first=False, threshold=1, max_input_tokens=9), chat(2, "One two. " * 9, system=False), model, 2
        )
        (shown,) = model.prompts[0].material
        assert shown.startswith("user: One two.")
        assert COUNTER.text(shown) <= 9


class TestFailures:
    def test_nothing_is_lost(self) -> None:
        """While the model refuses, everything is sent and it is asked at each call; then it catches up in one round."""
        answers = iter([refusing, refusing, lambda prompt: "ok"])
        model = Replying(lambda prompt: next(answers)(prompt))
        one, two, three = sending(Summary(user_first=False), chat(25), model, 22, 24, 26)
        for sent, last in ((one, 21), (two, 23)):
            assert sent.names == ["s", *numbered(1, last)]
            assert [type(event) for event in sent.events] == [Failed]
        assert three.names == ["s", "summary:1:m5", *numbered(6, 25)]

    def test_within_a_budget_the_newest_are_sent(self) -> None:
        """What was not summarised is cut like a window; the failure and the refusal say so."""
        conversation = chat(12, "word " * 96)
        strategy = Summary(user_first=False, max_tokens=800, max_summary_tokens=100)
        (sent,) = sending(strategy, conversation, Replying(refusing), 13)
        assert [type(event) for event in sent.events] == [Failed, OverBudget]
        assert sent.tokens <= 800
        assert sent.names == ["s", *numbered(6, 12)]

    def test_a_long_reply_is_cut_after_a_sentence(self) -> None:
        """It is used as far as its limit goes, and recorded."""
        model = Replying(lambda _: "The price is 45. " * 9)
        (sent,) = sending(Summary(user_first=False, max_summary_tokens=15), chat(21), model, 22)
        assert sent.messages[1].text == "[Summary of the conversation so far]\nThe price is 45. The price is 45."
        (failed,) = (event for event in sent.events if isinstance(event, Failed))
        assert "over 15" in failed.why

    @pytest.mark.parametrize(
        ("language", "reply", "material", "wrong"),
        [
            ("zh", "All in English.", "我们最终决定用北京机房", True),
            ("zh", "All in English.", "we decided on Paris", False),
            ("zh", "用北京机房。", "我们最终决定用北京机房", False),
            ("en", "用北京机房。", "we decided on Paris", True),
            ("en", "用北京机房。", "我们最终决定用北京机房", False),
        ],
    )
    def test_the_wrong_language(self, language: str, reply: str, material: str, wrong: bool) -> None:
        """A reply in the other language than asked for, though the material is in it, is recorded and used."""
        (sent,) = sending(
            parse(f"summary(language={language!r}, user_first=False)"),
            chat(21, material),
            Replying(lambda _: reply),
            22,
        )
        assert sent.messages[1].text.endswith(reply)
        assert any(isinstance(event, Failed) for event in sent.events) == wrong

    def test_a_heading_alone_is_no_summary(self) -> None:
        """A reply that only repeats the heading is a failure; one that repeats it before a text has it once."""
        chinese = Summary(user_first=False, language="zh")
        (sent,) = sending(chinese, chat(21), Replying(lambda _: "[之前对话摘要]\n"), 22)
        assert [type(event) for event in sent.events] == [Called, Failed]
        assert sent.names == ["s", *numbered(1, 21)]
        (sent,) = sending(chinese, chat(21), Replying(lambda _: "[之前对话摘要]\n好。"), 22)
        assert sent.messages[1].text == "[之前对话摘要]\n好。"

    def test_a_message_over_the_budget(self) -> None:
        """A newest message that fits without the summary is sent without it; one that fits nowhere is left out."""
        strategy = Summary(max_tokens=200, max_summary_tokens=60)
        model = Replying(lambda _: "word " * 58)
        for size, names in ((180, ["m21"]), (300, ["summary:1:m20"])):
            conversation = Conversation("c", (*chat(20, system=False).messages, Message("m21", "user", "word " * size)))
            (sent,) = sending(strategy, conversation, model, 21)
            assert sent.names == names
            assert sent.tokens <= 200
            assert isinstance(sent.events[-1], OverBudget)


@given(st.text(max_size=200), st.integers(0, 30))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    """What is cut is a start of the text and within the limit; what fits is not cut."""
    made = cut(text, limit, COUNTER.text)
    assert text.startswith(made)
    assert COUNTER.text(made) <= limit
    assert made == text or COUNTER.text(text) > limit


@pytest.mark.parametrize(
    ("text", "limit", "made"),
    [
        ("One two three. Four five six.", 5, "One two three."),
        ("one two three four", 2, "one two"),
        ("我们决定了。然后再说。", 5, "我们决定了。"),
    ],
)
def test_where_a_text_is_cut(text: str, limit: int, made: str) -> None:
    """After the last sentence that fits, else after the last word."""
    assert cut(text, limit, COUNTER.text) == made
