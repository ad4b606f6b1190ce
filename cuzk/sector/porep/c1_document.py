"""The JSON documents of a Commit 1 output: their types, and bytes to objects of these types.

The outer file is {"SectorNum": .., "Phase1Out": base64 of the inner document, "SectorSize": ..}; the inner
one is as serde (Rust) or Go write it. Keys come in any order, unknown ones are ignored. Types, ranges and
missing keys are checked here, counts and meaning above. Fields stand in the order of serde, which is the one
that `c1_writer` writes.

A 32 GiB sector has 300,000 hashes of 32 JSON integers each. msgspec decodes and checks them in one pass, four
times as fast as json or orjson, which would leave the checking to do. A decoder keeps Python's lock to its
end, 0.35 s of a whole sector, and threads that drive GPUs need it meanwhile: so partitions are skipped at
first, in 0.12 s, and then decoded one by one.
Sources: filecoin-proofs-api, seal.rs; storage-proofs-core, merkle/proof.rs; storage-proofs-porep,
stacked/vanilla/params.rs.
"""

from __future__ import annotations

import re
from typing import Annotated, NoReturn, TypeVar

import msgspec

from cuzk.errors import InputError
from cuzk.sector.document import unzipped
from cuzk.sector.porep.inputs import RUN_C1_AGAIN
from cuzk.sector.shape import NODE_BYTES

Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]
Hash = Annotated[list[Byte], msgspec.Meta(min_length=NODE_BYTES, max_length=NODE_BYTES)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Wrapper(msgspec.Struct):
    SectorNum: Index | None = None
    Phase1Out: bytes | None = None
    SectorSize: Index | None = None


class Element(msgspec.Struct):
    hashes: list[Hash]
    index: Index


class InclusionPath(msgspec.Struct):
    path: list[Element]


class SingleProof(msgspec.Struct):
    root: Hash
    leaf: Hash
    path: InclusionPath


class SubProof(msgspec.Struct):
    base_proof: InclusionPath
    sub_proof: InclusionPath
    root: Hash
    leaf: Hash


class TopProof(msgspec.Struct):
    base_proof: InclusionPath
    sub_proof: InclusionPath
    top_proof: InclusionPath
    root: Hash
    leaf: Hash


class ProofData(msgspec.Struct, omit_defaults=True):
    Single: SingleProof | None = None
    Sub: SubProof | None = None
    Top: TopProof | None = None


class MerkleProof(msgspec.Struct):
    data: ProofData


class Column(msgspec.Struct):
    index: Index
    rows: list[Hash]
    _h: None = None  # only serde writes it, and asks for it


class ColumnProof(msgspec.Struct):
    column: Column
    inclusion_proof: MerkleProof


class ColumnProofs(msgspec.Struct):
    c_x: ColumnProof
    drg_parents: list[ColumnProof]
    exp_parents: list[ColumnProof]


class Labeling(msgspec.Struct):
    parents: list[Hash]
    layer_index: Index
    node: Index


class VanillaProof(msgspec.Struct):
    comm_d_proofs: MerkleProof
    comm_r_last_proof: MerkleProof
    replica_column_proofs: ColumnProofs
    labeling_proofs: list[Labeling]
    encoding_proof: Labeling


class Inner(msgspec.Struct):
    registered_proof: str
    vanilla_proofs: dict[str, list[msgspec.Raw]]  # of a partition each, see `decode_partition`
    comm_r: Hash
    comm_d: Hash
    replica_id: Hash
    seed: Hash
    ticket: Hash


def fail(what: str, where: str) -> NoReturn:
    """Raise the InputError of a document that is not what C1 writes."""
    raise InputError(what, where=where, next=RUN_C1_AGAIN)


def decode_document(data: bytes, origin: str) -> tuple[Wrapper, Inner]:
    """Wrapper (empty if there is none) and inner document of a file's bytes. Raises InputError."""
    data = unzipped(data, origin)
    wrapper = _decode(data, _WRAPPER, "file", origin)
    inner = data if wrapper.Phase1Out is None else wrapper.Phase1Out
    return wrapper, _decode(inner, _INNER, _IN_WRAPPER, origin)


def decode_partition(proofs: msgspec.Raw, where: str) -> list[VanillaProof]:
    """Those of its challenges. Raises InputError."""
    return _decode(proofs, _PARTITION, _IN_WRAPPER, where)


_Form = TypeVar("_Form")
_WRAPPER, _INNER = msgspec.json.Decoder(Wrapper), msgspec.json.Decoder(Inner)
_PARTITION = msgspec.json.Decoder(list[VanillaProof])
_IN_WRAPPER = "document in Phase1Out"


def _decode(data: bytes | msgspec.Raw, form: msgspec.json.Decoder[_Form], name: str, where: str) -> _Form:
    try:
        return form.decode(data)
    except msgspec.ValidationError as error:
        fail(*_in_words(str(error), where))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fail(f"the {name} is not whole JSON: {error}", where)


def _in_words(message: str, where: str) -> tuple[str, str]:
    """msgspec's message, `.. - at `$[17].comm_d_proofs`` of a partition, as what and where."""
    what, _, place = message.partition(" - at `$")
    found = re.match(r"(?:\[(\d+)\])?(.*)", place.rstrip("`").replace("[...]", ""), re.DOTALL)
    assert found is not None, message  # it matches everything
    challenge, rest = found.groups()
    words = [where, f"challenge {challenge}" if challenge else "", rest.lstrip(".")]
    return what, ", ".join(filter(None, words))
