"""The language of headings, prompts and placeholders: that of the conversation, decided once."""

import dataclasses

import pytest

from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.chain import NAMED, Chain, parse, strategies
from ctxbench.strategies.parts.language import ConversationLanguage, user_language
from tests.strategies.scripted_models import Replying
from tests.strategies.stubs import played

ENGLISH = "Which gate does my flight to Lisbon leave from on Friday? "
CHINESE = "我星期五飞里斯本的航班从哪个登机口出发？"
LOG = "2026-03-02 ERROR gate service timed out after 30 s, retrying. " * 40

WRITERS = (
    "summary(threshold=3)",
    "session_summary(token_threshold=60)",
    "smart(window=400, system=40, max_summary_tokens=20)",
    "retrieval(recent=1)",
    "layered(recent=1)",
    "facts(extractor='model')",
    "archive(threshold=200, fresh=False)",
    "archive(threshold=200, summariser='run')",
    "focus(limit=600, system=0, functions=0, truncation='dynamic_summary', max_summary_tokens=30)",
    "focus(limit=600, system=0, functions=0, truncation='conversation_merge', run=30, ratio=0.6)",
    "tiered(limit=600, recall=100, truncation='conversation_merge')",
)


def talk(text: str, turns: int = 12) -> Conversation:
    """Turns of question, call, result and answer. System prompt and tool results are English, whatever the user's."""
    said = [Message("s", "system", "You are the assistant of an airport. Be brief.")]
    for at in range(turns):
        call = ToolCall(f"call{at}", "gates", '{"flight": "LX 2084"}')
        said += [
            Message(f"u{at}", "user", f"{text}{at}"),
            Message(f"c{at}", "assistant", calls=(call,)),
            Message(f"t{at}", "tool", f"Gate B{at}. {LOG}" if at == 2 else f"Gate B{at}.", answers=call.id),
            Message(f"a{at}", "assistant", f"{text}B{at}"),
        ]
    return Conversation("talk", tuple(said))


def written(text: str, spec: str) -> str:
    """Return all that a strategy wrote, but the user's words and signs: messages, placeholders, tools, instructions."""
    conversation = talk(text)
    recorded = set(conversation.messages)
    models = Replying(lambda _: "B12")
    steps = played(parse(spec), conversation, models)
    texts = {message.text for step in steps for message in step.context.messages if message not in recorded}
    texts |= {tool.description + tool.parameters for step in steps for tool in step.context.tools}
    texts |= {prompt.instruction for prompt in models.prompts}
    return "\n".join(texts).translate({ord(sign): None for sign in f"{text}📎━…"})


@pytest.mark.parametrize("spec", WRITERS)
def test_a_strategy_writes_in_the_language_of_the_user(spec: str) -> None:
    """An English conversation has not one Chinese character from us; a Chinese one has Chinese headings."""
    assert written(ENGLISH, spec).isascii()
    assert not written(CHINESE, spec).isascii()


@pytest.mark.parametrize("spec", WRITERS)
def test_a_given_language_is_written_whatever_the_user_s(spec: str) -> None:
    """`language='zh'` gives an English conversation what it gave before there was `auto`."""
    assert not written(ENGLISH, spec.removesuffix(")") + ", language='zh')").isascii()


def test_every_language_is_auto_by_default() -> None:
    """No strategy with a `language` writes Chinese to everybody."""
    defaults = {
        name: field.default
        for name, kind in strategies().items()
        for field in dataclasses.fields(kind)
        if field.name == "language"
    }
    assert set(defaults) >= {"summary", "session_summary", "smart", "facts", "layered", "retrieval", "archive"}
    assert set(defaults.values()) == {"auto"}


def test_the_documents_variants_are_chinese() -> None:
    """Every preset that follows a design document to the letter states `language='zh'` in each stage that has one."""
    for name, composition in NAMED.items():
        strategy = parse(composition.chain.replace("'hnsw'", "'exact'"))
        stages = strategy.stages if isinstance(strategy, Chain) else (strategy,)
        languages = {stage.language for stage in stages if hasattr(stage, "language")}
        letter = name.endswith("_document") or name == "layered_smart_cached"
        assert languages <= ({"zh"} if letter else {"auto"})


def user(*texts: str) -> Messages:
    return Messages.of([Message(f"u{at}", "user", text) for at, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (("Hello.",), "en"),
        (("你好",), "zh"),
        (("你好", LOG), "zh"),  # as many in both: the first
        ((LOG, "看看这个日志", "为什么超时？"), "zh"),  # a message counts once, however long
        (("1.", "…", "继续"), "zh"),  # the first two have no letter
        ((), "en"),
    ],
)
def test_the_language_of_most_user_messages(texts: tuple[str, ...], language: str) -> None:
    """Each message counts once, so that a pasted log does not outvote the user."""
    assert user_language(user(*texts)) == language


def test_other_roles_count_only_without_a_user() -> None:
    """The system prompt and tools of a Chinese conversation are often English."""
    system, answer = Message("s", "system", "Be brief."), Message("a", "assistant", "好的。我来看看。")
    assert user_language((system, answer, Message("u", "user", "你好"))) == "zh"
    assert user_language((answer, system)) == "zh"


def test_it_is_decided_once() -> None:
    """By the history up to the first text that is written; what comes later does not change headings."""
    language = ConversationLanguage("auto")
    language.read(user("hi"))
    language.read(user("hi", "请帮我订票", "星期五"))
    assert language.decided == "zh"
    language.read(user("hi", "English", "from", "now", "on"))
    assert language.decided == "zh"
