"""Reads a Commit 1 output into plain arrays: lotus-bench's c1.json or its inner document, gzipped or not.

Here the *form* is checked: types, missing keys, counts, tree forms. What the values must satisfy is the
subject of `c1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from cuzk.garbage import without_garbage_collection
from cuzk.sector.arrays import Bytes, Counts
from cuzk.sector.document import read_document
from cuzk.sector.merkle import Paths
from cuzk.sector.porep.c1 import C1
from cuzk.sector.porep.c1_document import (
    ColumnProof,
    ColumnProofs,
    InclusionPath,
    Labeling,
    MerkleProof,
    SingleProof,
    SubProof,
    TopProof,
    VanillaProof,
    decode_document,
    decode_partition,
    fail,
)
from cuzk.sector.porep.inputs import COLUMN_NAMES, Labelings, PartitionInput
from cuzk.sector.porep.registered_proof import RegisteredProof, registered_proof
from cuzk.sector.porep.shape import DRG_DEGREE, EXPANDER_DEGREE, LABEL_PARENTS, PorepShape
from cuzk.sector.shape import NODE_BYTES
from cuzk.sector.tree_form import TreeForm, c_and_r_form, d_form


def read_c1(path: Path, *, registered: RegisteredProof | None = None) -> C1:
    """The Commit 1 output in a file. Raises InputError; `registered` as for `parse_c1`."""
    return parse_c1(read_document(path), origin=str(path), registered=registered)


def parse_c1(data: bytes, *, origin: str, registered: RegisteredProof | None = None) -> C1:
    """The Commit 1 output in `data`, which came from `origin`. Raises InputError that names origin and place.

    `registered` replaces the document's own `registered_proof`: for sizes that the registry does not hold.
    """
    with without_garbage_collection():
        return _parsed(data, origin, registered)  # whose million objects end inside


def _parsed(data: bytes, origin: str, registered: RegisteredProof | None) -> C1:
    wrapper, inner = decode_document(data, origin)
    if registered is None:
        registered = registered_proof(inner.registered_proof, where=f"{origin}, registered_proof")
    found, needed = list(inner.vanilla_proofs), registered.size_key
    if found != [needed]:
        named = ", ".join(found) or "nothing"
        fail(f"{registered.name} needs proofs named {needed}, not {named:.80}", f"{origin}, vanilla_proofs")
    proofs = inner.vanilla_proofs[needed]
    _expect(len(proofs), registered.partitions, "partitions", f"{origin}, vanilla_proofs")
    return C1(
        origin=origin,
        registered_proof=registered,
        comm_r=bytes(inner.comm_r),
        comm_d=bytes(inner.comm_d),
        replica_id=bytes(inner.replica_id),
        seed=bytes(inner.seed),
        ticket=bytes(inner.ticket),
        sector_number=wrapper.SectorNum,
        sector_bytes=wrapper.SectorSize,
        partitions=tuple(
            _partition(index, partition, registered.shape, f"{origin}, partition {index}")
            for index, partition in enumerate(proofs)
        ),
    )


def _expect(count: int, expected: int, noun: str, where: str) -> None:
    if count != expected:
        fail(f"{count} {noun} where {expected} are expected", where)


def _partition(index: int, encoded: msgspec.Raw, shape: PorepShape, where: str) -> PartitionInput:
    proofs = decode_partition(encoded, where)
    _expect(len(proofs), shape.challenges, "challenges", where)
    count, c_and_r = len(proofs), c_and_r_form(shape)
    placed = [(f"{where}, challenge {number}", proof) for number, proof in enumerate(proofs)]
    columns = [named for place, proof in placed for named in _columns(proof.replica_column_proofs, place)]
    labelings = [labeling for place, proof in placed for labeling in _labels(proof, shape.layers, place)]
    d_proofs = [(f"{place}, D path", proof.comm_d_proofs) for place, proof in placed]
    r_proofs = [(f"{place}, R path", proof.comm_r_last_proof) for place, proof in placed]
    c_proofs = [(f"{place}, C path of {name}", column.inclusion_proof) for place, name, column in columns]
    encodings = [(f"{place}, encoding", proof.encoding_proof) for place, proof in placed]
    return PartitionInput(
        index=index,
        d_paths=_paths(d_proofs, d_form(shape), count),
        r_paths=_paths(r_proofs, c_and_r, count),
        c_paths=_paths(c_proofs, c_and_r, count, len(COLUMN_NAMES)),
        columns=_rows(columns, shape.layers, count, len(COLUMN_NAMES)),
        column_nodes=_counts([column.column.index for _, _, column in columns], count, len(COLUMN_NAMES)),
        labelings=_labelings(labelings, count, shape.layers),
        encodings=_labelings(encodings, count),
    )


def _columns(proofs: ColumnProofs, place: str) -> Iterator[tuple[str, str, ColumnProof]]:
    """Place, name and proof of the 15 columns of a challenge."""
    _expect(len(proofs.drg_parents), DRG_DEGREE, "DRG parents", place)
    _expect(len(proofs.exp_parents), EXPANDER_DEGREE, "expander parents", place)
    columns = [proofs.c_x, *proofs.drg_parents, *proofs.exp_parents]
    return ((place, name, column) for name, column in zip(COLUMN_NAMES, columns, strict=True))


def _labels(proof: VanillaProof, layers: int, place: str) -> Iterator[tuple[str, Labeling]]:
    """Place and preimage of a challenge's labels, layer 1 first."""
    _expect(len(proof.labeling_proofs), layers, "labels", place)
    return ((f"{place}, label of layer {i}", label) for i, label in enumerate(proof.labeling_proofs, start=1))


