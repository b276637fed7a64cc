"""Decide which worker does which task: no worker is idle while there is work, and few read a shard that others have."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from math import inf

from .shard import ANSWERS, OWN, Done, PartTask


class PartSchedule:
    """The tasks of a run in the order in which workers get them.

    A worker gets the parts of the shard that it has in memory, then a new shard. When there is none, it helps with the
    shard that has most parts left. Of each shard the part that took longest in another shard comes first.
    """

    def __init__(self, shards: Iterable[list[PartTask]]) -> None:
        """Take the tasks of each shard. One shard is drawn when a worker needs it, not earlier."""
        self._shards: Iterator[list[PartTask]] = iter(shards)
        self._open: dict[int, _Shard] = {}
        self._of: dict[int, _Shard] = {}
        self._answers: deque[PartTask] = deque()
        self._all_drawn = False
        # A part that nobody has timed counts as the longest, so it is
        # not left for the end, where others would wait for it.
        self._seconds: defaultdict[int, float] = defaultdict(lambda: inf)

    def next(self, worker: int, ahead: bool = False) -> PartTask | None:
        """Return the next task for a worker; None if there is none now.

        A worker that is busy is given a task `ahead` only while there are new shards: the last parts go to whoever is
        free first.
        """
        if ahead and self._all_drawn:
            return None
        if self._answers:
            return self._answers.popleft()
        shard = self._of.get(worker)
        if shard is None or not shard.todo:
            shard = self._new() or (None if ahead else self._longest())
        if shard is None:
            return None
        # A helper stays with the shard that it has read now.
        self._of[worker] = shard
        part = max(shard.todo, key=lambda part: inf if part == OWN else self._seconds[part])
        return shard.todo.pop(part)

    def finished(self, done: Done) -> None:
        """Take note of a task that is done."""
        self._seconds[done.part] = done.seconds
        if done.part == ANSWERS:
            return
        shard = self._open[done.shard]
        shard.is_stored = True  # the own part is a shard's first task
        shard.unfinished -= 1
        if not shard.unfinished:
            self._answers += shard.answers
            del self._open[done.shard]

    def _new(self) -> _Shard | None:
        tasks = next(self._shards, None)
        if tasks is None:
            self._all_drawn = True
            return None
        shard = self._open[tasks[0].shard] = _Shard(tasks)
        return shard

    def _longest(self) -> _Shard | None:
        """Return the shard with most parts left. Its conversations are in the folder, for others to read."""
        stored = [shard for shard in self._open.values() if shard.is_stored and shard.todo]
        return max(stored, key=lambda shard: len(shard.todo), default=None)


class _Shard:
    """A shard that is worked on."""

    __slots__ = ("answers", "is_stored", "todo", "unfinished")

    def __init__(self, tasks: list[PartTask]) -> None:
        # In the order in which they are begun where nobody has timed any.
        self.todo = {task.part: task for task in tasks if task.part != ANSWERS}
        self.answers = [task for task in tasks if task.part == ANSWERS]
        self.unfinished = len(self.todo)
        self.is_stored = False
