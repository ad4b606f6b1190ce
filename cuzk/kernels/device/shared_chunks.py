"""Parts of a file in pinned memory, each read once for all cards that want it at about the same time.

Every card brings pages for what it has under way, and some more; a part that one card has read stays in its
page for the others, until the page is needed for another part. A card reads the first part that nobody has,
unless there is one that was read for it; it waits for others only where they are just reading all that it
still wants. So cards that begin together share the reading. One that begins later starts where another is,
and reads at the end what came before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence

from cuzk.kernels.device.cuda_memory import HostArray, PinnedArray

#: read(part, out): what belongs into the page of this part.
ReadPart = Callable[[int, HostArray], None]
_Key = tuple[Hashable, int]
# How long a card that leaves waits for copies out of its pages. They take milliseconds.
_PATIENCE_S = 10.0


class _Page:
    """key            what it holds, or is about to
    is_read        whether it does
    is_being_read  a thread writes into it
    users          threads that use it, that one too
    """

    __slots__ = ("is_being_read", "is_read", "key", "pinned", "users")

    def __init__(self, pinned: PinnedArray) -> None:
        self.pinned = pinned
        self.key: _Key | None = None
        self.is_read = self.is_being_read = False
        self.users = 0


class SharedChunks:
    """Pages of the cards that load the same file now, all of one size. All state is guarded by `_changed`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pages: list[_Page] = []  # what was read last comes last
        self._at: dict[_Key, _Page] = {}
        self._passes: list[Pass] = []

    def bring(self, pages: Iterable[PinnedArray]) -> None:
        """For everyone, until they are taken away: at least one for each thread of this card."""
        with self._changed:
            self._pages[:0] = map(_Page, pages)
            self._changed.notify_all()

    def take_away(self, pages: Sequence[PinnedArray]) -> list[PinnedArray]:
        """Nobody uses them any more, but those returned: with them another card is stuck in a copy.

        Waits for reads to end, as whoever reads does.
        """
        with self._changed:
            leaving = [page for page in self._pages if page.pinned in pages]
            for page in leaving:
                self._pages.remove(page)
                self._forget(page)
            self._changed.wait_for(lambda: not any(page.is_being_read for page in leaving))
            self._changed.wait_for(lambda: not any(page.users for page in leaving), _PATIENCE_S)
            return [page.pinned for page in leaving if page.users]

    def begin(self, name: Hashable, parts: Iterable[int]) -> Pass:
        """All parts for one card. What has the same name and number is the same for all of them."""
        with self._changed:
            keys = [(name, part) for part in parts]
            fronts = [(len(one.wanted), next(iter(one.wanted))) for one in self._passes if one.wanted]
            there = [front for front in fronts if front[1] in keys]
            if there:  # begin where the card is that has most before it
                first = keys.index(max(there)[1])
                keys = keys[first:] + keys[:first]
            passing = Pass(self, keys)
            self._passes.append(passing)
            return passing

    def take(self, passing: Pass, read: ReadPart) -> Chunk | None:
        found = self._begin(passing)
        if found is None:
            return None
        page, part = found
        if page.is_being_read:
            try:
                read(part, page.pinned.array)
            except BaseException:
                self.give_back(page)
                raise
            self._was_read(page)
        return Chunk(self, page, part)

    def _begin(self, passing: Pass) -> tuple[_Page, int] | None:
        """A page for one thread, and the part that it reads or finds there. None when all are had."""
        with self._changed:
            while passing.wanted:
                page = self._read_for(passing) or self._spare_for(passing)
                if page is not None:
                    assert page.key is not None
                    del passing.wanted[page.key]
                    page.users += 1
                    return page, page.key[1]
                self._changed.wait()
            self._passes = [one for one in self._passes if one is not passing]
            return None

    def _read_for(self, passing: Pass) -> _Page | None:
        """One that others have read."""
        pages = (self._at[key] for key in self._at.keys() & passing.wanted.keys())
        return next((page for page in pages if page.is_read), None)

    def _spare_for(self, passing: Pass) -> _Page | None:
        """One to read into: the last that nobody wants any more, as it is still in the CPU's cache; else the
        first that was read.
        """
        key = next((key for key in passing.wanted if key not in self._at), None)
        spare = [page for page in self._pages if not page.users]
        if key is None or not spare:
            return None
        page = next((page for page in reversed(spare) if not self._is_wanted(page)), spare[0])
        self._forget(page)
        self._pages.remove(page)
        self._pages.append(page)
        page.key, self._at[key], page.is_being_read = key, page, True
        return page

    def _is_wanted(self, page: _Page) -> bool:
        return any(page.key in one.wanted for one in self._passes)

    def _was_read(self, page: _Page) -> None:
        with self._changed:
            page.is_being_read = False
            page.is_read = page.key is not None  # otherwise its card has left meanwhile
            self._changed.notify_all()

    def give_back(self, page: _Page) -> None:
        """What could not be read is left to others, if they want it."""
        with self._changed:
            page.users -= 1
            page.is_being_read = False
            if not page.is_read:
                self._forget(page)
            self._changed.notify_all()

    def end(self, passing: Pass) -> None:
        with self._changed:
            passing.wanted.clear()
            self._passes = [one for one in self._passes if one is not passing]
            self._changed.notify_all()

    def _forget(self, page: _Page) -> None:
        if page.key is not None:
            del self._at[page.key]
        page.key, page.is_read = None, False


class Chunk:
    """A part in its page, which is one thread's until it leaves `with`."""

    def __init__(self, chunks: SharedChunks, page: _Page, part: int) -> None:
        self.part, self.pinned = part, page.pinned
        self._chunks, self._page = chunks, page

    def __enter__(self) -> Chunk:
        return self

    def __exit__(self, *_: object) -> None:
        self._chunks.give_back(self._page)


class Pass:
    """What one card still wants, in the order in which it is read; guarded by the lock of the chunks."""

    def __init__(self, chunks: SharedChunks, keys: Iterable[_Key]) -> None:
        self._chunks = chunks
        self.wanted: dict[_Key, None] = dict.fromkeys(keys)

    def take(self, read: ReadPart) -> Chunk | None:
        """A part that no other thread of this card gets; None when all are had."""
        return self._chunks.take(self, read)

    def end(self) -> None:
        """No thread gets another part."""
        self._chunks.end(self)
