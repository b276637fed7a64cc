"""Run adapters in other Pythons: libraries whose versions clash, or that need a newer Python, then stand in one table.

An interpreter runs with our own code, lent by its path, so that its environment needs the library and msgspec alone
and both sides are of one version. One worker for each interpreter serves all conversations of this process. It is
spoken to over its standard input and output, in MessagePack after four bytes of length: it answers each request, and
asks back meanwhile for replies of the summariser and for token counts. It ends when this process does.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock, Timer
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import msgspec

from ctxbench.scenarios.errors import SpecError, WorkerError

from ..base import ModelError, Prompt
from ..events import Event

if TYPE_CHECKING:
    from ..functions import ChatDict, Step
    from ..services import ChatServices

GREETING = b"ctxbench\n"
"""First bytes of a worker, which tell it from any other program."""

_TOO_OLD, _NO_MSGSPEC = 83, 84

# Any Python must be able to read this, also one that can read nothing else of ours. The package is made known by its
# path alone: its folder may be a site-packages, whose other packages are none of this interpreter's.
_BOOTSTRAP = f"""
import sys
if sys.version_info < (3, 11):
    sys.exit({_TOO_OLD})
sys.path[:] = [place for place in sys.path if place]
try:
    import msgspec
except ImportError:
    sys.exit({_NO_MSGSPEC})
