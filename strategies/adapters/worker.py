"""The worker of `process`: opens adapters and calls their steps in the Python that it runs in, for another process."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import msgspec

from ctxbench.scenarios.errors import UserError

from ..base import ModelError, Prompt
from ..events import Event
from ..functions import Step, finished
from ..services import ChatServices
from .process import (
    GREETING,
    CompletionQuestion,
    EventReport,
    OpenRequest,
    Question,
    Request,
    StepRequest,
    TokensQuestion,
    VersionRequest,
    WorkerAnswer,
    WorkerFailure,
    read_frame,
    write_frame,
)


def serve() -> None:
    """WorkerAnswer requests until the other process is gone."""
    channel, steps = Channel(), OpenSteps()
    while True:
        request = channel.request()
        try:
            reply = msgspec.msgpack.encode(WorkerAnswer(steps.answer(request, channel)))
        except (Exception, SystemExit) as error:  # a library may raise, or exit, as it likes
            reply = msgspec.msgpack.encode(WorkerFailure(_reason(error), isinstance(error, ModelError)))
        channel.send(reply)


def _reason(error: BaseException) -> str:
    """Return an error in a line, with the place where it was raised if it is no message to the user."""
    reason = str(error)
    if not isinstance(error, UserError):
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    return reason.encode(errors="replace").decode()


class Channel:
    """The other process, at the other end of the standard input and output. Libraries get nothing of either."""

    def __init__(self) -> None:
        self._input, self._output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # What a library prints goes to standard error: in the channel it would be taken for the length of a message.
        os.dup2(2, 1)
        self._received: SimpleQueue[bytes] = SimpleQueue()
        self._lock = Lock()
        self._output.write(GREETING)
        self._output.flush()
        # A thread reads all the time, so the end of the other process
        # is noticed while a library works, which may take minutes.
        Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            while True:
                self._received.put(read_frame(self._input))
        except EOFError:  # nobody waits for an answer any more
            os._exit(0)

    def request(self) -> Request:
        """Return the next request."""
        request: Request = msgspec.msgpack.decode(self._received.get(), type=Request)
        return request

    def send(self, message: bytes) -> None:
        """Send a message. It goes nowhere if the other process is gone: this one ends then."""
        write_frame(self._output, message)

    def ask(self, question: Question) -> Any:
        """Return the answer to a question, from any thread. Raises ModelError."""
        # A question and its answer go together: with two threads asking at once each might take the other's answer.
        with self._lock:
            self.send(msgspec.msgpack.encode(question))
            said = msgspec.msgpack.decode(self._received.get(), type=WorkerAnswer | WorkerFailure)
        if isinstance(said, WorkerFailure):
            raise ModelError(said.why)
        return said.value


class RemoteContext:
    """The services of a conversation that is replayed in the other process, as `ChatServices` needs them."""

    def __init__(self, channel: Channel, conversation: str, now: float | None) -> None:
        self._channel, self.conversation, self.now = channel, conversation, now
        self._tokens: dict[str, int] = {}

    def complete(self, prompt: Prompt) -> str:
        """Return the summariser's reply. Raises ModelError."""
        reply: str = self._channel.ask(CompletionQuestion(prompt))
        return reply

    def record(self, event: Event) -> None:
        """Report an action of the strategy at this step."""
        self._channel.ask(EventReport(event))

    def text_tokens(self, text: str) -> int:
        """Return the tokens of a text, which are asked for once."""
        if text not in self._tokens:
            self._tokens[text] = self._channel.ask(TokensQuestion(text))
        return self._tokens[text]


class OpenSteps:
    """The steps of the conversations that are open, by number."""

    def __init__(self) -> None:
        self._steps: dict[int, tuple[Step, RemoteContext]] = {}
        self._opened = 0

    def answer(self, request: Request, channel: Channel) -> Any:
        """Return the answer to a request. Raises whatever the library raises."""
        match request:
            case VersionRequest():
                try:
                    return version(request.package)
                except PackageNotFoundError:
                    return None
            case OpenRequest():
                for number in request.closed:
                    del self._steps[number]
                remote = RemoteContext(channel, request.conversation, request.now)
                module, _, name = request.adapter.partition(":")
                open_step = getattr(import_module(module), name).open_step
                services = ChatServices(remote)  # type: ignore[arg-type]  # it has what ChatServices uses
                self._opened += 1
                self._steps[self._opened] = (finished(open_step(services, **request.parameters)), remote)
                return self._opened
            case StepRequest():
                step, remote = self._steps[request.step]
                remote.now = request.now
                sent = finished(step(request.new))
                return list(sent) if isinstance(sent, Iterable) and not isinstance(sent, str | Mapping) else sent
