"""The schedule: which worker does which task."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.engine.cluster import divided
from ctxbench.harness.engine.schedule import PartSchedule
from ctxbench.harness.engine.shard import ANSWERS, OWN, Done, PartTask, Work


def shard(number: int, strategies: int, answers: bool = False) -> list[PartTask]:
    work = Work("folder", "run", tuple(map(str, range(strategies))), "o200k_base", answers=answers)
    return [PartTask(work, number, part) for part in work.parts]


def parts(schedule: PartSchedule, worker: int, count: int) -> list[tuple[int, int]]:
    tasks = [schedule.next(worker) for _ in range(count)]
    return [(task.shard, task.part) for task in tasks if task is not None]


def test_a_worker_stays_with_its_shard() -> None:
    """Each worker gets a shard of its own, and all parts of it one after the other."""
    schedule = PartSchedule([shard(0, 2), shard(1, 2)])
    assert parts(schedule, 0, 1) == [(0, OWN)]
    assert parts(schedule, 1, 3) == [(1, OWN), (1, 0), (1, 1)]
    assert parts(schedule, 0, 2) == [(0, 0), (0, 1)]


def test_an_idle_worker_helps_once_the_conversations_are_stored() -> None:
    """A worker without a shard gets nothing before the own part of another's shard is stored, then a part."""
    schedule = PartSchedule([shard(0, 2)])
    assert parts(schedule, 0, 1) == [(0, OWN)]
    assert schedule.next(1) is None
    schedule.finished(Done(0, OWN, ""))
    assert parts(schedule, 1, 1) == [(0, 0)]
    assert parts(schedule, 0, 2) == [(0, 1)]


def test_what_took_longest_comes_first() -> None:
    """The parts of a later shard are begun with the strategies that took longest in an earlier one."""
    schedule = PartSchedule([shard(0, 3), shard(1, 3)])
    assert len(parts(schedule, 0, 4)) == 4
    for part, seconds in ((OWN, 9.0), (0, 1.0), (1, 3.0), (2, 2.0)):
        schedule.finished(Done(0, part, "", seconds=seconds))
    assert parts(schedule, 0, 4) == [(1, OWN), (1, 1), (1, 2), (1, 0)]


def test_a_busy_worker_gets_no_part_of_another() -> None:
    """A task ahead is given only as long as there may be new shards: the last parts go to whoever is free first."""
    schedule = PartSchedule([shard(0, 1), shard(1, 4)])
    assert parts(schedule, 0, 2) == [(0, OWN), (0, 0)]
    assert parts(schedule, 1, 1) == [(1, OWN)]
    schedule.finished(Done(1, OWN, ""))
    assert schedule.next(0, ahead=True) is None
    assert parts(schedule, 0, 1) == [(1, 0)]


@given(
    st.lists(st.integers(1, 6), max_size=6), st.integers(1, 5), st.booleans(), st.lists(st.integers(1, 20), min_size=50)
)
def test_all_is_done_once(sizes: list[int], workers: int, answers: bool, seconds: list[int]) -> None:
    """Every task is done once, in order, and none is left, for any shards, workers and times."""
    schedule = PartSchedule(shard(number, size, answers) for number, size in enumerate(sizes))
    now, under_way, started = 0, list[tuple[int, int, int, int]](), 0
    ended: defaultdict[int, list[int]] = defaultdict(list)
    idle = set(range(workers))
    while True:
        for worker in sorted(idle):
            if (task := schedule.next(worker)) is not None:
                # Whoever reads the conversations from the folder finds them there.
                assert task.part == OWN or OWN in ended[task.shard]
                if task.part == ANSWERS:
                    assert sorted(ended[task.shard]) == [OWN, *range(sizes[task.shard])]
                heappush(under_way, (now + seconds[started % len(seconds)], worker, task.shard, task.part))
                started += 1
                idle.discard(worker)
        if not under_way:
            break
        now, worker, number, part = heappop(under_way)
        ended[number].append(part)
        schedule.finished(Done(number, part, "", seconds=float(now)))
        idle.add(worker)
    wanted = {number: {OWN, *range(size), *([ANSWERS] if answers else [])} for number, size in enumerate(sizes)}
    assert {number: set(parts) for number, parts in ended.items()} == wanted
    assert started == sum(map(len, wanted.values()))


def bundles(shards: int, strategies: int, cores: int) -> list[list[list[int]]]:
    """The parts in each bundle of each shard, as they are sent to a cluster."""
    sent = divided((shard(number, strategies, answers=True) for number in range(shards)), cores)
    return [[[task.part for task in bundle] for bundle in bundles] for bundles in sent]


def test_a_cluster_gets_whole_shards_until_there_are_fewer_than_cores() -> None:
    """A process does a whole shard as long as each core can have one; the strategies of the last ones are divided."""
    whole = [[OWN, 0, 1, 2, ANSWERS]]
    in_two = [[OWN], [0, 2], [1], [ANSWERS]]
    assert bundles(shards=6, strategies=3, cores=4) == [whole, whole, whole, in_two, in_two, in_two]
    assert bundles(shards=1, strategies=3, cores=8) == [[[OWN], [0], [1], [2], [ANSWERS]]]
    assert bundles(shards=2, strategies=3, cores=1) == [whole, whole]
