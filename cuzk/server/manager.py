"""What the service manager is told, if one started this process and listens: the protocol of systemd."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def tell(**facts: str) -> None:
    """tell(READY="1", STATUS="waiting for parameters"). Nobody listens, nothing happens; it never waits."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # a name of Linux that is in no folder
        address = "\0" + address[1:]
    text = "\n".join(f"{name}={value}" for name, value in facts.items())
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        manager.sendto(text.encode(), address)
