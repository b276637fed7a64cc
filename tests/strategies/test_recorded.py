"""`recorded`: what the recorded agent sent, call by call, as far as the recording says."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from ctxbench.harness.engine.plan import RunInputs, default_strategies
from ctxbench.harness.replay import ConversationIndex, RecordedContext, Step, replay
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Call, Compaction, ContextEdit, Conversation, Message, Usage
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.base import StrategyTypeError, Unsupported
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Cleared, Dropped, Summarised
from tests.builders import answering, calling, talk

COUNTER = TokenCounter()
# Calls are answered with a2, a4, a6 and a8.
TALK = talk(
    Message("s0", "system", "Be brief."),
    Message("u1", "user", "Read a."),
    calling("a2", "1"),
    answering("r3", "1", "row 42"),
    Message("a4", "assistant", "It has row 42."),
    Message("u5", "user", "And b?"),
    Message("a6", "assistant", "It is empty."),
    Message("u7", "user", "Thanks."),
    Message("a8", "assistant", "Bye."),
)


def steps(conversation: Conversation, strategy: str = "recorded") -> list[Step]:
    services = RecordedContext(ConversationIndex(conversation, COUNTER))
    return list(replay(conversation, parse(strategy), services))


def sent(*compactions: Compaction, conversation: Conversation = TALK) -> list[str]:
    """Ids of the messages of each call, the summaries by their texts."""
    return [
        " ".join(message.text if ":" in message.id else message.id for message in step.context.messages)
        for step in steps(replace(conversation, compactions=compactions))
    ]


WHOLE = ["s0 u1", "s0 u1 a2 r3", "s0 u1 a2 r3 a4 u5", "s0 u1 a2 r3 a4 u5 a6 u7"]


def test_without_a_compaction_it_sends_everything() -> None:
    """Each context is that of `none`."""
    assert sent() == WHOLE
    assert [step.context for step in steps(TALK)] == [step.context for step in steps(TALK, "none")]


def test_nothing_before_it_is_kept() -> None:
    """From the first call behind it on, the system message, the summary and what came since are sent."""
    assert sent(Compaction("a4", "SUM")) == [*WHOLE[:2], "s0 SUM u5", "s0 SUM u5 a6 u7"]


def test_messages_that_it_kept() -> None:
    """The messages from `first_kept` on follow the summary; a result whose call is summarised goes with it."""
    assert sent(Compaction("a4", "SUM", "a4"))[2] == "s0 SUM a4 u5"
    assert sent(Compaction("a4", "SUM", "r3"))[2] == "s0 SUM a4 u5"
    assert sent(Compaction("a4", "SUM", "a2"))[2] == "s0 SUM a2 r3 a4 u5"


def test_two_compactions() -> None:
    """The second one's summary takes the place of the first one's, in whatever order they are recorded."""
    first, second = Compaction("r3", "ONE"), Compaction("a6", "TWO", "u5")
    expected = [WHOLE[0], "s0 ONE", "s0 ONE a4 u5", "s0 TWO u5 a6 u7"]
    assert sent(first, second) == sent(second, first) == expected


def test_what_it_reports() -> None:
    """The event names the messages that are newly covered; the summary is a message of the user."""
    conversation = replace(TALK, compactions=(Compaction("r3", "ONE"), Compaction("a6", "TWO", "u5")))
    made = steps(conversation)
    assert [len(step.events) for step in made] == [0, 2, 0, 2]
    assert made[1].events[1] == Summarised(("u1", "a2", "r3"), "ONE", by="recorded")
    assert made[3].events[1] == Summarised(("a4",), "TWO", by="recorded")
    assert [message.role for message in made[1].context.messages] == ["system", "user"]


def test_a_compaction_without_a_summary() -> None:
    """An agent that only drops has no model call to pay."""
    conversation = replace(TALK, compactions=(Compaction("a4", "", "a4"),))
    assert sent(*conversation.compactions)[2] == "s0 a4 u5"
    assert steps(conversation)[2].events == (Dropped(("u1", "a2", "r3")),)


def test_a_summary_without_usage_is_estimated() -> None:
    """The messages that it replaces are its prompt, the earlier summary among them, and its text is the answer."""
    conversation = replace(TALK, compactions=(Compaction("r3", "ONE"), Compaction("a6", "TWO", "u5")))
    second = steps(conversation)[3].events[0]
    before = [TALK.messages[0], Message("", "user", "ONE"), TALK.messages[4]]
    tokens = sum(map(COUNTER.message, before)), COUNTER.text("TWO")
    assert second == Called("summariser", "", *tokens, basis="estimated")


def test_a_summary_with_usage_is_charged_by_it() -> None:
    """What the provider counted, read and charged stands in the event."""
    call = Call("m", usage=Usage(900, 70, 600, cost=0.5))
    made = steps(replace(TALK, compactions=(Compaction("a4", "SUM", call=call),)))
    assert made[2].events[0] == Called("summariser", "m", 900, 70, 0.5, basis="recorded", cache_read=600)


def test_a_summary_that_is_not_recorded() -> None:
    """The conversation has no result, and the reason is said; behind the last call it does not matter."""
    with pytest.raises(Unsupported, match=r"summary of a compaction is not in the recording: it is encrypted"):
        sent(Compaction("a4", "[…]", hidden="it is encrypted"))
    assert sent(Compaction("a8", "[…]", hidden="it is encrypted")) == WHOLE


def cleared(*counts: int | None) -> Conversation:
    """The conversation, where the provider cleared so many tool uses in each of its calls."""
    edits = iter(counts)
    messages = tuple(
        replace(message, call=Call("m", edits=(ContextEdit("clear_tool_uses_20250919", 9, next(edits)),)))
        if message.role == "assistant"
        else message
        for message in TALK.messages
    )
    return replace(TALK, messages=messages)


def test_results_that_the_provider_cleared() -> None:
    """The oldest results are placeholders in just the calls that say so; each is reported once."""
    made = steps(cleared(0, 1, 0, 1))
    results = [[message.text for message in step.context.messages if message.role == "tool"] for step in made]
    assert results == [[], ["[cleared]"], ["row 42"], ["[cleared]"]]
    saved = COUNTER.message(TALK.messages[3]) - COUNTER.message(Message("r3", "tool", "[cleared]", answers="1"))
    assert [event for step in made for event in step.events] == [Cleared(("r3",), saved)]


def test_an_edit_that_does_not_say_how_much() -> None:
    """Nobody can tell what was sent."""
    with pytest.raises(Unsupported, match="does not say how many"):
        steps(cleared(0, None, 0, 0))


def test_it_must_be_the_first_stage() -> None:
    """Behind a stage that drops messages nobody can tell where the compaction stood."""
    conversation = replace(TALK, compactions=(Compaction("r3", "SUM"),))
    assert steps(conversation, "recorded | archive")[1].context == steps(conversation)[1].context
    with pytest.raises(StrategyTypeError, match="first stage"):
        steps(conversation, "window(messages=1, user_first=False) | recorded")


def test_it_runs_by_default_where_agents_compacted(tmp_path: Path) -> None:
    """Not where there is nothing to replay, and not where it would take a conversation from all others."""

    def names(*compactions: Compaction) -> tuple[bool, int]:
        file = tmp_path / "talk.jsonl"
        file.write_bytes(replace(TALK, compactions=compactions).to_json())
        chosen = default_strategies(RunInputs((str(file),)))
        return "recorded" in chosen[0], chosen[1]

    assert names() == (False, 0)
    assert names(Compaction("a4", "SUM")) == (True, 0)
    assert names(Compaction("a8", "SUM")) == (False, 0)
    assert names(Compaction("a4", "", hidden="it is encrypted")) == (False, 1)
    assert "recorded" not in default_strategies(RunInputs(("standard",)))[0]


@pytest.mark.parametrize(
    ("sample", "least", "most_none"),
    [
        ("claude-code/opus-4-5_5m_compaction.jsonl", 0.97, 0.3),
        ("claude-code/opus-4-6_1h_compaction.jsonl", 0.97, 0.4),
        ("pi-sessions", 0.997, 0.3),
    ],
)
def test_its_prompts_grow_and_shrink_as_the_recorded_ones(
    recordings: Path, sample: str, least: float, most_none: float
) -> None:
    """Its tokens are correlated with the provider's, call by call; those of the whole history are not."""
    problems = Problems()
    conversations = [each for each in read(find([recordings / sample], problems), problems) if each.compactions]
    assert len(conversations) == 1
    reported, own, whole = prompts(conversations[0])
    assert np.corrcoef(reported, own)[0, 1] >= least
    assert np.corrcoef(reported, whole)[0, 1] <= most_none


