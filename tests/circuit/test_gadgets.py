"""Gadgets by themselves: upstream's counts, digests made from the rules of upstream's gadgets, native hashes.

The digests of rows and assignments were confirmed by a run of bellperson 0.27.0 and neptune 11.0.0.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from cuzk.circuit.builder import FALSE_BIT, TRUE_BIT, Circuit, CircuitBuilder
from cuzk.circuit.digest import aux_digest, r1cs_digest
from cuzk.circuit.empty_sector_update import digest_index_template, high_part_template, updates_hash
from cuzk.circuit.insertion import insert, insertion_template, select
from cuzk.circuit.merkle_path import Hash, merkle_path, sha256_node
from cuzk.circuit.numbers import (
    add,
    free_bits,
    free_numbers,
    inputize,
    multiply,
    pack,
    pack_into_input,
    reverse_bits_of_bytes,
    to_bits,
    unpack,
)
from cuzk.circuit.poseidon import poseidon, poseidon_template
from cuzk.circuit.r1cs import SIDES, Template
from cuzk.circuit.rows import evaluate_rows, evaluate_side, unsatisfied_row
from cuzk.circuit.sha256 import compress, constant_bits_be, sha256
from cuzk.circuit.witness import Assignment
from cuzk.kernels.circuit.sha256 import INITIAL_STATE
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import hash_textbook
from tests.circuit.plain import DEVICE, ints, solve, variables

EDGES = [0, 1, 2, FR.p - 1, FR.p - 2, (1 << 254) - 1, (1 << 254), 1 << 64]
INITIAL_BITS = np.concatenate([constant_bits_be(word) for word in INITIAL_STATE])


def rows_digest(circuit: Circuit) -> str:
    return r1cs_digest(circuit, strands=1)


def assert_satisfied(circuit: Circuit, assignment: Assignment) -> None:
    a, b = evaluate_rows(DEVICE, circuit, assignment)
    assert unsatisfied_row(DEVICE, circuit, a, b, evaluate_side(DEVICE, circuit, assignment, 2)) is None


def message_bits(data: bytes) -> list[int]:
    return [byte >> i & 1 for byte in data for i in range(7, -1, -1)]


POSEIDON_DIGESTS = {
    2: (
        "71fa790fd33fd267e3002e8fed28d8f9b1e6aefe0b4994a2e46cab8c809197ca",
        "5107fb34e61daee6d0049b109bc3640ec3aa0cf192f2e6127d6589b2069c759a",
    ),
    8: (
        "abf8140effeb85d15db49791e6e124ea381c0ae803ba12916e698c3e346f7101",
        "a660a51813e62326d54a30b3f52c7b31daede00208132dfb9342e76154431546",
    ),
    11: (
        "abfc656ea1ec5d17711882344003308a804aed7034d4c439dfb2c43c12f5fa81",
        "605a50e4f2d7d7a95d452c58344f855da08434d191e3a53057db525071979fa5",
    ),
}


@pytest.mark.parametrize("arity", POSEIDON_DIGESTS)
def test_poseidon_has_the_known_rows_and_variables(arity: int) -> None:
    builder = CircuitBuilder("poseidon")
    poseidon(builder, free_numbers(builder, arity))
    circuit, assignment = solve(builder, range(arity))
    assert (rows_digest(circuit), aux_digest(circuit, assignment)) == POSEIDON_DIGESTS[arity]


@pytest.mark.parametrize("arity", [2, 4, 8, 11])
def test_poseidon_agrees_with_the_textbook_at_edges(arity: int) -> None:
    preimages = [[0] * arity, [FR.p - 1] * arity, Random(arity).choices(EDGES, k=arity)]
    for preimage in preimages:
        builder = CircuitBuilder("poseidon")
        poseidon(builder, free_numbers(builder, arity))
        circuit, assignment = solve(builder, preimage)
        assert variables(circuit, assignment)[-1] == hash_textbook(preimage)
        assert_satisfied(circuit, assignment)


def test_poseidon_with_another_domain_tag_is_another_hash() -> None:
    """The tag 2^40 of sector updates; digests are upstream's."""
    builder = CircuitBuilder("tagged")
    updates_hash(builder, free_numbers(builder, 2))
    circuit, assignment = solve(builder, [0, 1])
    digest = variables(circuit, assignment)[-1].to_bytes(32, "little")
    assert digest.hex() == "587707bcc44ea7e5c7677339ea0b58e325fea03481c51fad4e92f0e7c4354a31"
    assert (circuit.rows, circuit.num_aux) == (311, 313)
    assert rows_digest(circuit) == "15fd56ce7d9d3d2c8756131b04b1c349d28b3e216508fb8db8317da74c4ef8fb"
    expected = "38f983fc9f25c0fd6105694209ae646fbb7c2296e400b332f594dc2f4c499ea9"
    assert aux_digest(circuit, assignment) == expected


