"""Run adapters in other Pythons: libraries whose versions clash, or that need a newer Python, then stand in one table.

An interpreter runs with our own code, lent by its path, so that its environment needs the library and msgspec alone
and both sides are of one version. One worker for each interpreter serves all conversations of this process, and ends
when this process does. It is spoken to over a pipe of its own: arrays in MessagePack, whose first item says what it is.

request    version, package | open, adapter, parameters, conversation, now, numbers of closed steps | step, number, new
           messages, now
question   complete, prompt | tokens, text | record, event: asked back by the worker, before it answers
answer     value, value | failure, why, whether it is a ModelError
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import msgspec

from ctxbench.scenarios.errors import SpecError, UserError, WorkerError

from ..base import ModelError, Prompt
from ..events import Event
from ..functions import ChatDict, Step, finished
from ..services import ChatServices

if TYPE_CHECKING:  # it takes its time, and is needed where there is another Python
    from multiprocessing.connection import Connection

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
from multiprocessing.connection import Connection
from ctxbench.strategies.adapters.process import serve
serve(Connection(int(sys.argv[2])))
"""

_SECONDS_TO_GREET = 60.0
_SECONDS_TO_END = 5.0


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
    number = worker.ask("open", adapter, parameters, services.conversation, services.now, closed, services=services)

    def step(new: list[ChatDict]) -> Any:
        return worker.ask("step", number, new, services.now, services=services)

    # The callback holds the list and not the step, which it would otherwise keep alive. It may run at any moment, also
    # while the worker answers, so it only notes the number.
    finalize(step, worker.closed.append, number)
    return step


