"""Which nodes a sector's proofs must open: C challenges in each partition, drawn from the statement.

Interactive proofs hash the seed; non-interactive ones comm_r; synthetic ones choose with the seed among 2^18
candidates drawn from comm_r. Only the candidates that are chosen are computed here.
Source: storage-proofs-porep, stacked/vanilla/challenges.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha256

from cuzk.sector.porep.chacha import BLOCK_BYTES, chacha_blocks
from cuzk.sector.porep.inputs import Statement
from cuzk.sector.porep.registered_proof import Feature

SYNTHETIC_CANDIDATES = 1 << 18
_SYNTHETIC_NONCE = b"synth-porep\0"
_GENERATION_TAG = b"filecoin.io|PoRep|1|Synthetic|1|Generation"
_SELECTION_TAG = b"filecoin.io|PoRep|1|Synthetic|1|Selection"
_NON_INTERACTIVE_TAG = b"filecoin.io|PoRep|1|NonInteractive|1"


def challenges(statement: Statement, partition: int) -> list[int]:
    """The challenged nodes of one partition, in order, each in 1 .. nodes - 1."""
    shape, feature = statement.registered_proof.shape, statement.registered_proof.feature
    numbers = range(partition * shape.challenges, (partition + 1) * shape.challenges)
    if feature is Feature.SYNTHETIC:
        candidates = min(shape.nodes, SYNTHETIC_CANDIDATES)
        chosen = synthetic_choices(numbers, statement.replica_id, statement.seed, candidates)
        return synthetic_candidates(chosen, statement.replica_id, statement.comm_r, shape.nodes)
    prefix = statement.replica_id + statement.seed
    if feature is Feature.NON_INTERACTIVE:
        prefix = _NON_INTERACTIVE_TAG + statement.replica_id + statement.comm_r
    return [_node(sha256(prefix + j.to_bytes(4, "little")).digest(), shape.nodes) for j in numbers]


def synthetic_candidates(indices: Sequence[int], replica_id: bytes, comm_r: bytes, nodes: int) -> list[int]:
    """The candidates of a sector at these indices: 32 bytes of keystream each as a node."""
    key = blake2b(replica_id + comm_r, key=_GENERATION_TAG, digest_size=32).digest()
    return [_node(drawn, nodes) for drawn in _keystream(key, indices, 32)]


def synthetic_choices(numbers: Sequence[int], replica_id: bytes, seed: bytes, candidates: int) -> list[int]:
    """Which candidates the challenges of these numbers, counted through all partitions, are."""
    key = blake2b(replica_id + seed, key=_SELECTION_TAG, digest_size=32).digest()
    return [int.from_bytes(drawn, "little") % candidates for drawn in _keystream(key, numbers, 4)]


def _node(digest: bytes, nodes: int) -> int:
    """Node 0 is never challenged: it has no parents."""
    return int.from_bytes(digest, "little") % (nodes - 1) + 1


def _keystream(key: bytes, places: Sequence[int], size: int) -> list[bytes]:
    """At each of the places its `size` bytes, a divisor of 64, of the ChaCha20 keystream."""
    in_block = BLOCK_BYTES // size
    given = [key + (place // in_block).to_bytes(4, "little") + _SYNTHETIC_NONCE for place in places]
    starts = [place % in_block * size for place in places]
    blocks = chacha_blocks(given, rounds=20)
    return [block[start : start + size] for block, start in zip(blocks, starts, strict=True)]