@pytest.mark.parametrize(
    ("arity", "rows", "nonzeros"),
    [
        (2, 311, (2119, 313, 386)),
        (4, 377, (2573, 381, 467)),
        (8, 505, (3598, 513, 624)),
        (11, 598, (4462, 609, 738)),
    ],
)
def test_poseidon_templates_have_upstreams_size(
    arity: int, rows: int, nonzeros: tuple[int, int, int]
) -> None:
    template = poseidon_template(arity)
    assert (template.rows, template.aux, template.nonzeros) == (rows, rows, nonzeros)


def test_sha256_compression_has_the_known_rows_and_variables() -> None:
    builder = CircuitBuilder("compression")
    compress(builder, free_bits(builder, 512), INITIAL_BITS)
    circuit, assignment = solve(builder, bits=message_bits(bytes(range(64))))
    assert (circuit.rows, circuit.num_aux) == (26352, 26326)
    assert rows_digest(circuit) == "420fad809340a0c306e289fb89139f8616018629698528291850a28aed991795"
    expected = "39cb2549a93ed59eba85bc8bf88e6eed258a27ef7f4a66684494b58021d0c5fd"
    assert aux_digest(circuit, assignment) == expected


def test_sha256_of_64_bytes_has_the_known_rows_and_variables() -> None:
    builder = CircuitBuilder("sha256")
    sha256(builder, free_bits(builder, 512))
    circuit, assignment = solve(builder, bits=message_bits(bytes(range(64))))
    assert (circuit.rows, circuit.num_aux) == (45386, 45340)
    assert rows_digest(circuit) == "f5b5706d8fa6fb52f0a955d46584996bfd764719311ea41c50859b3bdc74cfc5"
    expected = "5f8faf8cf1f63c8aab502d54611e9c4db3db1b0251d2d9e8ecb721cc811517ee"
    assert aux_digest(circuit, assignment) == expected


@pytest.mark.parametrize(
    ("length", "constant_bytes"), [(1, 0), (55, 0), (56, 0), (64, 7), (119, 63), (128, 33)]
)
def test_sha256_agrees_with_hashlib(length: int, constant_bytes: int) -> None:
    """Lengths around the padding's limits; part of the message as constants, which fold."""
    data = Random(length).randbytes(length)
    builder = CircuitBuilder("sha256")
    fixed = np.where(np.array(message_bits(data[:constant_bytes]), dtype=bool), TRUE_BIT, FALSE_BIT)
    digest = sha256(builder, np.concatenate([fixed, free_bits(builder, 8 * (length - constant_bytes))]))
    circuit, assignment = solve(builder, bits=message_bits(data[constant_bytes:]))
    assert assignment.bits[digest].tolist() == message_bits(hashlib.sha256(data).digest())
    assert_satisfied(circuit, assignment)


FIELD = np.array([TRUE_BIT + 100] * 248 + [FALSE_BIT] + [TRUE_BIT + 100] * 7)  # any variable but bit 248
PADDING_OF_64_BYTES = np.concatenate([[TRUE_BIT], np.full(501, FALSE_BIT), [TRUE_BIT], np.full(9, FALSE_BIT)])


def block(message: np.ndarray, state: np.ndarray | None) -> Template:
    """The template of a block whose bits are constants where they are constants here."""
    builder = CircuitBuilder("block")
    variables_ = free_bits(builder, 768)
    bits = np.concatenate([message, variables_[512:] if state is None else state])
    bits = np.where(bits < 0, bits, variables_)
    compress(builder, bits[:512], bits[512:])
    return builder.circuit().templates[-1]


def label_blocks() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    node = np.full(64, 1)
    length = constant_bits_be(9984, 64)
    first = np.concatenate([FIELD, constant_bits_be(1), node, np.full(160, FALSE_BIT)])
    last = np.concatenate([FIELD, [TRUE_BIT], np.full(191, FALSE_BIT), length])
    return {
        "all variable": (np.full(512, 1), None),
        "initial state": (np.full(512, 1), INITIAL_BITS),
        "tree D block 0": (np.concatenate([FIELD, FIELD]), INITIAL_BITS),
        "tree D block 1": (PADDING_OF_64_BYTES, None),
        "label block 0": (first, INITIAL_BITS),
        "label block 1": (np.concatenate([FIELD, FIELD]), None),
        "label block 19": (last, None),
    }


