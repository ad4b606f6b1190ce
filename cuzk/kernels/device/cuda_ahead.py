"""A card opened while Python imports: the driver's start and a card's context take some tenths of a second.

It loads no compiler, so that it can begin before that does.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from cuzk.errors import CuzkError
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import Context, checked, load_api


class OpenedAhead:
    """The context of the card of that name, "auto" for the first, retained in a thread until `close`.

    Whoever opens the card meanwhile shares the context. What goes wrong here goes wrong there again, where it
    is told. `with` closes. api stands in for the driver in tests.
    """

    def __init__(self, name: str, *, api: Any = None) -> None:
        self._name, self._api = name, api
        self._context: Context | None = None
        self._thread = threading.Thread(target=self._open, name="cuzk card", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        with suppress(CuzkError):
            api = load_api() if self._api is None else self._api
            card = find_card(api, "cuda:0" if self._name == "auto" else self._name)
            self._context = Context(api, checked(api, card.label, "cuDeviceGet", card.index), card.label)

    def close(self) -> None:
        self._thread.join()
        if self._context is not None:
            self._context.close()

    def __enter__(self) -> OpenedAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
