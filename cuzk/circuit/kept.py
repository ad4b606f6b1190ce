"""Circuits kept on disk with all that follows from them: building one costs half a second, finding it 30 ms.

A kept circuit lies beside the compiled kernels, under a name that holds a hash of everything that it is made
from. It is used from a private mapping, so that only what is read is loaded. A file that is damaged is built
anew, with a warning; one that cannot be written costs time at the next start.

File    n and the lengths of n parts, uint64 | the parts | CRC-32 of all that, little-endian
        Part 0 is a pickle, the others are the buffers of its arrays; each is filled up to ALIGNMENT.
Trust   a pickle can run code: the checksum guards against damage, not against somebody who can write to this
        folder, and he could replace the compiled kernels as well.
"""

from __future__ import annotations

import mmap
import pickle
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import reduce
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import numpy as np

import cuzk.circuit
import cuzk.sector
from cuzk.circuit.builder import Circuit
from cuzk.kernels.jit import CacheWarning, cache_is_writable, compiled_folder
from cuzk.whole_files import replace_whole

CHECKSUM_BYTES = 4
ALIGNMENT = 64
_HASH_DIGITS = 16


class DamagedFile(Exception):
    """The file is not what was written."""


def kept(name: str, build: Callable[[], Circuit]) -> Circuit:
    """The circuit `name` as `build` makes it: from disk, or built and kept there for the next process.

    name  says which circuit this is, with every argument that `build` depends on
    """
    path = compiled_folder() / f"circuit {name} {_sources_hash()}"
    try:
        return load(path)
    except FileNotFoundError:
        pass
    except (OSError, DamagedFile) as error:
        warnings.warn(f"{path} is damaged and made anew: {error}", CacheWarning, stacklevel=2)
    circuit = build()
    if cache_is_writable():
        try:
            save(path, circuit)
        except OSError as error:
            warnings.warn(f"the circuit is not kept in {path}: {error}", CacheWarning, stacklevel=2)
    return circuit


def _sources_hash() -> str:
    """Of what a circuit is made from; the kernels' sources are in the name of the folder."""
    digest = sha256(f"{sys.version} {np.__version__}".encode())
    for package in (cuzk.circuit, cuzk.sector):
        for source in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(source.relative_to(package.__path__[0]).as_posix().encode() + source.read_bytes())
    return digest.hexdigest()[:_HASH_DIGITS]


def save(path: Path, circuit: Circuit) -> None:
    """Raises OSError when the file cannot be written; then there is none."""
    _ = circuit.flat_templates, circuit.packed_occurrences, circuit.waves  # kept with the fields
    _ = circuit.instance_counts, circuit.full
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(circuit, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(stream), *(buffer.raw() for buffer in buffers)]
    head = np.array([len(parts), *map(len, parts)], np.uint64)
    content = [piece for part in (head.data.cast("B"), *parts) for piece in (part, _padding(len(part)))]
    checksum = reduce(lambda so_far, piece: zlib.crc32(piece, so_far), content, 0)
    replace_whole(path, [*content, checksum.to_bytes(CHECKSUM_BYTES, "little")])


def load(path: Path) -> Circuit:
    """Raises OSError when the file cannot be read, DamagedFile when it is not as it was written."""
    with path.open("rb") as file:
        if file.seek(0, 2) <= CHECKSUM_BYTES:
            raise DamagedFile("it is too short")
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    content, checksum = mapped[:-CHECKSUM_BYTES], mapped[-CHECKSUM_BYTES:]
    if zlib.crc32(content) != int.from_bytes(checksum, "little"):
        raise DamagedFile("its checksum is wrong")
    words = content.cast("Q")
    lengths = words[1 : 1 + words[0]].tolist()
    places = accumulate(size + len(_padding(size)) for size in (8 + 8 * len(lengths), *lengths))
    stream, *buffers = (content[at : at + size] for at, size in zip(places, lengths, strict=False))
    circuit = pickle.loads(stream, buffers=buffers)
    assert isinstance(circuit, Circuit), path
    return circuit


def _padding(size: int) -> memoryview:
    return memoryview(bytes(-size % ALIGNMENT))
