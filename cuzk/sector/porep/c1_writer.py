"""Arrays to the document that `c1_reader` reads: byte for byte what lotus-bench writes for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from cuzk.garbage import without_garbage_collection
from cuzk.sector.merkle import Paths
from cuzk.sector.porep.c1 import C1
from cuzk.sector.porep.c1_document import (
    Column,
    ColumnProof,
    ColumnProofs,
    Element,
    InclusionPath,
    Inner,
    Labeling,
    MerkleProof,
    ProofData,
    SingleProof,
    SubProof,
    TopProof,
    VanillaProof,
    Wrapper,
)
from cuzk.sector.porep.inputs import COLUMN_NAMES, Labelings, PartitionInput
from cuzk.sector.porep.shape import DRG_DEGREE, LABEL_PARENTS, PorepShape
from cuzk.sector.shape import NODE_BYTES
from cuzk.sector.tree_form import TreeForm, c_and_r_form, d_form


def encode_c1(c1: C1) -> bytes:
    """The bytes of a c1.json, 51 MB for 32 GiB. The sector has the number and size that the wrapper says."""
    assert c1.sector_number is not None and c1.sector_bytes is not None, c1.origin
    with without_garbage_collection():
        wrapper = Wrapper(
            SectorNum=c1.sector_number,
            Phase1Out=msgspec.json.encode(_inner(c1)),
            SectorSize=c1.sector_bytes,
        )
        return msgspec.json.encode(wrapper)


def _inner(c1: C1) -> Inner:
    proofs = [msgspec.json.encode(_vanilla_proofs(partition, c1.shape)) for partition in c1.partitions]
    return Inner(
        registered_proof=c1.registered_proof.name,
        vanilla_proofs={c1.registered_proof.size_key: [msgspec.Raw(encoded) for encoded in proofs]},
        comm_r=list(c1.comm_r),
        comm_d=list(c1.comm_d),
        replica_id=list(c1.replica_id),
        seed=list(c1.seed),
        ticket=list(c1.ticket),
    )


def _vanilla_proofs(partition: PartitionInput, shape: PorepShape) -> list[VanillaProof]:
    """The proof of each challenge."""
    columns, labelings = iter(_column_proofs(partition, shape)), iter(_labelings(partition.labelings))
    openings = zip(
        _merkle_proofs(partition.d_paths, d_form(shape)),
        _merkle_proofs(partition.r_paths, c_and_r_form(shape)),
        _labelings(partition.encodings),
        strict=True,
    )
    proofs = []
    for d_proof, r_proof, encoding in openings:
        own, *parents = islice(columns, len(COLUMN_NAMES))
        proofs.append(
            VanillaProof(
                comm_d_proofs=d_proof,
                comm_r_last_proof=r_proof,
                replica_column_proofs=ColumnProofs(
                    c_x=own, drg_parents=parents[:DRG_DEGREE], exp_parents=parents[DRG_DEGREE:]
                ),
                labeling_proofs=list(islice(labelings, shape.layers)),
                encoding_proof=encoding,
            )
        )
    return proofs


def _column_proofs(partition: PartitionInput, shape: PorepShape) -> list[ColumnProof]:
    """15 for each challenge."""
    nodes = partition.column_nodes.reshape(-1).tolist()
    rows = partition.columns.reshape(len(nodes), shape.layers, NODE_BYTES).tolist()
    proofs = _merkle_proofs(partition.c_paths, c_and_r_form(shape))
    return [
        ColumnProof(column=Column(index=index, rows=hashes), inclusion_proof=proof)
        for index, hashes, proof in zip(nodes, rows, proofs, strict=True)
    ]


def _labelings(labelings: Labelings) -> list[Labeling]:
    parents = labelings.parents.reshape(-1, LABEL_PARENTS, NODE_BYTES).tolist()
    layers, nodes = labelings.layers.reshape(-1).tolist(), labelings.nodes.reshape(-1).tolist()
    return [
        Labeling(parents=hashes, layer_index=layer, node=node)
        for hashes, layer, node in zip(parents, layers, nodes, strict=True)
    ]


def _merkle_proofs(paths: Paths, form: TreeForm) -> list[MerkleProof]:
    roots, leaves = (
        paths.roots.reshape(-1, NODE_BYTES).tolist(),
        paths.leaves.reshape(-1, NODE_BYTES).tolist(),
    )
    siblings = paths.siblings.reshape(len(roots), -1, NODE_BYTES).tolist()
    indices = paths.indices.reshape(len(roots), -1).tolist()
    return [_merkle_proof(*path, form) for path in zip(roots, leaves, siblings, indices, strict=True)]


def _merkle_proof(
    root: list[int], leaf: list[int], siblings: list[list[int]], indices: list[int], form: TreeForm
) -> MerkleProof:
    hashes, positions = iter(siblings), iter(indices)
    base, *upper = (_inclusion_path(arities, hashes, positions) for _, arities in form.parts)
    if form.variant == "Single":
        return MerkleProof(ProofData(Single=SingleProof(root=root, leaf=leaf, path=base)))
    if form.variant == "Sub":
        sub = SubProof(base_proof=base, sub_proof=upper[0], root=root, leaf=leaf)
        return MerkleProof(ProofData(Sub=sub))
    top = TopProof(base_proof=base, sub_proof=upper[0], top_proof=upper[1], root=root, leaf=leaf)
    return MerkleProof(ProofData(Top=top))


def _inclusion_path(
    arities: tuple[int, ...], hashes: Iterator[list[int]], positions: Iterator[int]
) -> InclusionPath:
    """The next levels' siblings and positions."""
    return InclusionPath(
        path=[Element(hashes=list(islice(hashes, arity - 1)), index=next(positions)) for arity in arities]
    )
