"""The schedule: which tasks are done by one process, and in which order."""

from collections import deque
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.engine.shard import ANSWERS, OWN, Done, PartTask, Work
from ctxbench.harness.engine.workers import Bundle, dispatch, stages


def shard(number: int, strategies: int, answers: bool = False) -> list[PartTask]:
    work = Work("folder", tuple(map(str, range(strategies))), "o200k_base", answers=answers)
    return [PartTask(work, number, part) for part in work.parts]


def parts(shards: int, strategies: int, processes: int) -> list[list[list[list[int]]]]:
    """The parts in each bundle of each stage of each shard."""
    made = stages((shard(number, strategies, answers=True) for number in range(shards)), processes)
    return [[[[task.part for task in bundle] for bundle in stage] for stage in of_shard] for of_shard in made]


def test_a_process_gets_whole_shards_until_the_last_ones() -> None:
    """The strategies of the last shards are divided, so that any process may help with them."""
    whole = [[[OWN, 0, 1, 2, ANSWERS]]]
    divided = [[[OWN]], [[0], [1], [2]], [[ANSWERS]]]
    assert parts(6, 3, processes=2) == [whole, whole, whole, divided, divided, divided]
    assert parts(2, 3, processes=8) == [divided, divided]


def test_shards_are_read_as_they_are_sent() -> None:
    """No more shards are read ahead than there are processes: those of a long recording do not pile up."""
    read: list[int] = []

    def shards() -> Iterator[list[PartTask]]:
        for number in range(100):
            read.append(number)
            yield shard(number, 1)

    sent = stages(shards(), 8)
    next(sent)
    assert len(read) == 8
    next(sent)
    assert len(read) == 9


@given(
    st.lists(st.integers(1, 6), max_size=12), st.integers(1, 5), st.booleans(), st.lists(st.integers(0, 9), min_size=60)
)
def test_all_is_done_once(sizes: list[int], processes: int, answers: bool, chance: list[int]) -> None:
    """Every task is done once, in order, and none is left, for any shards and processes, whichever bundle ends next."""
    under_way, ended, choices = dict[int, Bundle](), list[tuple[int, int]](), deque(chance)

    def submit(bundle: Bundle) -> int:
        for task in bundle:
            before = {part for number, part in ended if number == task.shard}
            before |= {other.part for other in bundle[: bundle.index(task)]}
            # Whoever reads the conversations from the folder finds them there.
            assert task.part == OWN or OWN in before
            assert task.part != ANSWERS or before == {OWN, *range(sizes[task.shard])}
        under_way[ref := len(ended) * 1000 + len(under_way)] = bundle
        return ref

    def finished(refs: Sequence[int]) -> Iterator[tuple[int, list[Done]]]:
        assert set(refs) == set(under_way)
        ref = sorted(refs)[choices[0] % len(refs)]
        choices.rotate()
        yield ref, [Done(task.shard, task.part, "") for task in under_way.pop(ref)]

    shards = (shard(number, size, answers) for number, size in enumerate(sizes))
    groups = stages(shards, processes)
    dispatch(groups, processes, submit, finished, lambda done: ended.extend((each.shard, each.part) for each in done))
    wanted = [(task.shard, task.part) for number, size in enumerate(sizes) for task in shard(number, size, answers)]
    assert sorted(ended) == sorted(wanted)
    assert not under_way


def test_a_process_stays_with_its_group() -> None:
    """A process that is free goes on with the group that it has in memory, then begins another one, then helps."""
    submitted, ends = list[str](), iter(["a1", "b1", "b2", "c1", "a2", "a3", "a4"])
    groups = iter([[["a1"], ["a2", "a3", "a4"]], [["b1"], ["b2"]], [["c1"]]])

    def submit(piece: str) -> str:
        submitted.append(piece)
        return piece

    def finished(refs: Sequence[str]) -> Iterator[tuple[str, None]]:
        ref = next(ends)
        assert ref in refs
        yield ref, None

    dispatch(groups, 2, submit, finished, lambda _: None)
    assert submitted == ["a1", "b1", "a2", "b2", "c1", "a3", "a4"]
