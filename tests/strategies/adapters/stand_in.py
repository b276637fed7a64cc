"""A strategy of a library that is none, for tests of other Pythons: it is imported here and in their processes."""

import asyncio
import os
import signal
import sys
import weakref
from typing import Any

from ctxbench.strategies.adapters import adapter
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.events import Dropped
from ctxbench.strategies.functions import ChatDict
from ctxbench.strategies.services import ChatServices

LIBRARY = "stand-in-library"


ALIVE: weakref.WeakSet[Any] = weakref.WeakSet()
"""Conversations that are open in this process."""


class Library:
    """What is remembered of a conversation, and what the library does beside sending the newest messages."""

    def __init__(self, services: ChatServices, n: int, also: str) -> None:
        if also == "refuse":
            raise ValueError(f"n may not be {n}")
        self.services, self.n, self.also = services, n, also
        self.said: list[ChatDict] = []
        ALIVE.add(self)

    async def step(self, new: list[ChatDict]) -> Any:
        await asyncio.sleep(0)
        self.said += new
        if self.also.endswith("later") and len(self.said) < 5:
            return self.said
        return [*self.beside(self.also.removesuffix(" later")), *self.said[-self.n :]]

    def beside(self, also: str) -> list[ChatDict]:
        """Do what is to be done, and return the message about it."""
        match also:
            case "count":
                sums = [self.services.count_tokens(message["content"]) for message in self.said]
                return [written(f"{sum(sums)} tokens of {self.services.conversation} at {self.services.now}")]
            case "summarise":
                return [written(self.services.complete([*self.said[:1], written("What was said?")], max_tokens=50))]
            case "survive":
                try:
                    return self.beside("summarise")
                except ModelError as error:
                    return [written(f"no summary: {error}")]
            case "report":
                self.services.context.record(Dropped((self.said[0]["id"],)))
            case "alive":
                return [written(f"{len(ALIVE)} open")]
            case "print":
                print("noise of a library")
                os.write(1, b"noise of its C code\n")
                return [written(f"read: {sys.stdin.read()!r}")]
            case "raise":
                raise KeyError("a key")
            case "exit":
                sys.exit(3)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "invent":
                return [object()]  # type: ignore[list-item]
        return []


def written(text: str) -> ChatDict:
    return {"role": "user", "content": text}


@adapter(library=LIBRARY, family="window")
def newest(services: ChatServices, n: int = 2, also: str = "") -> Any:
    """Send the newest messages."""
    return Library(services, n, also).step
