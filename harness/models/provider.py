"""Models of any provider by their litellm names, and of any OpenAI-compatible server through an api base.

litellm (the extra `providers`) is imported at the first call: it takes seconds. Its price look-up over the network, its
cache and its messages are off. So are its retries, which would be paid for unseen, and its time-out, which starts anew
with every byte (decision 9). Keys come from the environment, as litellm names them (OPENAI_API_KEY …), and go to the
provider's own host alone: the server of an `api_base` gets the key of `api_key_env`, or "none".

`parallel` holds within one process. A worker process makes one call at a time, so a run makes at most `--jobs`.
"""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from ctxbench.metrics.prices import TokenUsage
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import ToolCall
from ctxbench.scenarios.secrets import without_secrets, without_values
from ctxbench.strategies.base import ModelError

from .cassette import Charge
from .recorded import ModelAnswer, ModelRequest, said
from .settings import ModelAccess

T = TypeVar("T")
_log = logging.getLogger("ctxbench.models")

GIVEN_UP = "was given up for the rest of the run"
"""In the words of every call that is not made because the calls before it failed."""
STRIKES = 20
"""Weight of the calls in a row that are enough. A connection that could not be made weighs as much, a call whose every
try failed half: with five tries that takes 15 s, and a run makes thousands. One whose every try was too many requests
(429) weighs 1, as that provider is there: four at once, 15 s each, are given up after the minute that limits are of."""
LARGEST_REPLY = 64 << 20  # bytes

EmbeddingReply = tuple[list[list[float]], int | None]
"""The vectors of some texts, in their order, and the tokens that the provider reported; None if it did not."""


@dataclass(eq=False)
class Failure(Exception):
    """A call that got no usable answer. Its text says why."""

    why: str
    passing: bool = False  # trying again may help
    final: bool = False  # no other call of this model can work either
    after: float | None = None  # seconds that the provider asks to wait
    strikes: int = STRIKES // 2
    """Weight of the `STRIKES` of calls in a row after which the model is not asked any more, if it is passing."""
    lost: bool = False  # the model may have answered, and the provider may charge for it
    usage: TokenUsage | None = None  # of a lost answer, as the provider reported it