from importlib.util import module_from_spec, spec_from_file_location
folder = sys.argv[1]
spec = spec_from_file_location("ctxbench", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["ctxbench"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["ctxbench"])
from ctxbench.strategies.adapters.worker import serve
serve()
"""

_SECONDS_TO_GREET = 60.0
_SECONDS_TO_END = 5.0


class VersionRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for the version of a package, which is None if it is not installed."""

    package: str


class OpenRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for the number of a step, opened by an adapter for a conversation."""

    adapter: str
    """`module:name`."""
    parameters: dict[str, Any]
    conversation: str
    now: float | None
    closed: list[int]
    """Numbers of the steps that are no longer used."""


class StepRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for the messages that a step sends after new ones."""

    step: int
    new: list[dict[str, Any]]
    now: float | None


class CompletionQuestion(msgspec.Struct, frozen=True, tag=True):
    """Asks back for the summariser's reply."""

    prompt: Prompt


class TokensQuestion(msgspec.Struct, frozen=True, tag=True):
    """Asks back for the tokens of a text."""

    text: str


class EventReport(msgspec.Struct, frozen=True, tag=True):
    """Tells what the strategy did at this step."""

    event: Event


class WorkerAnswer(msgspec.Struct, frozen=True, tag=True):
    """Answers a request or a question."""

    value: Any


class WorkerFailure(msgspec.Struct, frozen=True, tag=True):
    """Answers that there is no answer, and why."""

    why: str
    by_model: bool = False
    """Whether a ModelError is the reason."""


Request = VersionRequest | OpenRequest | StepRequest
Question = CompletionQuestion | TokensQuestion | EventReport
FromWorker = WorkerAnswer | WorkerFailure | Question


def write_frame(stream: IO[bytes], message: bytes) -> None:
    """Write a message after its length."""
    stream.write(len(message).to_bytes(4) + message)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Return the next message of a stream. Raises EOFError where the stream ends."""
    head = stream.read(4)
    message = stream.read(int.from_bytes(head))
    if len(head) < 4 or len(message) < int.from_bytes(head):
        raise EOFError
    return message


class Interpreter(NamedTuple):
    """A Python, and the library that runs in it; without one, every library that is not installed here."""

    path: str
    library: str = ""


def interpreter(text: str) -> Interpreter:
    """Return the interpreter of a text, `PATH` or `LIBRARY=PATH`. Raises SpecError if there is no such program."""
    match = re.fullmatch(r"(?:([\w.-]+)=)?(.+)", text, re.DOTALL)
    library, path = match.groups("") if match else ("", text)
    place = os.path.expanduser(path)
    if os.path.isdir(place):
        raise SpecError(f"--adapter-python {text}: is a folder: name the Python in it, such as bin/python")
    program = shutil.which(place)
    if program is None:
        raise SpecError(f"--adapter-python {text}: there is no such program")
    return Interpreter(os.path.abspath(program), re.sub(r"[-_.]+", "-", library).lower())


_interpreters: tuple[Interpreter, ...] = ()
_workers: dict[str, Worker] = {}


def use_interpreters(interpreters: Iterable[Interpreter]) -> None:
    """Have adapters of this process run in these interpreters from now on. Engine workers are told the same."""
    global _interpreters
    _interpreters = tuple(interpreters)


def interpreters_in_use() -> tuple[Interpreter, ...]:
    """Return the interpreters that adapters of this process run in."""
    return _interpreters


def place_of(library: str) -> str | None:
    """Return the path of the interpreter that a library runs in; None = it runs here, or nowhere.

    Raises WorkerError for an interpreter that cannot be started.
    """
    for path, name in _interpreters:
        if name == library:
            return path
    try:
        version(library)
    except PackageNotFoundError:
        return next((path for path, name in _interpreters if not name and _worker(path).version(library)), None)
    return None


def version_of(library: str) -> str:
    """Return a library's version where it runs. Raises PackageNotFoundError if it is not installed there."""
    path = place_of(library)
    found = version(library) if path is None else _worker(path).version(library)
    if found is None:
        raise PackageNotFoundError(library)
    return found


def remedy(library: str) -> str:
    """Return the end of the sentence that says how to install a library that was not found."""
    looked = [path for path, name in _interpreters if name in ("", library)]
    if not looked:
        return ", or name a Python that has it with --adapter-python"
    return f"; {', '.join(looked)} has no {library} either"


def open_step(path: str, adapter: str, services: ChatServices, parameters: Mapping[str, Any]) -> Step:
    """Open a conversation by an adapter, `module:name`, in another interpreter.

    It and the step raise WorkerError, and ModelError where a model's refusal was the reason.
    """
    worker = _worker(path)
    closed, worker.closed[:] = worker.closed[:], []
    request = OpenRequest(adapter, dict(parameters), services.conversation, services.now, closed)
    number = worker.ask(request, services)

    def step(new: list[ChatDict]) -> Any:
        return worker.ask(StepRequest(number, new, services.now), services)

    # The callback holds the list and not the step, which it would otherwise keep alive. It may run at any moment, also
    # while the worker answers, so it only notes the number.
    finalize(step, worker.closed.append, number)
    return step


class Worker:
    """A process of another interpreter, seen from here."""

    def __init__(self, path: str) -> None:
        self.path, self._lock = path, Lock()
        self._versions: dict[str, str | None] = {}
        self._decoder = msgspec.msgpack.Decoder(FromWorker)
        self.closed: list[int] = []
        """Numbers of the steps that are no longer used. The worker is told of them when the next one is opened."""
        try:
            # A session of its own: Ctrl-C at a terminal is for us to hear, and the worker ends with its input.
            self._process = subprocess.Popen(
                [path, "-c", _BOOTSTRAP, str(Path(__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"{path}: cannot be started: {error.strerror or error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._await_greeting()

    def _await_greeting(self) -> None:
        # A program that is no Python may wait for input for ever; killing it ends the read below.
        timer = Timer(_SECONDS_TO_GREET, self._process.kill)
        timer.start()
        try:
            if self._output.read(len(GREETING)) == GREETING:
                return
        finally:
            timer.cancel()
        match self.end():
            case code if code == _TOO_OLD:
                why = "is older than Python 3.11"
            case code if code == _NO_MSGSPEC:
                why = f"has no msgspec: {self.path} -m pip install msgspec"
            case code:
                why = f"is no Python that adapters can run in: it ended with exit code {code}"
        raise WorkerError(f"{self.path}: {why}")

    @property
    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def version(self, package: str) -> str | None:
        """Return the version of a package there, or None if it is not installed."""
        if package not in self._versions:
            self._versions[package] = self.ask(VersionRequest(package))
        return self._versions[package]

    def ask(self, request: Request, services: ChatServices | None = None) -> Any:
        """Return the answer to a request, and answer meanwhile what the worker asks back of the services."""
        message, refusals = msgspec.msgpack.encode(request), list[ModelError]()
        with self._lock:
            try:
                said = self._sent(message)
                while isinstance(said, Question):
                    assert services is not None
                    said = self._sent(msgspec.msgpack.encode(_answer(said, services, refusals)))
            except BaseException:  # what the worker says next would be taken for another answer
                self.end()
                raise
        if isinstance(said, WorkerAnswer):
            return said.value
        # The exception never left this process: the worker was told
        # its text, and says that it came to nothing for that.
        raise refusals[-1] if said.by_model and refusals else WorkerError(said.why)

    def _sent(self, message: bytes) -> FromWorker:
        """Send a message, and return what the worker says then."""
        try:
            write_frame(self._input, message)
            said: FromWorker = self._decoder.decode(read_frame(self._output))
        except (EOFError, OSError, ValueError):
            code = self.end()
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise WorkerError(f"{self.path}: the process of the adapter {how}") from None
        return said

    def end(self) -> int:
        """End the process, and return its exit code."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._output.close()
        return self._process.wait()


def _answer(question: Question, services: ChatServices, refusals: list[ModelError]) -> WorkerAnswer | WorkerFailure:
    if isinstance(question, TokensQuestion):
        return WorkerAnswer(services.count_tokens(question.text))
    if isinstance(question, EventReport):
        services.context.record(question.event)
        return WorkerAnswer(None)
    try:
        return WorkerAnswer(services.context.complete(question.prompt))
    except ModelError as error:
        refusals.append(error)
        return WorkerFailure(str(error), by_model=True)


def _worker(path: str) -> Worker:
    """Return the worker of an interpreter. One that is gone is started anew."""
    if path not in _workers or not _workers[path].is_alive:
        _workers[path] = Worker(path)
    return _workers[path]


@atexit.register
def _end_workers() -> None:
    for worker in _workers.values():
        worker.end()
