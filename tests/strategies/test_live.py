"""Live strategies: a step is shown what is new, keeps its own state, and asks the run's model in shapes it knows."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from hypothesis import given

from ctxbench.harness.invariants import check, conversations
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies import live
from ctxbench.strategies.base import ModelError, Prompt, is_copyable
from ctxbench.strategies.chain import Chain
from ctxbench.strategies.events import Called
from ctxbench.strategies.functions import StepError
from ctxbench.strategies.services import ChatServices
from ctxbench.strategies.window import Window
from tests.builders import talk
from tests.strategies.stubs import Stub, events, played

Dicts = list[dict[str, Any]]
SAID = talk(
    *(("system", "s"), ("user", "a"), ("assistant", "b")),
    *(("user", "c"), ("assistant", "d"), ("user", "e"), ("assistant", "f")),
)


def newest(services: ChatServices, n: int = 2) -> Any:
    """Send the newest messages."""
    said: Dicts = []

    def step(new: Dicts) -> Dicts:
        said.extend(new)
        del said[:-n]
        return said

    return step


class Newest:
    """Send the newest messages, from an object with an asynchronous step."""

    def __init__(self, services: ChatServices, n: int = 2) -> None:
        self.said: Dicts = []
        self.n = n

    async def __call__(self, new: Dicts) -> Dicts:
        await asyncio.sleep(0)
        self.said += new
        return self.said[-self.n :]


def in_a_loop(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a loop of its own, on a thread of its own: a browser test may have left a loop on this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def opened_later(services: ChatServices, n: int = 2) -> Any:
    """Send the newest messages, opened asynchronously."""
    await asyncio.sleep(0)
    return newest(services, n)


def sent(strategy: Any, conversation: Conversation = SAID) -> list[list[str]]:
    return [[message.text for message in step.context.messages] for step in played(strategy, conversation)]


@pytest.mark.parametrize("open_step", [newest, Newest, opened_later])
def test_a_step_keeps_its_state_for_one_conversation(open_step: Any) -> None:
    """Functions and classes, sync and async, send the same; a second conversation begins anew."""
    kind = live(open_step, fails="what matters was said earlier")
    for _ in range(2):
        assert sent(kind(n=3)) == [["s", "a"], ["a", "b", "c"], ["c", "d", "e"]]
    assert sent(kind()) == [["s", "a"], ["b", "c"], ["d", "e"]]
    assert kind(n=3) == kind(n=3) != kind()
    assert (kind.__doc__, kind.fails) == (open_step.__doc__, "what matters was said earlier")
    assert not is_copyable(kind())


def test_a_step_is_shown_only_what_is_new() -> None:
    """The first call has all messages so far, each later one those since the last; they are dicts of OpenAI."""
    shown: list[Dicts] = []

    def open_step(services: ChatServices) -> Any:
        return lambda new: shown.append(new) or []

    assert sent(live(open_step)()) == [[], [], []]
    assert [[message["content"] for message in new] for new in shown] == [["s", "a"], ["b", "c"], ["d", "e"]]
    assert shown[0][0] == {"id": "m0", "role": "system", "content": "s"}


def test_an_async_step_runs_inside_a_running_loop() -> None:
    """A notebook, whose own loop is running, replays asynchronous steps as a program does."""

    async def notebook() -> list[list[str]]:
        return sent(live(Newest)())

    assert in_a_loop(notebook()) == sent(live(newest)())


@given(conversation=conversations())
def test_invariants(conversation: Conversation) -> None:
    """A step that sends all that it was shown keeps every invariant, whether or not it keeps the ids."""

    def everything(services: ChatServices, ids: bool = True) -> Any:
        said: Dicts = []

        def step(new: Dicts) -> Dicts:
            said.extend(new if ids else [{key: message[key] for key in message if key != "id"} for message in new])
            return said

        return step

    check(live(everything)(), conversation)
    check(live(everything)(ids=False), conversation)


def test_it_stands_first_in_a_chain() -> None:
    """A step cannot take back what it was shown: behind a strategy that drops messages it is refused."""
    first = Chain((live(newest)(n=5), Window(messages=3, user_first=False)))
    assert sent(first)[-1] == ["c", "d", "e"]
    with pytest.raises(StepError, match="newest has read messages that were changed since: it must be the first"):
        sent(Chain((Window(messages=2, user_first=False), live(newest)())))


def test_what_is_no_step_is_refused() -> None:
    """A function without a place for the services has no result, and neither has an answer that is no list."""
    with pytest.raises(SpecError, match="a function takes ChatServices first"):
        live(lambda: None)
    with pytest.raises(StepError, match="returned NoneType, not a list of messages"):
        sent(live(lambda services: lambda new: None)())


def asking(ask: Any, reply: Any = lambda prompt: "so far") -> tuple[Stub, Any]:
    """A replay of one call whose step asks the model, and the models that were asked."""
    models = Stub(reply=reply)

    def open_step(services: ChatServices) -> Any:
        return lambda new: [{"role": "system", "content": ask(services)}]

    return models, played(live(open_step)(), talk(("user", "hi"), ("assistant", "yes")), models)[0]


TALK: Any = [{"role": "system", "content": "Sum up."}, {"role": "user", "content": "a\nb"}]


def by_client(services: ChatServices) -> str:
    response = services.client.chat.completions.create(model="any", messages=TALK, max_tokens=9, temperature=0)
    assert response.choices[0].message.role == "assistant"
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.completion_tokens
    return str(response.choices[0].message.content)


async def awaited(services: ChatServices) -> str:
    response = await services.async_client.chat.completions.create(
        model="any", messages=TALK, max_tokens=9, temperature=0
    )
    return str(response.choices[0].message.content)


@pytest.mark.parametrize(
    "ask",
    [
        lambda services: services.complete(TALK, max_tokens=9, temperature=0),
        by_client,
        lambda services: in_a_loop(awaited(services)),
    ],
)
def test_the_model_answers_in_every_shape(ask: Any) -> None:
    """A call, OpenAI's client and its asynchronous one send the same prompt, and the strategy is charged for it."""
    models, step = asking(ask)
    assert models.prompts == [Prompt("Sum up.\n\n{conversation}", ("a", "b"), 9, temperature=0)]
    assert step.context.messages[0].text == "so far"
    assert [called.model for called in events(step, Called)] == ["stub"]


