"""Summaries of summaries, and what a summary stands for when other stages change the history."""

from itertools import count

import msgspec
import pytest
from hypothesis import given

from ctxbench.harness.invariants import conversations
from ctxbench.harness.models import OFFLINE, Models
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, ModelError, Prompt, budget_of
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Dropped, Summarised
from ctxbench.strategies.summary import Summary
from tests.builders import answering, calling, talk
from tests.strategies.scripted_models import (
    COUNTER,
    Replying,
    chat,
    check_invariants,
    numbered,
    refusing,
    sending,
    summarised,
)


class TestLevels:
    def test_summaries_of_summaries(self) -> None:
        """With fan_in=2 every second round the level above takes in the level below, which begins anew.

        One message a round:  1 | 1 1→2 | 1 | 1 1→2 | …; sent are the higher level, then the lower.
        """
        numbers = count(1)
        model = Replying(lambda _: f"reply {next(numbers)}")
        sent = sending(
            Summary(user_first=False, threshold=2, levels=2, fan_in=2), chat(7, system=False), model, *range(3, 8)
        )
        assert [step.names[:-2] for step in sent] == [
            ["summary:1:m1"],
            ["summary:2:m2"],
            ["summary:2:m2", "summary:1:m3"],
            ["summary:2:m4"],
            ["summary:2:m4", "summary:1:m5"],
        ]
        rounds = [(event.level, event.replaced) for event in summarised(sent)]
        assert rounds == [
            (1, ("m1",)),
            (1, ("m2",)),
            (2, ("m1", "m2")),
            (1, ("m3",)),
            (1, ("m4",)),
            (2, ("m3", "m4")),
            (1, ("m5",)),
        ]
        heading = "[Summary of the conversation so far]\n"
        assert model.prompts[2].material == (f"{heading}reply 2",)
        assert model.prompts[5].material == (f"{heading}reply 3", f"{heading}reply 5")

    def test_a_level_that_fails_goes_on(self) -> None:
        """If the level above cannot be written, the level below takes in more, and it is tried after the next round."""
        model = Replying(lambda prompt: refusing(prompt) if len(model.prompts) == 3 else "ok")
        sent = sending(
            Summary(user_first=False, threshold=2, levels=2, fan_in=2), chat(6, system=False), model, *range(3, 7)
        )
        assert [step.names[:-2] for step in sent] == [
            ["summary:1:m1"],
            ["summary:1:m2"],
            ["summary:2:m3"],
            ["summary:2:m3", "summary:1:m4"],
        ]

    def test_what_was_shown_is_of_what_is_newly_replaced(self) -> None:
        """The earlier summary, shown again at each round, is not in the count; the arguments of tool calls are."""
        said = talk(
            *[
                each
                for n in range(6)
                for each in (("user", f"go {n}"), calling(f"c{n}", f"x{n}"), answering(f"r{n}", f"x{n}"))
            ]
        )
        named = Conversation("c", tuple(msgspec.structs.replace(m, id=f"{at}") for at, m in enumerate(said.messages)))
        sent = sending(Summary(threshold=3), named, None, 6, 12, 18)
        texts = {m.id: [m.text, *(call.arguments for call in m.calls)] for m in named.messages}
        rounds = [event for step in sent for event in step.events if isinstance(event, Called | Summarised)]
        assert len(rounds) == 6
        for called, done in zip(rounds[::2], rounds[1::2], strict=True):
            assert isinstance(called, Called)
            assert isinstance(done, Summarised)
            about = sum(COUNTER.text(part) for name in done.replaced for part in texts[name])
            assert called.about == called.shown == about > 0


