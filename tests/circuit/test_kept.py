"""Circuits kept on disk: the same as built, to the last array, and never a reason to fail."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cuzk.sector
from cuzk.circuit import kept as module
from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.kept import DamagedFile, kept, load, save
from cuzk.circuit.numbers import free_bits, free_numbers, inputize, pack
from cuzk.circuit.poseidon import poseidon
from cuzk.kernels.jit import CacheWarning


def small() -> Circuit:
    """Numbers and bits, an input, two templates of more than one instance."""
    builder = CircuitBuilder("small")
    with builder.section("hash"):
        inputize(
            builder, poseidon(builder, [*free_numbers(builder, 1), pack(builder, free_bits(builder, 9))])
        )
    builder.begin_strand()
    poseidon(builder, free_numbers(builder, 2))
    return builder.circuit()


def smaller() -> Circuit:
    builder = CircuitBuilder("smaller")
    free_bits(builder, 3)
    return builder.circuit()


def arrays_of(circuit: Circuit) -> dict[str, np.ndarray]:
    """Every array that a proof or a digest reads, by name."""
    found = {name: getattr(circuit, name) for name in ("full", "section", "instance_counts")}
    found |= {f"occurs({side})": circuit.occurs(side) for side in (0, 1)}
    found |= {"waves": circuit.waves.order, "where waves begin": np.array(circuit.waves.starts)}
    for part in (circuit.instances, circuit.flat_templates):
        found |= {f"{type(part).__name__}.{name}": value for name, value in part._asdict().items()}
    for number, template in enumerate(circuit.templates):
        for name in ("aux_is_bit", "outputs", "ends", "slots", "coefficients", "full"):
            found[f"templates[{number}].{name}"] = getattr(template, name)
        found[f"templates[{number}].witness"] = template.witness.words
    return found


def plain_facts(circuit: Circuit) -> tuple[object, ...]:
    return (
        (circuit.name, circuit.num_inputs, circuit.num_aux, circuit.strands, circuit.sections),
        [(t.name, t.values, t.labels, t.witness.kind, t.witness.numbers) for t in circuit.templates],
        [t.external_bits for t in circuit.templates],
        [t.external_numbers for t in circuit.templates],
        (circuit.nonzeros, circuit.num_constraints),
        [circuit.name_of_row(row) for row in range(circuit.num_constraints)],
    )


def assert_same(one: Circuit, other: Circuit) -> None:
    assert plain_facts(one) == plain_facts(other)
    first, second = arrays_of(one), arrays_of(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype and np.array_equal(array, second[name]), name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where circuits are kept during a test; it can be written."""
    monkeypatch.setattr(module, "compiled_folder", lambda: tmp_path)
    monkeypatch.setattr(module, "cache_is_writable", lambda: True)
    return tmp_path


def never() -> Circuit:
    raise AssertionError("it was built again")


def test_what_is_loaded_is_what_was_built(folder: Path) -> None:
    built = small()
    assert_same(kept("small", lambda: built), built)
    assert_same(kept("small", never), built)


def test_arrays_for_kernels_are_like_built_ones(folder: Path) -> None:
    """Writable and aligned are part of an array's type: for another type kernels would compile again."""
    kept("small", small)
    loaded = arrays_of(kept("small", never))
    for name, array in loaded.items():
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous, name


def test_writing_to_a_loaded_array_leaves_the_file_alone(folder: Path) -> None:
    kept("small", small)
    for array in arrays_of(kept("small", never)).values():
        array[...] = 0
    assert_same(kept("small", never), small())


def test_circuits_of_different_names_are_apart(folder: Path) -> None:
    kept("small", small)
    kept("smaller", smaller)
    assert_same(kept("small", never), small())
    assert_same(kept("smaller", never), smaller())


def test_a_source_in_a_folder_below_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuzk.sector, "__path__", [str(tmp_path)])
    (tmp_path / "below").mkdir()
    names = set()
    for text in ("", "x = 1", "x = 2"):
        (tmp_path / "below" / "module.py").write_text(text)
        names.add(module._sources_hash())
    assert len(names) == 3


def test_other_sources_make_another_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept("small", small)
    monkeypatch.setattr(module, "_sources_hash", lambda: "another")
    with pytest.raises(AssertionError, match="built again"):
        kept("small", never)


def truncate(data: bytes) -> bytes:
    return data[:-1]


def flip_a_bit(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :]


def empty(data: bytes) -> bytes:
    return b""


def of_something_else(data: bytes) -> bytes:
    return b"#!/bin/sh\n" * 100


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty, of_something_else])
def test_a_damaged_file_is_made_anew_with_a_warning(damage: Callable[[bytes], bytes], folder: Path) -> None:
    kept("small", small)
    [path] = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    with pytest.raises(DamagedFile):
        load(path)
    with pytest.warns(CacheWarning, match="damaged and made anew"):
        assert_same(kept("small", small), small())
    assert_same(kept("small", never), small())


def test_every_byte_of_the_head_matters(folder: Path) -> None:
    kept("small", small)
    [path] = folder.iterdir()
    whole = path.read_bytes()
    for place in range(64):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DamagedFile):
            load(path)


def test_a_folder_that_cannot_be_written_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_is_writable", lambda: False)
    assert_same(kept("small", small), small())
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(module, "cache_is_writable", lambda: True)
    kept("small", small)
    monkeypatch.setattr(module, "cache_is_writable", lambda: False)
    assert_same(kept("small", never), small())


def test_a_full_disk_is_a_warning_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(CacheWarning, match="not kept .* No space left"):
        assert_same(kept("small", small), small())
    assert list(folder.iterdir()) == []


def test_the_file_is_replaced_not_rewritten(folder: Path) -> None:
    """A process that has mapped the old file goes on reading what it mapped."""
    path = folder / "circuit"
    save(path, small())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        before = bytes(mapped)
        save(path, smaller())
        assert bytes(mapped) == before
    assert_same(load(path), smaller())
