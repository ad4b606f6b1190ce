"""Writing development parameters: `.params` in chunks, with `.vk`, `.meta` and the mark, all of them or none.

Everything goes to temporary files in the same folder, which are renamed when the last point is on the disk,
and removed by any exception before that, Ctrl-C included; what a killed process left is removed by the next
writer. Layout: `parameters`; order of the renames: the mark first, so that at no moment a new file stands
there unmarked, and `.params` last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from cuzk.errors import ParameterError
from cuzk.groth16.files import make_folder, require_space, writing
from cuzk.groth16.parameters.development import MARK_SUFFIX, mark_content
from cuzk.groth16.parameters.params_file import SECTIONS, PointCounts, SectionName, read_key_of
from cuzk.groth16.parameters.verifying_key import COUNT_BYTES, VerifyingKey
from cuzk.whole_files import NewFile

_SMALL_FILES_BYTES = 1 << 16
"""Room for `.vk`, `.meta` and the mark beside `.params`."""


def prepare_folder(folder: Path, counts: PointCounts) -> None:
    """The folder exists and has room for parameters of these counts. Raises ResourceError."""
    make_folder(folder)
    require_space(folder, counts.file_bytes + _SMALL_FILES_BYTES)


def _small_files(
    folder: Path, stem: str, key: VerifyingKey, sector_bytes: int, given_trapdoors: Mapping[str, int] | None
) -> dict[Path, bytes]:
    """What stands beside `.params`, in the order of the renames."""
    meta = json.dumps({"sector_size": sector_bytes}, separators=(",", ":"))
    return {
        folder / (stem + MARK_SUFFIX): mark_content(key, given_trapdoors),
        folder / f"{stem}.meta": meta.encode(),
        folder / f"{stem}.vk": key.to_bytes(),
    }


def write_key(
    folder: Path,
    stem: str,
    key: VerifyingKey,
    *,
    sector_bytes: int,
    given_trapdoors: Mapping[str, int] | None,
) -> list[Path]:
    """Write `stem`.vk, .meta and the mark, all of them or none: the paths of .vk and .meta.

    Raises ResourceError when writing fails; ParameterError when other parameters of that name are there.
    """
    make_folder(folder)
    params, vk = folder / f"{stem}.params", folder / f"{stem}.vk"
    if params.exists() and read_key_of(params) != key:
        raise ParameterError(
            "there are parameters of another key, to which the new one would not belong",
            where=str(params),
            next="name another folder with --out",
        )
    with writing(vk), ExitStack() as files:
        _put_in_place(files, _small_files(folder, stem, key, sector_bytes, given_trapdoors))
    return [vk, vk.with_suffix(".meta")]


def _put_in_place(files: ExitStack, contents: Mapping[Path, bytes]) -> None:
    """New files, renamed when all of them are on the disk; `files` removes what has not been."""
    new = [files.enter_context(closing(NewFile(path))) for path in contents]
    for file, content in zip(new, contents.values(), strict=True):
        file.write(content)
        file.sync()
    for file in new:
        file.take_place()


class ParameterWriter:
    """Writes the parameters `stem` of one circuit into `folder`.

        with ParameterWriter(folder, stem, key, counts, sector_bytes=2048, given_trapdoors=None) as writer:
            for chunk in h_chunks:
                writer.write("h", chunk)
            ...                                     # l, a, b_g1, b_g2: the order of the file

    The folder is one that `prepare_folder` has found good. Raises ResourceError when writing fails.
    Leaving without an exception requires that every section is complete.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        key: VerifyingKey,
        counts: PointCounts,
        *,
        sector_bytes: int,
        given_trapdoors: Mapping[str, int] | None,
    ) -> None:
        assert len(key.ic) == counts.ic, (len(key.ic), counts.ic)
        self.path = folder / f"{stem}.params"
        self._key = key
        self._small_files = _small_files(folder, stem, key, sector_bytes, given_trapdoors)
        self._files = ExitStack()
        self._todo = [(name, size, counts.of(name)) for name, size in SECTIONS]  # [0] is being written

    def __enter__(self) -> ParameterWriter:
        with writing(self.path), self._files:
            self._file = self._files.enter_context(closing(NewFile(self.path)))
            self._file.write(self._key.to_bytes())
            self._begin_sections()
            self._files = self._files.pop_all()
        return self

    def write(self, section: SectionName, points: npt.NDArray[np.uint8]) -> None:
        """Append (n, 96) or (n, 192) uint8 to `section`, whose turn it must be."""
        name, size, missing = self._todo[0]
        assert section == name and points.dtype == np.uint8, (section, name, points.dtype)
        assert points.ndim == 2 and points.shape[1] == size, (section, points.shape)
        assert len(points) <= missing, (section, len(points), missing)
        self._todo[0] = (name, size, missing - len(points))
        with writing(self.path):
            self._file.write(points.reshape(-1).data)
            self._send_to_disk(points.nbytes)
            if len(points) == missing:
                self._todo.pop(0)
                self._begin_sections()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:  # removes what has not been renamed
            if error is None:
                assert not self._todo, f"sections not complete: {self._todo}"
                with writing(self.path):
                    self._publish()

    def _begin_sections(self) -> None:
        """Write the count of the section whose turn it is; pass over sections without points."""
        while self._todo:
            _, _, count = self._todo[0]
            self._file.write(count.to_bytes(COUNT_BYTES, "big"))
            if count:
                return
            self._todo.pop(0)

    def _send_to_disk(self, count: int) -> None:
        """Let the last `count` bytes be on their way while the next are computed: `_publish` waits less.

        The advice starts the copy of what the disk lacks; pages under way stay in memory, a few are dropped.
        """
        file = self._file.file
        os.posix_fadvise(file.fileno(), file.tell() - count, count, os.POSIX_FADV_DONTNEED)

    def _publish(self) -> None:
        self._file.sync()
        _put_in_place(self._files, self._small_files)
        self._file.take_place()