class TestInAChain:
    def test_injected_system_messages_do_not_matter(self) -> None:
        """A stage before that puts another system message into each call leaves the summary as it is."""
        conversation = chat(30)
        services = RecordedContext(ConversationIndex(conversation, COUNTER), Replying())
        view = Summary(every=5).start(services)
        for at in range(26, 31):
            facts = Message(f"facts:{at}", "system", f"facts {at}")
            sent = view(Context(Messages.of((conversation.messages[0], facts)) + conversation.messages[1:at]))
            assert [message.id for message in sent.messages[:3]] == ["s", facts.id, "summary:1:m4"]
        assert len([event for event in services.drain()[0] if isinstance(event, Summarised)]) == 1

    def test_other_wording_of_summarised_messages_does_not_matter(self) -> None:
        """A summarised message that now has another text (an archived result that was expanded) is still in it."""
        conversation = chat(25)
        services = RecordedContext(ConversationIndex(conversation, COUNTER), Replying())
        view = Summary(user_first=False).start(services)
        view(Context(Messages.of(conversation.messages)))
        other = [*conversation.messages[:2], Message("m2", "assistant", "other"), *conversation.messages[3:]]
        sent = view(Context(Messages.of(tuple(other))))
        assert [message.id for message in sent.messages] == ["s", "summary:1:m5", *numbered(6, 25)]
        assert len([event for event in services.drain()[0] if isinstance(event, Summarised)]) == 1

    def test_the_summary_stands_for_what_a_window_dropped_since(self) -> None:
        """If a stage before drops summarised messages, one, some or all, the summary is still sent."""
        conversation = chat(32)
        view = Summary().start(RecordedContext(ConversationIndex(conversation, COUNTER), Replying()))
        view(Context(Messages.prefix(conversation.messages, 26)))
        rest = Messages.of(conversation.messages)
        sent = view(Context(rest[:1] + rest[4:33]))
        assert [message.id for message in sent.messages] == ["s", "summary:1:m12", *numbered(13, 32)]
        assert [message.id for message in view(Context(rest[20:])).messages] == ["summary:1:m12", *numbered(20, 32)]
        sent = view(Context(rest[:1] + rest[20:]))
        assert [message.id for message in sent.messages] == ["s", "summary:1:m12", *numbered(20, 32)]

    def test_a_late_result_of_a_summarised_call(self) -> None:
        """It cannot be sent without its call; it is recorded once, and the next round takes it in."""
        said = list(chat(20, system=False).messages)
        said[1] = calling("c", "x")
        said[8] = answering("late", "x")
        sent = sending(Summary(threshold=4, every=3), Conversation("c", tuple(said)))
        assert "c" in summarised(sent)[0].replaced
        assert all("late" not in step.names for step in sent)
        assert [event for step in sent for event in step.events if isinstance(event, Dropped)] == [Dropped(("late",))]
        assert "late" in {name for event in summarised(sent) for name in event.replaced}

    def test_two_that_summarise(self) -> None:
        """In `window | summary` every message that the window drops is in the summary or was sent until then."""
        sent = sending(parse("window(messages=14) | summary(threshold=6)"), chat(40), None, *range(2, 42))
        covered = {name for event in summarised(sent) for name in event.replaced}
        assert sent[-1].names[:2] == ["s", "summary:1:m34"]
        assert covered | set(sent[-1].names) >= set(numbered(1, 40))
        assert sum(len(event.replaced) for event in summarised(sent)) == len(covered)


def flaky(prompt: Prompt) -> str:
    """Fails for every third number of messages, and talks too much."""
    if len(prompt.about) % 3 == 0:
        raise ModelError("refused")
    return "word " * 30


@pytest.mark.parametrize("model", [OFFLINE, Replying(), Replying(flaky)], ids=["offline", "replying", "flaky"])
@pytest.mark.parametrize(
    "text",
    [
        "summary(threshold=4, every=2)",
        "summary(threshold=5, max_tokens=150, max_summary_tokens=40)",
        "summary(threshold=99, max_tokens=120, max_summary_tokens=10, levels=3, fan_in=2)",
        "session_summary(token_threshold=60, preserve_recent=3, max_summary_tokens=20)",
        "session_summary(token_threshold=60, preserve_recent=1, levels=2, fan_in=2, max_input_tokens=30)",
        "smart(window=300, system=20, memory=0, max_summary_tokens=20)",
        "smart(window=150, system=10, memory=0.1, max_summary_tokens=15, first_turns=1, last_messages=2)",
        "smart(window=80, system=0, memory=0, max_summary_tokens=5, threshold=0.5, target=0.3)",
        "smart(window=150, system=0, memory=0, max_summary_tokens=15, first_turns=0, last_messages=1, keep='critical')",
    ],
)
@given(conversation=conversations())
def test_invariants(text: str, model: Models, conversation: Conversation) -> None:
    """On any conversation, whatever the model does: order, structure, budget, and no message lost without trace."""
    strategy = parse(text)
    check_invariants(text.partition("(")[0], strategy, conversation, budget_of(strategy), model)
