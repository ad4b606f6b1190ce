"""Labels: a node's label in a layer is the hash of its place and of its parents' labels.

Source: storage-proofs-porep, stacked/vanilla/create_label.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, as_hashes, read_only
from cuzk.sector.merkle import TRIMMED
from cuzk.sector.porep.replica_id import trim254
from cuzk.sector.porep.shape import DRG_DEGREE, LABEL_PARENTS, PARENTS
from cuzk.sector.shape import NODE_BYTES

_BEFORE_PARENTS = 2 * NODE_BYTES
"""Bytes of a preimage: replica id, and place."""


def label_of(replica_id: bytes, layer: int, node: int, parents: bytes) -> bytes:
    """32 bytes, canonical. `layer` counts from 0; `parents`: 37 labels, none for node 0."""
    position = (layer + 1).to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
    return trim254(sha256(replica_id + position + parents).digest())


def labels_of(replica_id: bytes, nodes: Counts, parents: Bytes) -> Bytes:
    """(n, L, 32): the labels of (n,) nodes in all layers, from (n, L, 37, 32) parents. 1.3 us each."""
    count, layers = parents.shape[:2]
    preimages = np.zeros((count, layers, _BEFORE_PARENTS + LABEL_PARENTS * NODE_BYTES), dtype=np.uint8)
    preimages[..., :NODE_BYTES] = np.frombuffer(replica_id, dtype=np.uint8)
    position = preimages[..., NODE_BYTES:_BEFORE_PARENTS]
    position[..., :4] = np.arange(1, layers + 1, dtype=">u4").view(np.uint8).reshape(-1, 4)
    position[..., 4:12] = nodes.astype(">u8").view(np.uint8).reshape(-1, 1, 8)
    preimages[..., _BEFORE_PARENTS:] = parents.reshape(count, layers, -1)
    data, size = preimages.tobytes(), preimages.shape[-1]
    digests = b"".join([sha256(data[at : at + size]).digest() for at in range(0, len(data), size)])
    labels = np.frombuffer(digests, dtype="<u8").reshape(count, layers, -1) & TRIMMED
    return as_hashes(labels)


@cache
def label_parents(layer: int) -> tuple[Counts, Counts]:
    """Column (1..14) and layer of each of a label's 37 parents; layers count from 0.

    DRG parents are of the label's own layer, expander parents of the one below, so layer 0 has none.
    """
    columns = np.arange(1, 1 + (DRG_DEGREE if layer == 0 else PARENTS))
    layers = np.where(columns <= DRG_DEGREE, layer, layer - 1)
    return read_only(np.resize(columns, LABEL_PARENTS)), read_only(np.resize(layers, LABEL_PARENTS))
