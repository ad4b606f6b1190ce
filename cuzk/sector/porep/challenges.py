"""Which nodes a sector's proofs must open: C challenges in each partition, drawn from the statement.

Interactive proofs hash the seed; non-interactive ones comm_r; synthetic ones choose with the seed among 2^18
candidates drawn from comm_r. Only the candidates that are chosen are computed here.
Source: storage-proofs-porep, stacked/vanilla/challenges.rs.
"""

from __future__ import annotations

from hashlib import blake2b, sha256

from cuzk.sector.porep.chacha import BLOCK_BYTES, chacha_block
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
        return [
            synthetic_candidate(chosen, statement.replica_id, statement.comm_r, shape.nodes)
            for chosen in synthetic_choices(numbers, statement.replica_id, statement.seed, candidates)
        ]
    prefix = statement.replica_id + statement.seed
    if feature is Feature.NON_INTERACTIVE:
        prefix = _NON_INTERACTIVE_TAG + statement.replica_id + statement.comm_r
    return [_node(sha256(prefix + j.to_bytes(4, "little")).digest(), shape.nodes) for j in numbers]


def synthetic_candidate(index: int, replica_id: bytes, comm_r: bytes, nodes: int) -> int:
    """Candidate `index` of a sector: 32 bytes of keystream as a node."""
    key = blake2b(replica_id + comm_r, key=_GENERATION_TAG, digest_size=32).digest()
    return _node(_keystream(key, 32 * index, 32), nodes)


def synthetic_choices(numbers: range, replica_id: bytes, seed: bytes, candidates: int) -> list[int]:
    """Which candidates the challenges of these numbers, counted through all partitions, are."""
    key = blake2b(replica_id + seed, key=_SELECTION_TAG, digest_size=32).digest()
    return [int.from_bytes(_keystream(key, 4 * q, 4), "little") % candidates for q in numbers]


def _node(digest: bytes, nodes: int) -> int:
    """Node 0 is never challenged: it has no parents."""
    return int.from_bytes(digest, "little") % (nodes - 1) + 1


def _keystream(key: bytes, offset: int, size: int) -> bytes:
    """`size` bytes at `offset` of the ChaCha20 keystream, within one block."""
    counter, within = divmod(offset, BLOCK_BYTES)
    block = chacha_block(key, counter.to_bytes(4, "little") + _SYNTHETIC_NONCE, rounds=20)
    return block[within : within + size]
