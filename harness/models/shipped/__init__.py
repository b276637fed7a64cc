"""Replies that come with ctxbench: JSON Lines beside this file, recorded with a local model by `make record`.

They answer what the embedded scenarios and our own texts ask, so that a machine with no key and no weights shows the
same figures. A cassette opened for `auto` or `replay` looks here first. A request names its prompt as NAME@DIGEST: a
line whose prompt has another digest by now answers a question that nobody asks any more, and is stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from ..cassette import Entry
from ..lines import entries, prompt_of

FOLDER = Path(__file__).parent


class Shipped:
    """The replies of some files. They are read when they are first asked for."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)

    def get_many(self, keys: Iterable[str]) -> dict[str, Entry]:
        """The replies under those of the keys that have one."""
        return {key: self._replies[key] for key in keys if key in self._replies}

    def entries(self) -> Iterator[Entry]:
        """All of them, in the order of the files."""
        yield from self._replies.values()

    def older(self, prompt: str) -> str:
        """Another version of a prompt to which there are replies here; empty if there is none."""
        name = prompt.partition("@")[0]
        found = (each for each in self._prompts if each.partition("@")[0] == name and each != prompt)
        return next(found, "") if name and prompt not in self._prompts else ""

    @cached_property
    def _replies(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for file in self.files:
            with file.open("rb") as lines:
                found.update((entry.key, entry) for entry in entries(lines, file.name))
        return found

    @cached_property
    def _prompts(self) -> dict[str, int]:
        return dict(Counter(map(prompt_of, self._replies.values())))


@cache
def shipped() -> Shipped:
    """What comes with this ctxbench."""
    return Shipped(sorted(FOLDER.glob("*.jsonl")))


def come_along(file: str) -> list[Entry]:
    """The replies in one of the files; none if there is no such file."""
    return list(Shipped([path for path in shipped().files if path.name == file]).entries())


def stale(replies: Iterable[Entry], current: Mapping[str, str]) -> dict[str, int]:
    """The prompts of replies that nobody asks any more, and how many replies each has.

    `current`: the digest of each prompt that there is. What names no prompt cannot be told.
    """
    found = Counter(map(prompt_of, replies))
    return {
        prompt: times
        for prompt, times in sorted(found.items())
        if prompt and current.get(prompt.partition("@")[0]) != prompt.partition("@")[2]
    }
