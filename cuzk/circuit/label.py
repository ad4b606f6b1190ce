"""A node's label as rows: SHA-256 of replica id, layer, node and 37 parents, without the two top bits.

Source: storage-proofs-porep, stacked/circuit/create_label.rs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk.circuit.builder import FALSE_BIT, Bits, CircuitBuilder
from cuzk.circuit.numbers import pack, reverse_bits_of_bytes
from cuzk.circuit.sha256 import constant_bits_be, sha256

NODE_BITS = 64
HASH_BITS = 256


def label(builder: CircuitBuilder, replica_id: Bits, layer: int, node: Bits, parents: Sequence[Bits]) -> int:
    """The label's variable. `node`: its 64 bits, lowest first; the others: 256 bits, bytes high bit first."""
    head = [constant_bits_be(layer), node[::-1]]
    zeros = np.full(HASH_BITS - sum(map(len, head)), FALSE_BIT)
    digest = sha256(builder, np.concatenate([replica_id, *head, zeros, *parents]))
    return pack(builder, reverse_bits_of_bytes(digest))