BLOCK_SIZES = {
    "all variable": (26192, 26166, (60848, 26192, 57686), 6310),
    "initial state": (25840, 25814, (59456, 25872, 56886), 6310),
    "tree D block 0": (25832, 25806, (59441, 25864, 56862), 6310),
    "tree D block 1": (19034, 19014, (43455, 19034, 39494), 4678),
    "label block 0": (25363, 25337, (58145, 25395, 55455), 6310),
    "label block 1": (26184, 26158, (60833, 26184, 57662), 6310),
    "label block 19": (25593, 25567, (59161, 25593, 55889), 6310),
}


@pytest.mark.parametrize("name", BLOCK_SIZES)
def test_sha256_blocks_have_the_known_sizes(name: str) -> None:
    template = block(*label_blocks()[name])
    assert template.aux_is_bit.all()
    in_a, in_b = (template.occurs(side)[template.first_own_slot :] for side in (0, 1))
    sizes = (template.rows, template.aux, template.nonzeros, int(in_b.sum()))
    assert sizes == BLOCK_SIZES[name]
    assert in_a.all()


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("all variable", [238] * 6 + [239] + [245] * 18 + [233]),
        ("tree D block 1", [245] * 18 + [235, 33]),
    ],
)
def test_sums_share_rows_as_upstream_packs_them(name: str, widths: list[int]) -> None:
    template = block(*label_blocks()[name])
    sizes = [int(end) - int(begin) for begin, end in pairwise([0, *template.ends.tolist()])]
    packed = [first for first, label in template.labels if label == "packed sums"]
    assert [sizes[SIDES * row + 2] for row in packed] == widths


def test_insertion_among_8_has_the_known_rows_and_variables() -> None:
    builder = CircuitBuilder("insertion")
    node, *siblings = free_numbers(builder, 8)
    insert(builder, node, siblings, free_bits(builder, 3))
    circuit, assignment = solve(builder, range(100, 108), [1, 0, 1])
    assert (circuit.rows, circuit.num_aux) == (25, 33)
    assert rows_digest(circuit) == "00325a605a79aa64109b4c9f34262a97366929cd11fbd35a1c5008d2aa4c79d8"
    expected = "5b8158f0e8c2e73062dc1295ce96cc8b56029d4f2fd15ed2d6e851d4df2f4d5c"
    assert aux_digest(circuit, assignment) == expected


@pytest.mark.parametrize(("arity", "rows"), [(2, 2), (4, 8), (8, 22)])
def test_insertion_puts_the_node_at_every_position(arity: int, rows: int) -> None:
    assert insertion_template(arity).rows == rows
    node, *siblings = range(100, 100 + arity)
    for position in range(arity):
        builder = CircuitBuilder("insertion")
        variables_ = free_numbers(builder, arity)
        bits = free_bits(builder, arity.bit_length() - 1)
        children = insert(builder, variables_[0], variables_[1:], bits)
        circuit, assignment = solve(
            builder, [node, *siblings], [position >> i & 1 for i in range(arity.bit_length() - 1)]
        )
        values = variables(circuit, assignment)[circuit.num_inputs :]
        expected = [*siblings[:position], node, *siblings[position:]]
        assert [values[child] for child in children] == expected
        assert_satisfied(circuit, assignment)


def test_selection_among_8_has_the_known_rows_and_variables() -> None:
    builder = CircuitBuilder("selection")
    candidates = free_numbers(builder, 8)
    chosen = select(builder, candidates, free_bits(builder, 3))
    circuit, assignment = solve(builder, range(100, 108), [1, 0, 1])
    assert variables(circuit, assignment)[circuit.num_inputs + chosen] == 105
    assert (circuit.rows, circuit.num_aux) == (10, 18)
    assert rows_digest(circuit) == "b8d4146e3e701b709212abffe60dbcb4559e1acc5bf232e868ce1acb9399bc6a"
    expected = "c640fcb0f4a8a7bb3b4f2423ce7f7c6792ed3c5e20a7fa9e0a024ed007052392"
    assert aux_digest(circuit, assignment) == expected


@pytest.mark.parametrize("bits", [1, 3, 7])
def test_selection_gives_the_candidate_at_every_position(bits: int) -> None:
    candidates = [*EDGES, *range(200, 200 + (1 << bits))][-(1 << bits) :]
    for position in range(1 << bits):
        builder = CircuitBuilder("selection")
        chosen = select(builder, free_numbers(builder, 1 << bits), free_bits(builder, bits))
        circuit, assignment = solve(builder, candidates, [position >> i & 1 for i in range(bits)])
        assert variables(circuit, assignment)[circuit.num_inputs + chosen] == candidates[position]
        assert_satisfied(circuit, assignment)