@pytest.mark.parametrize(
    ("sample", "ratio"), [("pi-sessions", 1.3), ("codex/rollout-gpt-5.6-sol_unredacted.jsonl", 1.3), ("oh-my-pi", 1.9)]
)
def test_its_prompts_are_as_large_as_the_recorded_ones(recordings: Path, sample: str, ratio: float) -> None:
    """The median call reports at most this multiple of our count: hidden prompts and another encoding are the rest."""
    problems = Problems()
    for conversation in read(find([recordings / sample], problems), problems):
        reported, own, _ = prompts(conversation)
        assert 0.9 <= np.median(reported / own) <= ratio


def prompts(conversation: Conversation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens of each prompt as the provider reported them, of what `recorded` sends, and of the whole history."""
    rows = []
    for step, other in zip(steps(conversation), steps(conversation, "none"), strict=True):
        call = conversation.messages[step.at].call
        if call is not None and call.usage is not None and call.usage.input:
            counts = (sum(map(COUNTER.message, each.context.messages)) for each in (step, other))
            rows.append((call.usage.input, *counts))
    columns = np.array(rows, float).T
    return columns[0], columns[1], columns[2]


def test_encrypted_summaries_of_codex(recordings: Path) -> None:
    """Each of the three sample sessions that were compacted has no result."""
    problems = Problems()
    paths = sorted((recordings / "codex").glob("*compaction*.jsonl"))
    conversations = list(read(find(paths, problems), problems))
    assert len(conversations) == 3
    for conversation in conversations:
        with pytest.raises(Unsupported, match="encrypted"):
            steps(conversation)


@pytest.mark.parametrize("sample", ["gemini-cli", "openhands-v1-events"])
def test_samples_without_a_compaction(recordings: Path, sample: str) -> None:
    """`recorded` sends what `none` sends."""
    problems = Problems()
    for conversation in read(find([recordings / sample], problems), problems):
        pairs = zip(steps(conversation), steps(conversation, "none"), strict=True)
        assert all(one.context == other.context for one, other in pairs)
