"""What has been found out about large parameter files, so that it is found out once and not at every proof.

Reading 45 GB to take the digest, or to see that every point is on the curve and of order r, takes minutes. A
small JSON file in cuzk's cache folder says for which files this was done. An entry holds for a file of the
same path, size, time of change and inode; anything else counts as another file. It guards against damage and
confusion, not against somebody who can write to these folders. Losing the record costs time, never
correctness: when it cannot be read or written that is a warning, and when two processes write at once, the
later one wins.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from cuzk.errors import ParameterError, ResourceError
from cuzk.events import Progress
from cuzk.folders import cache_folder
from cuzk.groth16.files import file_digest, make_folder, reading, replace_atomically
from cuzk.groth16.parameters.manifest import ManifestEntry

_VERSION = 1


class RecordWarning(UserWarning):
    """The record of checked files could not be used: what it held is checked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known about one file, as it was when its three numbers were taken."""

    size: int
    mtime_ns: int
    inode: int
    digest: str | None = None
    points_checked: bool = False

    @classmethod
    def nothing_yet(cls, path: Path) -> Checked:
        """Only the numbers of the file as it is now. Raises ParameterError or ResourceError without one."""
        with reading(path):
            stat = os.stat(path)
        return cls(size=stat.st_size, mtime_ns=stat.st_mtime_ns, inode=stat.st_ino)

    def is_of_the_same_file(self, other: Checked) -> bool:
        return replace(self, digest=None, points_checked=False) == replace(
            other, digest=None, points_checked=False
        )


class CheckedFiles:
    """The record, read and written anew at every call, so that processes see each other's work."""

    def __init__(self, record: Path | None = None) -> None:
        self._record = record or cache_folder() / "checked-parameters.json"

    def of(self, path: Path) -> Checked:
        """What is known about the file as it is now."""
        now = Checked.nothing_yet(path)
        known = self._read().get(str(path.resolve()))
        return known if known is not None and known.is_of_the_same_file(now) else now

    def digest(self, path: Path, progress: Progress | None = None) -> str:
        """The file's digest, taken now (about 1 s a GB) unless it is known."""
        known = self.of(path)
        if known.digest is not None:
            return known.digest
        digest = file_digest(path, progress)
        self._add(path, replace(self.of(path), digest=digest), as_of=known)
        return digest

    def require_digest(self, path: Path, entry: ManifestEntry, progress: Progress | None = None) -> None:
        """Raises ParameterError when the file is not the published one."""
        digest = self.digest(path, progress)
        if digest != entry.digest:
            raise ParameterError(
                f"the manifest contradicts the file: digest {digest}, not {entry.digest}",
                where=str(path),
                next="the file is damaged: remove it and fetch it again with `cuzk params fetch`",
            )

    def points_are_good(self, path: Path, as_of: Checked) -> None:
        """Note that every point was checked; `as_of` is what `of` gave before the check began."""
        self._add(path, replace(self.of(path), points_checked=True), as_of=as_of)

    def forget(self, path: Path) -> None:
        """Nothing is known about the file afterwards."""
        files = self._read()
        if files.pop(str(path.resolve()), None) is not None:
            self._write(files)

    def _add(self, path: Path, checked: Checked, *, as_of: Checked) -> None:
        if not checked.is_of_the_same_file(as_of):  # it changed while it was read: nothing is known
            return
        self._write({**self._read(), str(path.resolve()): checked})

    def _write(self, files: dict[str, Checked]) -> None:
        content = {"version": _VERSION, "files": {name: asdict(entry) for name, entry in files.items()}}
        try:
            make_folder(self._record.parent)
            replace_atomically(self._record, json.dumps(content, indent=1).encode())
        except ResourceError as error:
            warnings.warn(f"the check is not remembered: {error}", RecordWarning, stacklevel=3)

    def _read(self) -> dict[str, Checked]:
        try:
            content = json.loads(self._record.read_bytes())
            if content["version"] != _VERSION:
                return {}
            return {name: _parse(entry) for name, entry in content["files"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            warnings.warn(
                f"the record of checked files {self._record} is unreadable and begun anew: {error!r}",
                RecordWarning,
                stacklevel=3,
            )
            return {}


def _parse(entry: dict[str, object]) -> Checked:
    """Raises TypeError or KeyError unless every field is there with its type."""
    known = Checked(**{field.name: entry[field.name] for field in fields(Checked)})  # type: ignore[arg-type]
    numbers = (known.size, known.mtime_ns, known.inode)
    if not all(isinstance(number, int) for number in numbers):
        raise TypeError("a size, time or inode is no integer")
    if not isinstance(known.digest, str | None) or not isinstance(known.points_checked, bool):
        raise TypeError("a digest is no text, or a mark no truth value")
    return known
