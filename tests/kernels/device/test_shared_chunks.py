"""Parts of a file that several cards share: read once where they keep pace, right wherever they do not."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from cuzk.kernels.device import shared_chunks
from cuzk.kernels.device.shared_chunks import Pass, SharedChunks


class File:
    """Part k holds k. `reads` counts how often each was read; `broken` parts cannot be."""

    def __init__(self) -> None:
        self.reads: Counter[int] = Counter()
        self.broken: set[int] = set()
        self.before: Callable[[int], None] = lambda part: None

    def read(self, part: int, out: np.ndarray[Any, Any]) -> None:
        self.reads[part] += 1
        self.before(part)
        out[:] = 0xFFFF
        if part in self.broken:
            raise OSError(f"part {part}")
        out[:] = part


class Page:
    def __init__(self) -> None:
        self.array = np.zeros(1, np.uint16)


def pages(count: int) -> list[Any]:
    return [Page() for _ in range(count)]


def with_pages(*counts: int) -> tuple[SharedChunks, list[list[Any]]]:
    """Of so many cards."""
    chunks, brought = SharedChunks(), [pages(count) for count in counts]
    for of_card in brought:
        chunks.bring(of_card)
    return chunks, brought


def walk(passing: Pass, file: File) -> Generator[tuple[int, Any], None, None]:
    """Part and page, which is held until the next is asked for."""
    while (chunk := passing.take(file.read)) is not None:
        with chunk:
            yield chunk.part, chunk.pinned


def had(passing: Pass, file: File, pause: Callable[[], None] = lambda: None) -> list[int]:
    """What one thread of a card finds, in its order; a copy looks at the page at its end again."""
    found = []
    with closing(walk(passing, file)) as parts:
        for part, page in parts:
            assert page.array[0] == part
            pause()
            assert page.array[0] == part
            found.append(part)
    return found


def test_one_card_reads_every_part_once_in_order() -> None:
    (chunks, _), file = with_pages(1), File()
    assert had(chunks.begin("h", range(0, 50, 5)), file) == list(range(0, 50, 5))
    assert set(file.reads.values()) == {1} and len(file.reads) == 10


def test_threads_of_a_card_share_its_parts() -> None:
    (chunks, _), file = with_pages(3), File()
    passing = chunks.begin("h", range(200))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: had(passing, file, lambda: time.sleep(1e-4)), range(3)))
    assert sorted(sum(found, [])) == list(range(200))
    assert set(file.reads.values()) == {1}


def in_turns(*walks: Iterator[tuple[int, Any]]) -> None:
    """One part of each in turn, none of which lets go of its page before it gets the next."""
    under_way = list(walks)
    while under_way:
        under_way = [walk for walk in under_way if next(walk, None) is not None]


@pytest.mark.parametrize("cards", [2, 3, 8])
def test_cards_that_keep_pace_read_every_part_once(cards: int) -> None:
    (chunks, _), file = with_pages(*[2] * cards), File()
    in_turns(*(walk(chunks.begin("h", range(100)), file) for _ in range(cards)))
    assert file.reads == Counter(range(100))


def test_a_card_that_comes_later_begins_where_the_other_is_and_reads_the_rest_at_the_end() -> None:
    (chunks, _), file = with_pages(2, 2), File()
    first = walk(chunks.begin("h", range(20)), file)
    for _ in range(10):
        next(first)
    late = walk(chunks.begin("h", range(20)), file)
    together = [part for _ in range(10) for part, _ in (next(first), next(late))]
    assert together[::2] == list(range(10, 20)) and set(together[1::2]) <= set(range(9, 20))
    assert next(first, None) is None
    alone = [part for part, _ in late]
    assert sorted(together[1::2] + alone) == list(range(20)) and alone[-9:] == list(range(9))
    assert all(file.reads[part] == 1 + (part < 9) for part in range(20))


def test_the_third_begins_where_the_one_is_that_will_be_there_longest() -> None:
    (chunks, _), file = with_pages(2, 2, 2), File()
    first = walk(chunks.begin("h", range(20)), file)
    for _ in range(5):
        next(first)
    second = chunks.begin("h", range(20))
    for _ in range(7):
        next(first)
    third = chunks.begin("h", range(20))
    assert list(third.wanted) == list(second.wanted) == [("h", k) for k in (*range(5, 20), *range(5))]


def test_a_page_that_nobody_wants_is_taken_before_one_that_somebody_does() -> None:
    """The second card pauses after part 0, which both had; 1 and 2 stay for it."""
    (chunks, _), file = with_pages(2, 2), File()
    first, second = (walk(chunks.begin("h", range(4)), file) for _ in range(2))
    assert [next(first)[0], next(second)[0]] == [0, 0]
    assert [next(first)[0] for _ in range(3)] == [1, 2, 3]
    rest = sorted(part for part, _ in second)
    assert rest == [1, 2, 3] and file.reads == Counter(range(4))


@pytest.mark.parametrize("seed", range(6))
def test_cards_of_any_pace_get_every_part_right(seed: int) -> None:
    """A thread of each card pauses at random, one card more than the others, one begins late."""
    parts, threads, cards = 120, 3, 4
    (chunks, _), file = with_pages(*[2 * threads] * cards), File()
    chance = random.Random(seed)
    pauses = [
        [chance.choice((0, 0, 1e-4, 1e-3)) * (1 + 3 * (card == 1)) for _ in range(97)]
        for card in range(cards)
    ]

    def card(k: int) -> list[int]:
        time.sleep(0.01 * (k == 2))
        passing, waits = chunks.begin("h", range(parts)), iter(pauses[k] * 100)
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(had, passing, file, lambda: time.sleep(next(waits))) for _ in range(threads)]
        return sum((one.result() for one in work), [])

    with ThreadPoolExecutor(cards) as pool:
        for found in pool.map(card, range(cards)):
            assert sorted(found) == list(range(parts))
    assert parts <= sum(file.reads.values()) < 0.9 * cards * parts


def test_parts_of_another_name_are_others() -> None:
    (chunks, _), file, other = with_pages(2, 2), File(), File()
    in_turns(walk(chunks.begin("h", range(9)), file), walk(chunks.begin("l", range(9)), other))
    assert file.reads == other.reads == Counter(range(9))


def test_what_cannot_be_read_is_an_error_of_everyone_who_tries_and_holds_no_page() -> None:
    (chunks, brought), file = with_pages(1, 1), File()
    file.broken = {2}
    for _ in range(2):
        passing = chunks.begin("h", range(4))
        with pytest.raises(OSError, match="part 2"):
            had(passing, file)
        passing.end()
    file.broken = set()
    assert sorted(had(chunks.begin("h", range(4)), file)) == [0, 1, 2, 3]
    assert all(chunks.take_away(of_card) == [] for of_card in brought)


def test_whoever_waits_for_a_part_that_then_fails_reads_it_by_itself() -> None:
    (chunks, _), file = with_pages(1, 1), File()
    begun, go_on = threading.Event(), threading.Event()

    def fail_once(part: int) -> None:
        if file.reads[part] == 1:
            begun.set()
            assert go_on.wait(10)
            raise OSError("once")

    file.before = fail_once
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(had, chunks.begin("h", [7]), file)
        assert begun.wait(10)
        second = pool.submit(had, chunks.begin("h", [7]), file)
        time.sleep(0.05)
        assert not second.done()
        go_on.set()
        with pytest.raises(OSError, match="once"):
            first.result(10)
        assert second.result(10) == [7]


def test_after_the_end_no_thread_gets_another_part() -> None:
    (chunks, _), file = with_pages(2), File()
    passing = chunks.begin("h", range(10))
    parts = walk(passing, file)
    assert next(parts)[0] == 0
    passing.end()
    assert list(parts) == [] and file.reads == Counter([0])


def test_pages_are_taken_away_when_the_other_card_is_done_with_them() -> None:
    (chunks, [of_first, of_second]), file = with_pages(1, 1), File()
    first, second = (walk(chunks.begin("h", range(4)), file) for _ in range(2))
    used = [next(first)[1], next(second)[1]]
    assert used == [used[0]] * 2, "both copy from the same page"
    [leaving, staying] = (of_first, of_second) if used[0] in of_first else (of_second, of_first)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(chunks.take_away, leaving)
        time.sleep(0.05)
        assert not taken.done()
        second.close()
        time.sleep(0.05)
        assert not taken.done()
        assert next(first)[1] in staying
        assert taken.result(10) == []
    assert sorted(part for part, page in first if page in staying) == [2, 3]


def test_a_page_that_another_card_reads_into_is_waited_for_however_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_chunks, "_PATIENCE_S", 0.01)
    (chunks, [mine]), file = with_pages(1), File()
    begun, go_on = threading.Event(), threading.Event()

    def hang(part: int) -> None:
        begun.set()
        assert go_on.wait(10)

    file.before = hang
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(had, chunks.begin("h", [7]), file)
        assert begun.wait(10)
        taken = pool.submit(chunks.take_away, mine)
        time.sleep(0.1)
        assert not taken.done()
        go_on.set()
        assert taken.result(10) == [] and reading.result(10) == [7]


def test_a_card_that_is_stuck_keeps_the_page_and_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_chunks, "_PATIENCE_S", 0.05)
    (chunks, [mine]), file = with_pages(2), File()
    stuck = walk(chunks.begin("h", range(4)), file)
    _, page = next(stuck)
    assert chunks.take_away(mine) == [page]
    stuck.close()
