"""The requests of a cell: as if each were read message by message."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.prefixes import ContentBlocks
from ctxbench.metrics.cache.requests import TOOLS, MessageSizes, RequestStep, is_system_first, requests, system_first
from ctxbench.metrics.tokens import PRIMING

ROLES = ("system", "system", "user", "assistant", "tool", "tool", "assistant", "tool", "user", "assistant")
BLOCKS = tuple(ContentBlocks(1 + number % 3, 1 + number % 2) for number in range(10))
MESSAGES = MessageSizes(tuple(range(10, 20)), ROLES, 7, blocks=BLOCKS)


def spans(numbers: list[int]) -> list[tuple[int, int]]:
    """Numbers as spans, as long as they can be."""
    starts = [at for at, number in enumerate(numbers) if not at or number != numbers[at - 1] + 1]
    return [(numbers[first], numbers[last - 1] + 1) for first, last in pairwise([*starts, len(numbers)])]


def steps(contexts: list[tuple[list[int], bool]]) -> list[RequestStep]:
    """As the log has them: each context by what stays of the one before it."""
    made = []
    before: tuple[list[int], bool] = ([], False)
    for sent, more in contexts:
        kept = 0
        while more == before[1] and made and kept < min(len(sent), len(before[0])) and sent[kept] == before[0][kept]:
            kept += 1
        tokens = sum(MESSAGES.tokens[number] for number in sent) + MESSAGES.tools + 5 * more + PRIMING
        added = spans(sent[kept:])
        made.append(RequestStep(kept, added, ("load",) if more else (), tokens, (), 0.0, 0.0, 9, 1))
        before = (sent, more)
    return made


SENT = st.lists(st.integers(0, 9), unique=True, max_size=8)
CONTEXTS = st.lists(st.tuples(SENT | SENT.map(sorted), st.booleans()), min_size=1, max_size=6)


@given(CONTEXTS)
def test_ends_and_boundaries(contexts: list[tuple[list[int], bool]]) -> None:
    """Where each block ends, the last leading system message, and the ends of users' messages and rows of results."""
    for (sent, more), asked in zip(contexts, requests(steps(contexts), MESSAGES), strict=True):
        sizes = [MESSAGES.tools, 5 * more, *(MESSAGES.tokens[number] for number in sent)]
        assert list(asked.ends) == [sum(sizes[: at + 1]) for at in range(len(sizes))]
        assert asked.tokens == asked.ends[-1] + PRIMING
        roles = [ROLES[number] for number in sent]
        system = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
        ends = [
            at + TOOLS
            for at, (role, after) in enumerate(pairwise([*roles, ""]))
            if role == "user" or (role == "tool" and after != "tool")
        ]
        assert asked.system == system + TOOLS - 1
        assert list(asked.eligible) == ([asked.system] if system else []) + ends


@given(CONTEXTS)
def test_content_blocks(contexts: list[tuple[list[int], bool]]) -> None:
    """They are those of messages that are added one after the other."""
    for (sent, more), asked in zip(contexts, requests(steps(contexts), MESSAGES), strict=True):
        places, run_places, before = [1, 1 + more], [1, 1 + more], ""
        for number in sent:
            places.append(places[-1] + BLOCKS[number].each)
            run_places.append(run_places[-1] + (before != "tool" or ROLES[number] != "tool") * BLOCKS[number].runs)
            before = ROLES[number]
        assert asked.places == places
        assert asked.run_places == run_places


@given(CONTEXTS)
def test_equal_numbers_are_equal_prefixes(contexts: list[tuple[list[int], bool]]) -> None:
    """Two requests have a number in common exactly where they begin with the same tools and messages."""
    seen: dict[int, tuple[object, ...]] = {}
    for (sent, more), asked in zip(contexts, requests(steps(contexts), MESSAGES), strict=True):
        for at, number in enumerate(asked.prefixes):
            prefix = ("recorded", more, *sent)[: at + 1]
            assert seen.setdefault(number, prefix) == prefix
    assert len(set(seen.values())) == len(seen)


@given(CONTEXTS)
def test_system_messages_first(contexts: list[tuple[list[int], bool]]) -> None:
    """For providers that put them first: each request in that order, and nothing else of it changed."""
    made = steps(contexts)
    first = [(sorted(sent, key=lambda number: ROLES[number] != "system"), more) for sent, more in contexts]
    wanted = [(tuple(asked.prefixes), tuple(asked.ends)) for asked in requests(steps(first), MESSAGES)]
    found = requests(system_first(made, MESSAGES), MESSAGES)
    assert [(tuple(asked.prefixes), tuple(asked.ends)) for asked in found] == wanted
    assert is_system_first(made, MESSAGES) == (first == contexts)


def test_marks_stay_on_their_messages() -> None:
    """A mark moves with the message that it stands on."""
    made = [
        RequestStep(0, [(2, 4), (0, 1)], (), sum(MESSAGES.tokens[each] for each in (2, 3, 0)) + 10, [1], 0.0, 0.0, 9, 1)
    ]
    assert system_first(made, MESSAGES)[0].marks == [2]
