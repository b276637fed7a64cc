"""The queue: the most urgent first, nobody waits for ever; beside an obvious version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.tiers.jobs import PROMOTIONS, URGENCY, Job, Queue, Trigger


def job(id: str, trigger: Trigger, now: float = 0) -> Job:
    return Job(id, "archive", "working", trigger, now)


def drained(queue: Queue, now: float) -> list[str]:
    return [job.id for job in queue.take(now)]


def test_the_most_urgent_is_first_and_of_equals_who_asked_first() -> None:
    """A focus reference before a miss before a prediction."""
    queue = Queue()
    for id, trigger in [("p", Trigger.PREDICTED_USE), ("m", Trigger.CACHE_MISS), ("n", Trigger.CACHE_MISS)]:
        queue.push(job(id, trigger))
    queue.push(job("f", Trigger.FOCUS_REFERENCE))
    assert drained(queue, 0) == ["f", "m", "n", "p"]


def test_every_trigger_has_an_urgency() -> None:
    """All nine, four of them promotions; the budgets of promotions are the document's."""
    assert set(URGENCY) == set(Trigger)
    assert {trigger: URGENCY[trigger][1] for trigger in PROMOTIONS - {Trigger.PREDICTED_USE}} == {
        Trigger.EXPLICIT_ACCESS: 0.05,
        Trigger.CACHE_MISS: 0.1,
        Trigger.FOCUS_REFERENCE: 0.01,
    }


STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from([*Trigger, None]), st.integers(0, 3)), max_size=60)


@given(STEPS)
def test_it_is_a_list_that_is_searched_each_time(steps: list[tuple[str, Trigger | None, int]]) -> None:
    """Pushes and takes in any order, the clock going on between."""
    queue, slow, now = Queue(), list[Job](), 0.0
    for id, trigger, seconds in steps:
        now += seconds
        if trigger is not None:
            pushed = job(id, trigger, now)
            waiting = next((each for each in slow if each.id == id), None)
            better = waiting is None or waiting.priority < pushed.priority
            assert queue.push(pushed) == better
            if better:
                slow = [each for each in slow if each.id != id] + [pushed]
        else:
            late = [each for each in slow if each.deadline < now]
            order = sorted(late, key=lambda each: (each.deadline, -each.priority)) or sorted(
                slow, key=lambda each: (-each.priority, each.deadline)
            )
            assert queue.take(now, 1) == order[:1]
            slow = [each for each in slow if each not in order[:1]]
        assert list(queue.jobs.values()) == slow
