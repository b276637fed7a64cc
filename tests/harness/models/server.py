"""A small OpenAI-compatible server on loopback that misbehaves on demand."""

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

UNCLOSED = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)
"""For tests in whose process litellm calls: it drops clients without closing their sockets."""


class Server:
    """What it does to each request is taken from `acts`, one a request, and when there are none left it behaves."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.acts: list[str] = []
        self.seen: list[dict[str, Any]] = []
        """The bodies of the requests, with their path and times."""
        self.at_once = self.most_at_once = 0
        self.usage: dict[str, Any] | None = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        self.text = "a summary"
        self.pause = 0.0
        self.closing = threading.Event()
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Follow of a redirect that turns into a GET: it is seen, and answered as any other."""
        self.headers.add_header("Content-Length", "2")
        self.rfile = io.BytesIO(b"{}")  # type: ignore[assignment]
        self.do_POST()

    def do_POST(self) -> None:
        state: Server = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with state.lock:
            state.seen.append({**body, "path": self.path, "at": time.monotonic(), "headers": dict(self.headers)})
            act, _, argument = (state.acts.pop(0) if state.acts else "").partition(" ")
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
        try:
            state.closing.wait(state.pause)
            self.act(state, act, argument, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with state.lock:
                state.at_once -= 1

    def act(self, state: Server, act: str, argument: str, body: dict[str, Any]) -> None:
        good = json.dumps(self.good(state, body))
        match act:
            case "":
                self.say(200, good)
            case "status":
                code, _, message = argument.partition(" ")
                self.say(int(code), json.dumps({"error": {"message": message or "no", "type": "t", "code": None}}))
            case "error":  # a status with any body
                code, _, text = argument.partition(" ")
                self.say(int(code), text)
            case "redirect":
                code, _, to = argument.partition(" ")
                self.say(int(code), "", {"Location": to})
            case "wait":  # 429, and how long to wait
                self.say(429, json.dumps({"error": {"message": "slow down"}}), {"Retry-After": argument})
            case "hang":
                state.closing.wait(30)
                self.close_connection = True
            case "cut":  # the connection breaks in the middle of the JSON
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(good)))
                self.end_headers()
                self.wfile.write(good[: len(good) // 2].encode())
                self.close_connection = True
            case "truncated":  # half of the JSON, as if it were all
                self.say(200, good[: len(good) // 2])
            case "choices":
                self.say(200, json.dumps({**self.completion(state, body), "choices": []}))
            case "html":
                self.say(200, "<html><body>Welcome</body></html>", {"Content-Type": "text/html"})
            case "drip":  # a byte now and then, so that no single read takes long
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(good)))
                self.end_headers()
                for byte in good.encode():
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    if state.closing.wait(0.1):
                        break
                self.close_connection = True
            case "headers":  # a byte of a header now and then
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                while not state.closing.wait(0.1):
                    self.wfile.write(b"x")
            case "flood":  # a body without an end
                self.send_response(200)
                self.end_headers()
                while not state.closing.is_set():
                    self.wfile.write(b" " * 1_000_000)
            case "packed":
                self.say(200, good, {"Content-Encoding": "gzip"})
            case "close":
                self.close_connection = True
            case "reply":  # any body
                self.say(200, argument)
            case _:
                raise AssertionError(act)

    def good(self, state: Server, body: dict[str, Any]) -> dict[str, Any]:
        if self.path.endswith("/messages"):
            return self.message(state, body)
        return self.embeddings(state, body) if "input" in body else self.completion(state, body)

    def message(self, state: Server, body: dict[str, Any]) -> dict[str, Any]:
        """A reply as Anthropic makes it."""
        return {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [{"type": "text", "text": state.text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }

    def completion(self, state: Server, body: dict[str, Any]) -> dict[str, Any]:
        said = {"role": "assistant", "content": state.text}
        made = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": body.get("model"),
            "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        }
        return made if state.usage is None else {**made, "usage": state.usage}

    def embeddings(self, state: Server, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [
            {"object": "embedding", "index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)
        ]
        return {
            "object": "list",
            "model": body.get("model"),
            "data": data,
            "usage": {"prompt_tokens": 7, "total_tokens": 7},
        }

    def say(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    state: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server that runs until the block ends; meanwhile commands call it for every model."""
    http = _Http(("127.0.0.1", 0), _Handler)
    http.state = Server(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CTXBENCH_API_BASE", http.state.url)
            yield http.state
    finally:
        http.state.closing.set()
        http.shutdown()
        http.server_close()
        thread.join()
