"""Labels: a node's label in a layer is the hash of its place and of its parents' labels.

Source: storage-proofs-porep, stacked/vanilla/create_label.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256

import numpy as np

from cuzk.sector.arrays import Bytes, Counts, read_only
from cuzk.sector.porep.replica_id import trim254
from cuzk.sector.porep.shape import DRG_DEGREE, LABEL_PARENTS, PARENTS
from cuzk.sector.shape import NODE_BYTES


def label_of(replica_id: bytes, layer: int, node: int, parents: bytes) -> bytes:
    """32 bytes, canonical. `layer` counts from 0; `parents`: 37 labels, none for node 0."""
    position = (layer + 1).to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
    return trim254(sha256(replica_id + position + parents).digest())


def labels_of(replica_id: bytes, layer: int, nodes: Counts, parents: Bytes) -> Bytes:
    """(n, 32): the labels of (n,) nodes in a layer, from (n, 37, 32) parents. 1.3 us each."""
    data, size = parents.tobytes(), LABEL_PARENTS * NODE_BYTES
    preimages = [data[start : start + size] for start in range(0, len(data), size)]
    labels = [label_of(replica_id, layer, *pair) for pair in zip(nodes.tolist(), preimages, strict=True)]
    return np.frombuffer(b"".join(labels), dtype=np.uint8).reshape(-1, NODE_BYTES)


@cache
def label_parents(layer: int) -> tuple[Counts, Counts]:
    """Column (1..14) and layer of each of a label's 37 parents; layers count from 0.

    DRG parents are of the label's own layer, expander parents of the one below, so layer 0 has none.
    """
    columns = np.arange(1, 1 + (DRG_DEGREE if layer == 0 else PARENTS))
    layers = np.where(columns <= DRG_DEGREE, layer, layer - 1)
    return read_only(np.resize(columns, LABEL_PARENTS)), read_only(np.resize(layers, LABEL_PARENTS))
