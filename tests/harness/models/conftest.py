"""A server for each test, and nothing of the user's environment."""

import gc
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from tests.harness.models.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found
    _close_clients()


@pytest.fixture(autouse=True)
def _no_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key is set, and the user's cache is an empty folder."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "CTXBENCH_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _close_clients() -> None:
    """litellm keeps a client for an hour; its sockets are not to be found by a later test.

    Where it has been imported since, its hundreds of thousands of objects are set aside once: looking through them
    takes most of a second after each test.
    """
    for thread in threading.enumerate():
        if thread.name == "ctxbench model call":
            thread.join(5)
    if "litellm" in sys.modules:
        kept = sys.modules["litellm"].in_memory_llm_clients_cache
        for client in list(kept.cache_dict.values()):
            if not iscoroutinefunction(client.close):
                client.close()
        kept.flush_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    if "litellm" in sys.modules:
        _set_aside()


@cache
def _set_aside() -> None:
    gc.freeze()