def test_prompts_are_sent_as_they_are_written() -> None:
    """One text is sent to the letter, several have their roles, and a program's own placeholder is not filled."""
    said = [
        "one\ntwo",
        [{"role": "user", "content": [{"type": "text", "text": "x"}]}, {"role": "assistant", "content": "y"}],
        [{"role": "developer", "content": "fill {conversation}"}, {"role": "user", "content": "z"}],
    ]
    texts = []
    for messages in said:
        models, _ = asking(lambda services, messages=messages: services.complete(messages))
        texts.append(models.prompts[0].text())
    assert texts == ["one\ntwo", "user: x\nassistant: y", "fill {conversation}\nz"]


@pytest.mark.parametrize(
    ("asked", "refused", "said"),
    [
        ({"tools": [{"type": "function"}]}, openai.BadRequestError, "has no tools"),
        ({"n": 2}, openai.BadRequestError, "has no n"),
        ({"stream": True}, openai.BadRequestError, "has no stream"),
    ],
)
def test_requests_that_need_more_than_text_are_refused(asked: Any, refused: type[Exception], said: str) -> None:
    """A request for tools, a stream or several replies fails as it would at a provider that has none."""
    with pytest.raises(refused, match=said):
        asking(lambda services: services.client.chat.completions.create(model="any", messages=TALK, **asked))


def test_a_model_s_failure_is_the_client_s() -> None:
    """Where the model gives no answer the client raises what OpenAI's does, with the reason."""

    def away(prompt: Prompt) -> str:
        raise ModelError("the model is away")

    with pytest.raises(openai.InternalServerError, match="the model is away"):
        asking(by_client, away)
    with pytest.raises(openai.NotFoundError, match="chat completions alone"):
        asking(lambda services: services.client.models.list())


def test_counts_and_the_clock_are_the_recording_s() -> None:
    """Tokens are exact, the clock is the recorded one, and the class's services are at hand."""
    seen: list[Any] = []

    def look(services: ChatServices) -> str:
        seen.append((services.count_tokens("hello world"), services.now, services.conversation, services.context.now))
        return "x"

    asking(look)
    assert seen == [(2, None, talk(("user", "hi")).id, None)]
