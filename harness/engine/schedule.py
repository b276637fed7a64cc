"""Divide a run into bundles of tasks, and have them done in order, by processes of this machine or of a cluster.

One process does a bundle. As long as there are many shards it has all tasks of a shard: another process would have to
read and count the shard's conversations again, which costs more than most strategies do. The strategies of the last
shards are divided, so that no process is idle while others have work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .shard import ANSWERS, OWN, Done, PartTask

Bundle = list[PartTask]
Ref = TypeVar("Ref")

LAST = 4
"""Shards that count as the last ones, at least, and the bundles into which their strategies are divided, at least."""


def stages(shards: Iterable[list[PartTask]], processes: int) -> Iterator[list[list[Bundle]]]:
    """Yield the stages of each shard: bundles that may be done at once, when those of the stage before are done."""
    ahead, coming = deque[list[PartTask]](), iter(shards)
    last = max(LAST, processes)
    while True:
        while len(ahead) < last and (tasks := next(coming, None)) is not None:
            ahead.append(tasks)
        if not ahead:
            return
        number = LAST * -(-processes // len(ahead))
        tasks = ahead.popleft()
        if len(ahead) == last - 1:
            yield [[tasks]]
            continue
        own, answers = ([task for task in tasks if task.part == part] for part in (OWN, ANSWERS))
        strategies = [task for task in tasks if task.part not in (OWN, ANSWERS)]
        divided = [strategies[at::number] for at in range(min(number, len(strategies)))]
        yield [stage for stage in ([own], divided, [answers]) if stage and stage[0]]


@dataclass(slots=True)
class _Shard:
    """A shard that is worked on."""

    stages: list[list[Bundle]]
    """Stages that are not begun."""
    left: int = 0
    """Bundles of the stage under way that are not done."""


def dispatch(
    shards: Iterable[list[PartTask]],
    processes: int,
    submit: Callable[[Bundle], Ref],
    finished: Callable[[Sequence[Ref]], Iterator[tuple[Ref, list[Done]]]],
    done: Callable[[Done], None],
) -> None:
    """Have the tasks of all shards done, calling `done` as each is finished.

    `submit` gives a bundle to the next process that is free, and `finished` waits for some of those under way. At most
    two bundles a process are under way before another shard is begun: memory does not grow with the recordings.
    """
    coming = stages(shards, processes)
    under_way: dict[Ref, _Shard] = {}

    def begin(shard: _Shard) -> None:
        bundles = shard.stages.pop(0)
        shard.left = len(bundles)
        under_way.update((submit(bundle), shard) for bundle in bundles)

    while True:
        while len(under_way) < 2 * processes and (new := next(coming, None)) is not None:
            begin(_Shard(new))
        if not under_way:
            return
        for ref, results in finished(list(under_way)):
            shard = under_way.pop(ref)
            for result in results:
                done(result)
            shard.left -= 1
            if not shard.left and shard.stages:
                begin(shard)
