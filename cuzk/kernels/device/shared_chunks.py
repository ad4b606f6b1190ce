"""Parts of a file in pinned memory, each read once for all cards that want it at about the same time.

Every card brings pages for what it has under way, and some more; a part that one card has read stays in its
page for the others, until the page is needed for another part. Nobody waits for a slower card: whoever finds
nothing that was read for it reads the first part that nobody has, and what it comes too late for it reads by
itself. Cards that begin together so share the reading among them, one that begins later joins in where the
others are and reads at the end what it has missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence

from cuzk.kernels.device.cuda_memory import HostArray, PinnedArray

#: read(part, out): what belongs into the page of this part.
ReadPart = Callable[[int, HostArray], None]
_Key = tuple[Hashable, int]
# How long a card that leaves waits for others to be done with its pages. A copy takes milliseconds.
_PATIENCE_S = 10.0


class _Page:
    """key      what it holds, or is about to
    is_read  whether it does
    users    threads that use it
    wanted   by so many cards that have not had it yet
    """

    __slots__ = ("is_read", "key", "pinned", "users", "wanted")

    def __init__(self, pinned: PinnedArray) -> None:
        self.pinned = pinned
        self.key: _Key | None = None
        self.is_read = False
        self.users = self.wanted = 0


class SharedChunks:
    """Pages of the cards that load the same file now, all of one size. All state is guarded by `changed`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._pages: list[_Page] = []  # what was used last comes last
        self._at: dict[_Key, _Page] = {}
        self._passes: set[Pass] = set()

    def bring(self, pages: Iterable[PinnedArray]) -> None:
        """For everyone, until they are taken away: at least one for each thread of this card."""
        with self.changed:
            self._pages[:0] = map(_Page, pages)
            self.changed.notify_all()

    def take_away(self, pages: Sequence[PinnedArray]) -> list[PinnedArray]:
        """Nobody uses them any more, but those returned: with them another card is stuck in a copy."""
        with self.changed:
            leaving = [page for page in self._pages if page.pinned in pages]
            for page in leaving:
                self._pages.remove(page)
                self._forget(page)
            self.changed.wait_for(lambda: not any(page.users for page in leaving), _PATIENCE_S)
            return [page.pinned for page in leaving if page.users]

    def begin(self, name: Hashable, parts: Iterable[int]) -> Pass:
        """All parts for one card. What has the same name and number is the same for all of them."""
        with self.changed:
            passing = Pass(self, name, parts)
            self._passes.add(passing)
            return passing

    def next_for(self, passing: Pass) -> tuple[_Page, int, bool] | None:
        """A page that one thread may use, the part that belongs into it, and whether it is there already.

        No other thread of that card has had the part. None when all parts are had.
        """
        with self.changed:
            while passing.wanted:
                page = self._read_for(passing) or self._spare_for(passing)
                if page is not None:
                    assert page.key is not None
                    del passing.wanted[page.key]
                    page.users += 1
                    return page, page.key[1], page.is_read
                self.changed.wait()
            self._passes.discard(passing)
            return None

    def _read_for(self, passing: Pass) -> _Page | None:
        for key in self._at.keys() & passing.wanted.keys():
            page = self._at[key]
            if page.is_read:
                page.wanted -= 1
                return page
        return None

    def _spare_for(self, passing: Pass) -> _Page | None:
        """The last page that nobody wants any more, since it is still in the CPU's cache; else the oldest."""
        key = next((key for key in passing.wanted if key not in self._at), None)
        spare = [page for page in self._pages if not page.users]
        if key is None or not spare:
            return None
        page = next((page for page in reversed(spare) if not page.wanted), spare[0])
        self._forget(page)
        self._pages.remove(page)
        self._pages.append(page)
        page.key, self._at[key] = key, page
        page.wanted = sum(key in other.wanted for other in self._passes) - 1
        return page

    def was_read(self, page: _Page) -> None:
        with self.changed:
            page.is_read = page.key is not None  # otherwise its card has left meanwhile
            self.changed.notify_all()

    def done_with(self, page: _Page) -> None:
        """What could not be read is left to others, if they want it."""
        with self.changed:
            page.users -= 1
            if not page.is_read:
                self._forget(page)
            self.changed.notify_all()

    def end(self, passing: Pass) -> None:
        with self.changed:
            passing.wanted.clear()
            self._passes.discard(passing)
            self.changed.notify_all()

    def _forget(self, page: _Page) -> None:
        if page.key is not None:
            del self._at[page.key]
        page.key, page.is_read, page.wanted = None, False, 0


class Pass:
    """What one card still wants, in the order in which it is read; guarded by the lock of the chunks."""

    def __init__(self, chunks: SharedChunks, name: Hashable, parts: Iterable[int]) -> None:
        self._chunks = chunks
        self.wanted: dict[_Key, None] = {(name, part): None for part in parts}

    def chunks(self, read: ReadPart) -> Generator[tuple[int, PinnedArray], None, None]:
        """Parts that no other thread of this card gets. Each is this thread's until it asks for the next."""
        while (found := self._chunks.next_for(self)) is not None:
            page, part, is_read = found
            try:
                if not is_read:
                    read(part, page.pinned.array)
                    self._chunks.was_read(page)
                yield part, page.pinned
            finally:
                self._chunks.done_with(page)

    def end(self) -> None:
        """No thread gets another part."""
        self._chunks.end(self)
