"""Content that the caller stores by the hour: what is created, read and paid for, by hand."""

from ctxbench.metrics.cache.mechanisms import CachedContent, CachedContentRules
from ctxbench.metrics.cache.prefixes import CacheMark, CacheRequest, CacheUsage, Prefixes


class Talk:
    """Requests of blocks of 1 000 tokens each; the mark is at the end."""

    def __init__(self) -> None:
        self.prefixes = Prefixes()
        self.cache = CachedContent(CachedContentRules(least=2000, lifetime=3600.0))

    def ask(self, names: str, at: float) -> CacheUsage:
        ends = [1000 * count for count in range(1, len(names) + 1)]
        marks = (CacheMark(len(names) - 1),)
        return self.cache.request(CacheRequest(self.prefixes.of(names), ends, ends[-1] + 5, at, at, marks))


def test_created_once_and_read() -> None:
    """Two blocks are created and read at once; the next prompt reads them, and pays for ten minutes of storage."""
    talk = Talk()
    assert talk.ask("ab", 0) == CacheUsage(2000, 0, 0, 5, 1, created=2000)
    assert talk.ask("abc", 600) == CacheUsage(2000, 0, 0, 1005, 1, token_seconds=2000 * 600)
    assert talk.cache.finish() == 2000 * 3000  # nobody deletes it


def test_anew_at_twice_its_size() -> None:
    """Four blocks are created where two were stored; those are deleted then."""
    talk = Talk()
    talk.ask("ab", 0)
    assert talk.ask("abcd", 100) == CacheUsage(4000, 0, 0, 5, 3, created=4000, token_seconds=2000 * 100)
    assert talk.cache.finish() == 4000 * 3600


def test_a_prompt_that_begins_otherwise() -> None:
    """What is stored is deleted at once, and what is marked created."""
    talk = Talk()
    talk.ask("ab", 0)
    assert talk.ask("xb", 50) == CacheUsage(2000, 0, 0, 5, 1, created=2000, token_seconds=2000 * 50)


def test_its_time_is_over() -> None:
    """An hour after its creation it is gone, however often it was read; storage is paid for that hour."""
    talk = Talk()
    talk.ask("ab", 0)
    talk.ask("abc", 3599)
    assert talk.ask("abc", 3600) == CacheUsage(3000, 0, 0, 5, 2, created=3000, token_seconds=2000)


def test_too_short_is_not_stored() -> None:
    """Under the least size nothing is created, and nothing is paid for."""
    talk = Talk()
    assert talk.ask("a", 0) == CacheUsage(0, 0, 0, 1005)
    assert talk.cache.finish() == 0


def test_adk_s_cache_of_what_came_twice() -> None:
    """Google's ADK (G4) keeps what a second prompt begins with again: of ab, abc and abcd the first creates nothing,
    the second creates ab, and the third reads it and pays for its storage."""
    prefixes, cache = Prefixes(), CachedContent(CachedContentRules(least=0, lifetime=1800.0))

    def ask(names: str, at: float, *marks: CacheMark) -> CacheUsage:
        ends = [1000 * count for count in range(1, len(names) + 1)]
        return cache.request(CacheRequest(prefixes.of(names), ends, ends[-1], at, at, marks))

    assert ask("ab", 0) == CacheUsage(0, 0, 0, 2000)
    assert ask("abc", 60, CacheMark(1)) == CacheUsage(2000, 0, 0, 1000, 1, created=2000)
    assert ask("abcd", 120, CacheMark(1)) == CacheUsage(2000, 0, 0, 2000, 1, token_seconds=2000 * 60)
    assert cache.finish() == 2000 * 1740