def _paths(placed: Iterable[tuple[str, MerkleProof]], form: TreeForm, *axes: int) -> Paths:
    roots: list[list[int]] = []
    leaves: list[list[int]] = []
    siblings: list[list[int]] = []
    indices: list[int] = []
    for where, proof in placed:
        body = _body(proof, form, where)
        roots.append(body.root)
        leaves.append(body.leaf)
        for part, arities in form.parts:
            _add_levels(getattr(body, part), arities, siblings, indices, f"{where}, {part}")
    return Paths(
        roots=_hashes(roots, *axes),
        leaves=_hashes(leaves, *axes),
        siblings=_hashes(siblings, *axes, -1),
        indices=_counts(indices, *axes, -1),
    )


def _body(proof: MerkleProof, form: TreeForm, where: str) -> SingleProof | SubProof | TopProof:
    """The path in the only variant that the tree has."""
    variants = {"Single": proof.data.Single, "Sub": proof.data.Sub, "Top": proof.data.Top}
    found = {name: body for name, body in variants.items() if body is not None}
    if list(found) != [form.variant]:
        fail(f"the path says {' and '.join(found) or 'nothing'} where {form.variant} is expected", where)
    return found[form.variant]


def _add_levels(
    path: InclusionPath, arities: Sequence[int], siblings: list[list[int]], indices: list[int], where: str
) -> None:
    _expect(len(path.path), len(arities), "levels", where)
    for level, (element, arity) in enumerate(zip(path.path, arities, strict=True)):
        if len(element.hashes) != arity - 1 or element.index >= arity:
            _expect(len(element.hashes), arity - 1, "siblings", f"{where}, level {level}")
            fail(f"index {element.index} among {arity} children", f"{where}, level {level}")
        siblings += element.hashes
        indices.append(element.index)


def _rows(columns: Iterable[tuple[str, str, ColumnProof]], layers: int, *axes: int) -> Bytes:
    rows: list[list[int]] = []
    for place, name, column in columns:
        _expect(len(column.column.rows), layers, "rows", f"{place}, column of {name}")
        rows += column.column.rows
    return _hashes(rows, *axes, layers)


def _labelings(placed: Iterable[tuple[str, Labeling]], *axes: int) -> Labelings:
    parents: list[list[int]] = []
    layers: list[int] = []
    nodes: list[int] = []
    for where, labeling in placed:
        _expect(len(labeling.parents), LABEL_PARENTS, "parents", where)
        parents += labeling.parents
        layers.append(labeling.layer_index)
        nodes.append(labeling.node)
    return Labelings(
        parents=_hashes(parents, *axes, LABEL_PARENTS),
        layers=_counts(layers, *axes),
        nodes=_counts(nodes, *axes),
    )


def _hashes(hashes: Iterable[list[int]], *axes: int) -> Bytes:
    """(*axes, 32) uint8, read-only."""
    return np.frombuffer(b"".join(map(bytes, hashes)), dtype=np.uint8).reshape(*axes, NODE_BYTES)


def _counts(values: list[int], *axes: int) -> Counts:
    """(*axes) int64, read-only."""
    counts = np.array(values, dtype=np.int64).reshape(*axes)
    counts.flags.writeable = False
    return counts