class Provider:
    """Calls models. One that rejected its key, has no credit left, or does not exist is not called again.

    Nor is one to which no connection could be made in all tries of a call, that did not answer in all tries of two
    calls in a row, or that had too many requests in all tries of twenty (`STRIKES`).
    """

    def __init__(self, access: ModelAccess) -> None:
        self._access = access
        self._slots = threading.BoundedSemaphore(access.parallel)
        self._dead: dict[str, str] = {}
        self._strikes = Counter[str]()
        self._logged: set[tuple[str, str]] = set()

    def chat(self, request: ModelRequest, charge: Charge | None = None) -> ModelAnswer:
        """Return the answer to a request. `charge` is told of each try whose answer was lost. Raises ModelError."""

        def call(litellm: Any) -> Any:
            return litellm.completion(
                model=request.model,
                messages=said(request.asked),
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                drop_params=True,  # some models take no temperature
                _skip_mcp_handler=True,  # with tools litellm imports `mcp`, which a plain install has not
                **request.choices(),
                **_form(litellm, request, bool(self._access.api_base)),
                **self._common(),
            )

        return self._retried(request.model, call, _answer, charge)

    def embed(self, model: str, texts: Sequence[str], charge: Charge | None = None) -> EmbeddingReply:
        """Return a vector for each text, from one call, as `chat` does. Raises ModelError."""

        def call(litellm: Any) -> Any:
            return litellm.embedding(model=model, input=list(texts), **self._common())

        return self._retried(model, call, partial(_vectors, texts=len(texts)), charge)

    def _common(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {"timeout": self._access.timeout, "max_retries": 0, "num_retries": 0}
        if self._access.api_base:
            parameters["api_base"] = self._access.api_base
        if self._access.api_base or self._access.api_key_env:
            # Without any, litellm would take the provider's from the environment.
            parameters["api_key"] = os.environ.get(self._access.api_key_env) or "none"
        return parameters

    def _retried(self, model: str, call: Callable[[Any], Any], parse: Callable[[Any], T], charge: Charge | None) -> T:
        access = self._access
        with self._slots:
            if model in self._dead:
                raise ModelError(f"{model}: {self._dead[model]}")
            for attempt in range(1, access.retries + 2):
                litellm = _litellm()  # here, so that its import is not part of a call's time
                try:
                    response = _within(access.timeout, partial(call, litellm))
                    try:
                        result = parse(response)
                    except _UNREADABLE as error:  # the model has answered, so it may charge
                        why = f"its answer cannot be read: {shown(str(error))}"
                        raise Failure(why, passing=True, lost=True) from None
                    self._strikes[model] = 0
                    return result
                except Exception as error:
                    failure = failure_of(error, access)
                # A lost try may be charged by the provider, so it is booked.
                if charge is not None and failure.lost:
                    charge.lose(failure.usage)
                if attempt > access.retries or not failure.passing or (failure.after or 0) > access.patience:
                    break
                if charge is not None and failure.lost:
                    charge.renew()  # which may find the limit reached and end the tries
                wait = failure.after
                if wait is None:
                    wait = min(access.backoff * 2 ** (attempt - 1), access.patience)
                # A user who waits for minutes should know for what.
                if (model, failure.why) not in self._logged:
                    self._logged.add((model, failure.why))
                    again = f"try {attempt + 1} of {access.retries + 1} in {wait:.0f} s (later ones are not told)"
                    _log.warning("%s: %s: %s", model, failure.why, again)
                time.sleep(wait)
        # A failure that does not pass is the provider's considered answer: the row of silent calls ends with it.
        self._strikes[model] = self._strikes[model] + failure.strikes if failure.passing else 0
        if failure.final or self._strikes[model] >= STRIKES:
            self._dead[model] = failure.why if failure.final else f"{GIVEN_UP}: {failure.why}"
        raise ModelError(f"{model}: {failure.why}{f' ({attempt} tries)' if attempt > 1 else ''}")


def _litellm() -> Any:
    """Return litellm, with the session that OpenAI's clients are given: closed with a client, it is made anew."""
    # What these warn of is theirs to mend, and would stand between the lines of a progress bar.
    warnings.filterwarnings("ignore", module=r"(aiohttp|httpx|litellm|openai|pydantic)\b")
    litellm = _confined()
    import httpx
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    if litellm.client_session is None or litellm.client_session.is_closed:
        litellm.client_session = _plain(httpx.Client(verify=get_ssl_configuration()))
    return litellm


@cache
def _confined() -> Any:
    """Import litellm, and have a call of it be one request to one host. Raises MissingExtra.

    A redirect is an error: another host would be handed the prompt, and perhaps the key. litellm's own clients have no
    such setting, so the method that makes them is replaced, and so is the one that makes their connections.
    """
    if find_spec("litellm") is None:
        raise MissingExtra("litellm", "providers")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import tries the network
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else the import reads hosts and keys from the .env of some folder above
    litellm: Any = import_module("litellm")
    import httpcore
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    litellm.suppress_debug_info = True
    litellm.cache = None  # in a plain install it crashes on its first hit
    litellm.DEFAULT_MAX_RETRIES = 0  # calls for embeddings take `max_retries=0` for "as usual", which is 2
    _plain(litellm.module_level_client.client)
    handlers, connections = cast(Any, HTTPHandler), cast(Any, httpcore.SyncBackend)
    create, connect = handlers.create_client, connections.connect_tcp
    handlers.create_client = lambda handler: _plain(create(handler))
    connections.connect_tcp = lambda *to, **how: _bounded(connect(*to, **how))
    return litellm


def _plain(client: Any) -> Any:
    """Have a client of httpx follow no redirect, and take nothing that is compressed: it could stand for gigabytes."""

    def check(response: Any) -> None:
        if (coding := response.headers.get("content-encoding", "identity")) != "identity":
            raise Failure(f"answers compressed ({coding[:20]}): have the gateway before it leave that", lost=True)

    client.follow_redirects = False
    client.headers["accept-encoding"] = "identity"
    client.event_hooks["response"].append(check)
    return client


_call = threading.local()
"""The call of a thread: its `end` on the clock of `time.monotonic`, and the bytes that its reply may still have."""


def _bounded(connection: Any) -> Any:
    """Have the reads of a connection end with the time and the bytes of the call that reads."""
    read, start_tls = connection.read, connection.start_tls

    def bounded_read(most: int, timeout: float | None = None) -> bytes:
        seconds = max(getattr(_call, "end", math.inf) - time.monotonic(), 0.001)
        data: bytes = read(most, seconds if timeout is None else min(timeout, seconds))
        _call.left = getattr(_call, "left", math.inf) - len(data)
        if _call.left < 0:
            raise Failure(f"answered with over {LARGEST_REPLY >> 20} MiB", lost=True)
        return data

    connection.read = bounded_read
    connection.start_tls = lambda *context, **how: _bounded(start_tls(*context, **how))
    return connection


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return or raise what the call does, within that time. Its reads end with it, and so does its thread."""
    # litellm's own time-out starts anew with every byte: at 10 bytes a second `timeout=2` took 26 s (decision 9).
    done = Future[T]()

    def work() -> None:
        _call.end, _call.left = time.monotonic() + seconds, LARGEST_REPLY
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name="ctxbench model call").start()
    return done.result(seconds)


def _form(litellm: Any, request: ModelRequest, own_server: bool) -> dict[str, Any]:
    """Return the parameters that ask for JSON: by schema where the model is known to take one, else any, else none.

    The servers that people run themselves (llama.cpp, vLLM, Ollama) take a schema, whatever the model. Whoever made the
    request reads the answer strictly in any case.
    """
    if request.schema is None or own_server:
        return request.form()
    try:
        if litellm.supports_response_schema(model=request.model):
            return request.form()
        parameters = litellm.get_supported_openai_params(model=request.model) or []
    except Exception:  # litellm does not know the name
        return {}
    return {"response_format": {"type": "json_object"}} if "response_format" in parameters else {}


def _answer(response: Any) -> ModelAnswer:
    if not response.choices:  # litellm takes that for an answer
        raise Failure("answered with no choices", passing=True, lost=True, usage=_reported(response))
    choice = response.choices[0]
    refusal = (getattr(choice.message, "provider_specific_fields", None) or {}).get("refusal")
    calls = tuple(
        ToolCall(call.id or f"call_{at}", _text(call.function.name), _text(call.function.arguments) or "{}")
        for at, call in enumerate(getattr(choice.message, "tool_calls", None) or ())
    )
    finish = choice.finish_reason or ""
    return ModelAnswer(_text(choice.message.content), _reported(response), finish, _text(refusal), calls)


def _vectors(response: Any, texts: int) -> EmbeddingReply:
    rows = sorted(response.data or (), key=lambda row: row["index"])
    vectors, usage = [row["embedding"] for row in rows], _reported(response)
    if len(vectors) != texts or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise Failure(f"answered with {len(vectors)} vectors for {texts} texts", passing=True, lost=True, usage=usage)
    return vectors, None if usage is None else usage.input


def _text(reply: str | None) -> str:
    """Return text that can be stored: half surrogates become U+FFFD, and keys of this machine are hidden."""
    # JSON may escape one half alone, which no encoding can write: counting or storing it would raise.
    return without_values((reply or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _reported(response: Any) -> TokenUsage | None:
    """Return the usage that a response reports. None for none, or the 0 that litellm writes then: ours is charged."""
    usage = getattr(response, "usage", None)
    if usage is None or not usage.prompt_tokens:
        return None
    read = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    counts = (usage.prompt_tokens, usage.completion_tokens or 0, read, written)
    # A negative count would give back what a spend limit has counted.
    if not all(isinstance(count, int) and 0 <= count < 1 << 53 for count in counts) or read + written > counts[0]:
        return None
    return TokenUsage(*counts)


_PASSING = {408, 409, 425, 429}
_GATEWAY_TIMEOUTS = {504, 524}
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading an answer of another form; those of JSON and of pydantic are among them."""
_NO_KEY = re.compile(
    r"missing [\w ]{0,80}(credentials|api key)|(locate|configure) [\w ]{0,80}credentials|credentials were not found",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[ _]?(quota|balance|credit|funds)|billing_(hard_limit_reached|not_active|error)|account is not active"
    r"|exceeded_current_quota|arrearage|credit balance is too low|(used all|out of|not enough) (available )?credits"
    r"|reached (its|your) .{0,40}(spending|usage) limit|PerDay|tokens per day",
    re.IGNORECASE,
)
"""In the answers of providers whose money or quota is used up: codes of OpenAI, Moonshot and DashScope, words of
Anthropic, xAI, DeepSeek and OpenRouter, the quota ids of Gemini's days (RESOURCE_EXHAUSTED is also said of a minute's),
and Bedrock's."""


def failure_of(error: Exception, access: ModelAccess) -> Failure:
    """Return the failure that an exception of litellm means."""
    import httpx

    # litellm gives whatever is no HTTP error a status of its own, and drops codes and bodies: its causes have them
    # (decision 9).
    causes = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and not any(cause is known for known in causes):
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    if failure := next((cause for cause in causes if isinstance(cause, Failure)), None):
        return failure
    response = next((cause.response for cause in causes if isinstance(cause, httpx.HTTPStatusError)), None)

    def caused_by(*kinds: type[BaseException]) -> bool:
        return response is None and any(isinstance(cause, kinds) for cause in causes)

    if response is not None and response.is_redirect:
        to = response.url.join(response.headers.get("location", ""))
        where = shown(str(to.copy_with(query=None, fragment=None, userinfo=b"")))
        why = f"the provider redirects ({response.status_code}) to {where}, which is not followed: nothing was sent "
        return Failure(f'{why}there. If that is right, give its address: MODEL(api_base="…")', final=True)
    if caused_by(TimeoutError, httpx.TimeoutException):
        sent = not caused_by(httpx.ConnectTimeout, httpx.PoolTimeout)
        return Failure(f"no answer within {access.timeout:g} s", passing=True, lost=sent)
    if caused_by(httpx.TransportError):
        sent = not caused_by(httpx.ConnectError, httpx.ProxyError)
        why = "the connection failed or broke off: is the provider, or the api base, reachable?"
        return Failure(why, passing=True, strikes=STRIKES // 2 if sent else STRIKES, lost=sent)
    status: int | None = response.status_code if response is not None else getattr(error, "status_code", None)
    body = text = shown(str(error))
    if response is not None:
        with suppress(httpx.StreamError):  # it was not read
            body = response.text or text
    # Before the statuses: providers say 403 or 429 of money that is used up, which no other key and no waiting mends.
    if status == 402 or (status in (400, 403, 429) and _NO_CREDIT.search(body)):
        return Failure(f"the provider's account has no credit or quota left ({status}): {text}", final=True)
    if status in (401, 403) or _NO_KEY.search(text):
        what = f"the provider refused the key ({status})" if status in (401, 403) else "there is no key"
        remedy = "set its provider's variable in the environment (OPENAI_API_KEY …)"
        if access.api_base:  # a key of the environment is its provider's
            remedy = f"{access.api_base} is sent the key of a variable that is named for it: MODEL(api_key_env='NAME')"
        return Failure(f"{what}: {remedy}", final=True)
    if status == 404:
        return Failure(f"there is no such model at the provider, or the api base is wrong (404): {text}", final=True)
    after: float | None = None
    with suppress(ValueError):  # no number
        seconds = float("nan" if response is None else response.headers.get("retry-after", "nan"))
        after = seconds if 0 <= seconds < math.inf else None
    if status == 429:
        delay = "" if after is None else f", which asks to wait {after:.0f} s"
        return Failure(f"too many requests for the provider (429){delay}", passing=True, after=after, strikes=1)
    # An answer that litellm cannot read is one all the same; a gateway that waited in vain has passed the request on.
    lost = caused_by(*_UNREADABLE) or (response is not None and status in _GATEWAY_TIMEOUTS)
    passing = status is None or status >= 500 or status in _PASSING
    return Failure(f"{text} ({status})" if status else text, passing=passing, after=after, lost=lost)


_SHOWN = 200
_PREFIXES = re.compile(r"^((litellm\.)?\w*(Error|Exception|Timeout)\s*[:\-]\s*)+")


def shown(text: str) -> str:
    """Return a message fit to be shown: one line, printable, not long, without litellm's names and anything secret."""
    text = " ".join(without_secrets(text.partition("Traceback (most recent")[0]).split())
    text = "".join(char if char.isprintable() else "·" for char in _PREFIXES.sub("", text))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