class Worker:
    """A process of another interpreter, seen from here."""

    def __init__(self, path: str) -> None:
        self.path, self._lock = path, Lock()
        self._versions: dict[str, str | None] = {}
        self.closed: list[int] = []
        """Numbers of the steps that are no longer used. The worker is told of them when the next one is opened."""
        from multiprocessing import Pipe

        self._connection, theirs = Pipe()
        try:
            # A session of its own: Ctrl-C at a terminal is for us to hear, and the worker ends with its pipe. Its
            # library finds no input, and what it prints goes to standard error.
            self._process = subprocess.Popen(
                [path, "-c", _BOOTSTRAP, str(Path(__file__).parents[2]), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"{path}: cannot be started: {error.strerror or error}") from None
        finally:
            theirs.close()
        # A worker greets once it is ready; a program that is no Python may say nothing for ever.
        with suppress(EOFError, OSError):
            if self._connection.poll(_SECONDS_TO_GREET):
                self._connection.recv_bytes()
                return
        code = self.end()
        reasons = {_TOO_OLD: "is older than Python 3.11", _NO_MSGSPEC: f"has no msgspec: {path} -m pip install msgspec"}
        other = f"is no Python that adapters can run in: it ended with exit code {code}"
        raise WorkerError(f"{path}: {reasons.get(code, other)}")

    def version(self, package: str) -> str | None:
        """Return the version of a package there, or None if it is not installed."""
        if package not in self._versions:
            self._versions[package] = self.ask("version", package)
        return self._versions[package]

    def ask(self, *request: Any, services: Any = None) -> Any:
        """Return the answer to a request, and answer meanwhile what the worker asks back of the `ChatServices`."""
        message, refusals = request, list[ModelError]()
        with self._lock:
            try:
                while True:
                    match self._reply(*message):
                        case "value", value:
                            return value
                        case "failure", why, by_model:
                            break
                        case "tokens", text:
                            message = "value", services.count_tokens(text)
                        case "record", event:
                            message = "value", services.context.record(msgspec.convert(event, Event))
                        case _, prompt:
                            try:
                                message = "value", services.context.complete(msgspec.convert(prompt, Prompt))
                            except ModelError as error:
                                refusals.append(error)
                                message = "failure", str(error), True
            except BaseException:  # what the worker says next would be taken for another answer
                self.end()
                raise
        # The exception never left this process: the worker was told
        # its text, and says that it came to nothing for that.
        raise refusals[-1] if by_model and refusals else WorkerError(why)

    def _reply(self, *message: Any) -> list[Any]:
        try:
            self._connection.send_bytes(msgspec.msgpack.encode(message))
            reply: list[Any] = msgspec.msgpack.decode(self._connection.recv_bytes())
            return reply
        except (EOFError, OSError):
            code = self.end()
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise WorkerError(f"{self.path}: the process of the adapter {how}") from None

    def end(self) -> int:
        self._connection.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return self._process.wait()


def _worker(path: str) -> Worker:
    """Return the worker of an interpreter. One that is gone is started anew."""
    if path not in _workers or _workers[path]._process.poll() is not None:
        _workers[path] = Worker(path)
    return _workers[path]


@atexit.register
def _end_workers() -> None:
    for worker in _workers.values():
        worker.end()


def serve(connection: Connection) -> None:
    """Open adapters and call their steps in this Python, for another process, until that is gone."""
    channel, steps = Channel(connection), dict[int, tuple[Step, RemoteContext]]()
    for number in count():
        request = channel.received.get()
        try:
            channel.send("value", _served(request, number, steps, channel))
        except (Exception, SystemExit) as error:  # a library may raise, or exit, as it likes
            reason = str(error)
            if not isinstance(error, UserError):  # no message to the user: it says where it was raised
                last = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
            channel.send("failure", reason.encode(errors="replace").decode(), isinstance(error, ModelError))


def _served(request: list[Any], number: int, steps: dict[int, tuple[Step, RemoteContext]], channel: Channel) -> Any:
    """Return the answer to a request, whose number is that of the step that it opens. Raises what the library does."""
    match request:
        case "version", package:
            with suppress(PackageNotFoundError):
                return version(package)
            return None
        case "open", adapter, parameters, conversation, now, closed:
            for other in closed:
                del steps[other]
            remote = RemoteContext(channel, conversation, now)
            module, _, name = adapter.partition(":")
            services = ChatServices(remote)  # type: ignore[arg-type]  # it has what ChatServices uses
            steps[number] = finished(getattr(import_module(module), name).open_step(services, **parameters)), remote
            return number
        case "step", opened, new, now:
            step, remote = steps[opened]
            remote.now = now
            sent = finished(step(new))
            return list(sent) if isinstance(sent, Iterable) and not isinstance(sent, str | Mapping) else sent
    raise AssertionError(request)


class Channel:
    """The other process, at the other end of a pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, Lock()
        self.received: SimpleQueue[list[Any]] = SimpleQueue()
        connection.send_bytes(b"")  # the greeting
        # A thread reads all the time, so the end of the other process
        # is noticed while a library works, which may take minutes.
        Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            while True:
                self.received.put(msgspec.msgpack.decode(self._connection.recv_bytes()))
        except (EOFError, OSError):  # nobody waits for an answer any more
            os._exit(0)

    def send(self, *message: Any) -> None:
        """Send a message. Raises TypeError for a value that MessagePack has no form for."""
        self._connection.send_bytes(msgspec.msgpack.encode(message))

    def ask(self, *question: Any) -> Any:
        """Return the answer to a question, from any thread. Raises ModelError."""
        # A question and its answer go together: with two threads asking at once each might take the other's answer.
        with self._lock:
            self.send(*question)
            kind, value, *_ = self.received.get()
        if kind == "failure":
            raise ModelError(value)
        return value


class RemoteContext:
    """The services of a conversation that is replayed in the other process, as `ChatServices` needs them."""

    def __init__(self, channel: Channel, conversation: str, now: float | None) -> None:
        self._channel, self.conversation, self.now = channel, conversation, now
        self._tokens: dict[str, int] = {}

    def complete(self, prompt: Prompt) -> str:
        reply: str = self._channel.ask("complete", prompt)
        return reply

    def record(self, event: Event) -> None:
        self._channel.ask("record", event)

    def text_tokens(self, text: str) -> int:
        """Return the tokens of a text, which are asked for once."""
        if text not in self._tokens:
            self._tokens[text] = self._channel.ask("tokens", text)
        return self._tokens[text]
