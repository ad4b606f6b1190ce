"""Getting published parameter files from a gateway: resumable, checked against the manifest, whole or absent.

Bytes go to `<name>.part`, which an interrupted download leaves behind; the next one asks for the rest by
Range. Only a file with the manifest's digest gets its name; one with another digest is discarded.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from cuzk.errors import ParameterError, ResourceError, UsageError
from cuzk.events import Progress
from cuzk.groth16.files import file_digest, make_folder, require_space, writing
from cuzk.groth16.parameters.manifest import ManifestEntry
from cuzk.whole_files import sync

DEFAULT_GATEWAY = "https://proofs.filecoin.io/ipfs"
_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 60
_OK, _PARTIAL, _RANGE_NOT_SATISFIABLE = 200, 206, 416
_RESUME = "run the same command again: it goes on where this one stopped"


def fetch(
    entry: ManifestEntry,
    folder: Path,
    *,
    gateway: str = DEFAULT_GATEWAY,
    progress: Progress | None = None,
    digest_progress: Progress | None = None,
) -> Path:
    """Download `entry` to `folder` and return its path; a file of that name is replaced.

    progress          (bytes that are there, total bytes), from the network and from an earlier download
    digest_progress   the same for the check that follows
    Raises ResourceError for network, disk and permissions, ParameterError for another content, UsageError for
    a gateway that is none.
    """
    url = f"{_address(gateway)}/{entry.cid}"
    make_folder(folder)
    path = folder / entry.name
    part = folder / f"{entry.name}.part"
    with writing(part), part.open("ab") as file:
        _lock(file, part)
        _append_missing(file, url, folder, progress)
        sync(file)
        digest = file_digest(part, digest_progress)
        if digest != entry.digest:
            part.unlink()
            raise ParameterError(
                f"the gateway sent something else: digest {digest}, the manifest says {entry.digest}",
                where=url,
                next="the download was discarded: try again, or another gateway",
            )
        os.replace(part, path)
    return path


def is_gateway(url: str) -> bool:
    """Whether it may be one, by its form."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a [ without its ]
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _address(gateway: str) -> str:
    if not is_gateway(gateway):
        raise UsageError(
            f"{gateway!r:.80} is no URL of a gateway",
            where="--gateway",
            next=f"write one as {DEFAULT_GATEWAY}",
        )
    return gateway.rstrip("/")


def _lock(file: BinaryIO, part: Path) -> None:
    """Two downloads into one file would spoil both. The lock goes with the process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ResourceError(
            "another process is downloading this file", where=str(part), next="wait until it is done"
        ) from error


def _append_missing(file: BinaryIO, url: str, folder: Path, progress: Progress | None) -> None:
    """Make the part file complete; from the start, if the gateway does not resume or has fewer bytes."""
    with _network(url), _request(url, file.tell()) as response:
        done, total = _span(response, url)
        with writing(folder):
            file.truncate(done)
        require_space(folder, total - done)
        while done < total:
            chunk = response.read(min(_CHUNK_BYTES, total - done))
            if not chunk:
                raise ResourceError(
                    f"the connection ended after {done:,} of {total:,} bytes", where=url, next=_RESUME
                )
            with writing(folder):
                file.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)


def _request(url: str, have: int) -> HTTPResponse:
    """The answer to a request for what follows the first `have` bytes.

    The last of these is asked for once more, so that a complete part is not a range that cannot be satisfied.
    """
    headers = {"Range": f"bytes={have - 1}-"} if have else {}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S)
    except HTTPError as error:
        if error.code == _RANGE_NOT_SATISFIABLE and have:
            error.close()
            return _request(url, 0)
        raise
    return response


@contextmanager
def _network(url: str) -> Iterator[None]:
    """Turns what urllib raises into what the user can mend; a ValueError is of a port that is no number."""
    try:
        yield
    except HTTPError as error:
        error.close()
        raise ResourceError(
            f"the gateway answers {error.code} {error.reason}",
            where=url,
            next="try later, or another gateway",
        ) from error
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise ResourceError(
            f"the gateway cannot be reached: {reason}", where=url, next=f"check the network; {_RESUME}"
        ) from error


def _span(response: HTTPResponse, url: str) -> tuple[int, int]:
    """(first byte, total bytes) of what the response holds the rest of."""
    if response.status == _PARTIAL:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if match:
            return int(match[1]), int(match[2])
    length = response.headers.get("Content-Length", "")
    if response.status == _OK and length.isdecimal():
        return 0, int(length)
    raise ResourceError(
        f"the gateway answers {response.status} without saying how long the file is",
        where=url,
        next="try another gateway",
    )