@pytest.mark.parametrize("index", [0, 0xFFF, 0b100000000000, 0b011010111001])
def test_the_high_part_is_as_wide_as_the_selected_choice(index: int) -> None:
    choices = (7, 8, 9, 10, 11, 12)
    for number, width in enumerate(choices):
        builder = CircuitBuilder("high part")
        index_bits, chosen = free_bits(builder, 12), free_bits(builder, len(choices))
        (high,) = builder.instance(high_part_template(choices), bits=np.concatenate([index_bits, chosen]))
        bits = [index >> i & 1 for i in range(12)] + [int(i == number) for i in range(len(choices))]
        circuit, assignment = solve(builder, bits=bits)
        assert variables(circuit, assignment)[circuit.num_inputs + high] == index >> (12 - width)
        assert_satisfied(circuit, assignment)


@pytest.mark.parametrize("a", EDGES)
def test_products_and_sums_of_numbers_are_those_of_the_field(a: int) -> None:
    for b in EDGES:
        builder = CircuitBuilder("products")
        given = free_numbers(builder, 2)
        made = [multiply(builder, *given), add(builder, *given)]
        (index,) = builder.instance(digest_index_template(10, 9), numbers=given[:1])
        circuit, assignment = solve(builder, [a, b])
        values = variables(circuit, assignment)[circuit.num_inputs :]
        assert [values[number] for number in (*made, index)] == [
            a * b % FR.p,
            (a + b) % FR.p,
            (10 * a + 9) % FR.p,
        ]
        assert_satisfied(circuit, assignment)


def test_a_number_is_unpacked_into_the_bits_that_pack_to_it() -> None:
    builder = CircuitBuilder("unpack")
    (number,) = free_numbers(builder, 1)
    bits = unpack(builder, number, 9)
    packed, nothing = pack(builder, bits), pack(builder, bits[:0])
    circuit, assignment = solve(builder, [0b101100101])
    values = variables(circuit, assignment)[circuit.num_inputs :]
    assert assignment.bits[bits].tolist() == [1, 0, 1, 0, 0, 1, 1, 0, 1]
    assert (values[packed], values[nothing]) == (0b101100101, 0)
    assert_satisfied(circuit, assignment)


@pytest.mark.parametrize("value", EDGES)
def test_bits_of_a_number_pack_into_it_again(value: int) -> None:
    builder = CircuitBuilder("bits")
    (number,) = free_numbers(builder, 1)
    bits = to_bits(builder, number)
    packed = pack(builder, bits)
    inputize(builder, number)
    pack_into_input(builder, bits[:30])
    total = add(builder, number, packed)
    circuit, assignment = solve(builder, [value])
    low = value % (1 << 254)
    values = variables(circuit, assignment)[circuit.num_inputs :]
    assert assignment.bits[bits].tolist() == [value >> i & 1 for i in range(255)]
    assert (values[packed], values[total]) == (low, (value + low) % FR.p)
    assert ints(assignment.inputs) == [1, value, value % (1 << 30)]
    assert_satisfied(circuit, assignment)


def test_bits_of_bytes_are_reversed_and_reversed_back() -> None:
    bits = np.arange(256)
    assert reverse_bits_of_bytes(bits)[:9].tolist() == [7, 6, 5, 4, 3, 2, 1, 0, 15]
    assert (reverse_bits_of_bytes(reverse_bits_of_bytes(bits)) == bits).all()
    assert reverse_bits_of_bytes(bits[:255])[248] == FALSE_BIT


@pytest.mark.parametrize(
    ("arities", "hash_", "rows"),
    [
        ([2] * 6, sha256_node, 272295),
        ([2] * 6, poseidon, 1887),
        ([4] * 3, poseidon, 1164),
        ([8] * 2, poseidon, 1063),
        ([8, 8, 2], poseidon, 1377),
        ([8, 8, 8], poseidon, 1593),
        ([8, 8, 4, 2], poseidon, 1764),
        ([8, 8, 8, 2], poseidon, 1907),
    ],
)
def test_paths_have_the_number_of_rows_that_upstream_asserts(
    arities: list[int], hash_: Hash, rows: int
) -> None:
    """storage-proofs-core, por_circuit.rs: leaf and root allocated, the root an input."""
    builder = CircuitBuilder("path")
    leaf, root = free_numbers(builder, 2)
    inputize(builder, root)
    merkle_path(builder, leaf, root, arities, hash_)
    circuit = builder.circuit()
    assert (circuit.rows, circuit.num_inputs) == (rows, 3)
