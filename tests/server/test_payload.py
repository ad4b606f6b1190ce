"""The bytes of a request come back as they were, from a file in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.server.payload import Payload

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 5])
def test_a_file_of_any_size_is_read_whole(size: int, tmp_path: Path) -> None:
    content = bytes(k % 251 for k in range(4096)) * (size // 4096 + 1)
    path = tmp_path / "a"
    path.write_bytes(content[:size])
    data = Payload(path=path, size=size).data()
    assert type(data) is bytes and data == content[:size]


def test_what_is_in_memory_is_not_copied() -> None:
    content = b"content"
    assert Payload(content=content, size=7).data() is content


def test_a_file_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Payload(path=tmp_path / "gone", size=1).data()
