"""Requests spoilt in every way that a random generator thinks of, from good ones: protobuf, JSON, pieces.

A mutation gets the generator and a good request, and gives the bytes of a ProveRequest. The same generator
gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from cuzk.server import proving_pb2 as pb
from tests.server.requests import pieces_request, porep_request

Mutation = Callable[[Random, pb.SubmitProofRequest], bytes]

_EDGES = (0, 1, 2, 3, 31, 32, 33, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63)
_WORDS = (*_EDGES, 2**64 - 1)
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    255,
    256,
    2**64,
    10**400,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "StackedDrg2KiBV1",
    "StackedDrg32GiBV1_1",
    "\ud800",
    "0" * 1000,
    [],
    [[]],
    {},
    {"": None},
    [0] * 31,
    [0] * 32,
    [255] * 32,
    [0] * 33,
)


def good_requests() -> list[pb.SubmitProofRequest]:
    """One of each kind, of the smallest sector."""
    return [porep_request(), *map(pieces_request, ("snap-2k", "window-2k", "window-2k-v1-p1", "winning-2k"))]


def mutant(random: Random, good: list[pb.SubmitProofRequest]) -> bytes:
    """One of the requests, spoilt."""
    submit = random.choice(good)
    payload = _porep if submit.vanilla_proof else _pieces
    mutate = random.choice((_wire, _fields, payload, payload, payload))
    return mutate(random, submit)


def _prove(submit: pb.SubmitProofRequest) -> bytes:
    return bytes(pb.ProveRequest(submit=submit).SerializeToString())


def _wire(random: Random, submit: pb.SubmitProofRequest) -> bytes:
    """The message itself: most often its first bytes, where fields begin."""
    return spoilt(random, _prove(submit), most=random.choice((64, 1 << 20)))


def _fields(random: Random, submit: pb.SubmitProofRequest) -> bytes:
    """Some fields get other values, or those of another request."""
    changed = pb.SubmitProofRequest()
    changed.CopyFrom(submit)
    for field in random.sample(list(changed.DESCRIPTOR.fields), random.randint(1, 3)):
        if random.random() < 0.3:
            changed.ClearField(field.name)
        elif field.name == "vanilla_proofs":
            pieces = list(changed.vanilla_proofs)
            pieces += random.choices([*pieces, submit.vanilla_proof, b""], k=random.randint(0, 3))
            random.shuffle(pieces)
            del changed.vanilla_proofs[:]
            changed.vanilla_proofs.extend(pieces[: random.randint(0, len(pieces))])
        elif field.name == "request_id":
            changed.request_id = random.choice(("", "\0", "a" * 10_000, "../../x", "line\nline", "\u202e"))
        elif field.type == field.TYPE_BYTES:
            setattr(changed, field.name, spoilt(random, getattr(changed, field.name) or bytes(32)))
        else:
            bits = 32 if field.type == field.TYPE_UINT32 else 31 if field.type == field.TYPE_ENUM else 64
            setattr(changed, field.name, random.choice(_WORDS) % (1 << bits))
    return _prove(changed)


def _porep(random: Random, submit: pb.SubmitProofRequest) -> bytes:
    """The Commit 1 output: its wrapper, its text, or the document inside."""
    wrapper = json.loads(submit.vanilla_proof)
    how = random.random()
    if how < 0.1:
        data = spoilt(random, submit.vanilla_proof)
    elif how < 0.2:
        _change(random, wrapper)
        data = json.dumps(wrapper).encode("utf-8", "surrogatepass")
    else:
        text = base64.b64decode(wrapper["Phase1Out"])
        if how < 0.5:
            text = spoilt(random, text)
        else:
            document = json.loads(text)
            for _ in range(random.choice((1, 1, 1, 4))):
                _change(random, document)
            text = json.dumps(document).encode()
        wrapper["Phase1Out"] = base64.b64encode(text).decode()
        data = json.dumps(wrapper).encode()
    changed = pb.SubmitProofRequest()
    changed.CopyFrom(submit)
    changed.vanilla_proof = data
    return _prove(changed)


def _change(random: Random, document: Any) -> None:
    """One place of a document, at any depth, gets another value, none, or two.

    What is put in is a copy: a list that stood in two places could come to hold itself.
    """
    place = document
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = random.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or random.random() < 0.1:
            break
        place = inner
    how = random.random()
    if how < 0.2:
        del place[key]
    elif how < 0.3:
        place[key] = [inner, deepcopy(inner)]
    elif how < 0.5 and isinstance(inner, int):
        place[key] = inner ^ 1 << random.randrange(8)
    elif how < 0.6 and isinstance(place, list):
        place.insert(key, deepcopy(random.choice(place)))
    elif how < 0.65 and isinstance(place, dict):
        place[f"{key}2"] = place.pop(key)
    else:
        place[key] = deepcopy(random.choice(_ODD))


def _pieces(random: Random, submit: pb.SubmitProofRequest) -> bytes:
    """A piece's bytes: counts and tags stand at its first ones, and between."""
    changed = pb.SubmitProofRequest()
    changed.CopyFrom(submit)
    k = random.randrange(len(changed.vanilla_proofs))
    piece = changed.vanilla_proofs[k]
    changed.vanilla_proofs[k] = spoilt(random, piece, most=random.choice((128, 1 << 20)))
    return _prove(changed)


def spoilt(random: Random, data: bytes, *, most: int = 1 << 20) -> bytes:
    """Bytes with one to four accidents, all within the first `most`."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(min(len(out), most) or 1)
        until = at + random.choice((1, 2, 8, 32, 1000))
        how = random.randrange(7)
        if how == 0 and out:
            out[at % len(out)] ^= 1 << random.randrange(8)
        elif how == 1:
            out[at:until] = random.randbytes(until - at)
        elif how == 2:
            out[at : at + 8] = random.choice(_WORDS).to_bytes(8, "little")
        elif how == 3:
            del out[at:until]
        elif how == 4:
            out[at:at] = out[at:until]
        elif how == 5:
            del out[at:]
        else:
            out[at:until] = bytes([random.choice((0, 255, 34, 91, 123, 125))]) * (until - at)
    return bytes(out)
