"""Proofs of spacetime at 2 KiB and their parameters, to the byte of upstream's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cuzk.circuit.builder import Circuit, CircuitBuilder
from cuzk.circuit.fallback_post import build, free_values
from cuzk.events import ignore
from cuzk.groth16.files import file_digest
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.groth16.qap import domain_log2, point_counts
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.sector.post import read_post
from cuzk.sector.post_shape import WINDOW, WINNING, post_shape
from cuzk.sector.shape import GIB, KIB, MIB
from tests.groth16.proving import upstreams_proof
from tests.sector.other_vectors import EXPECT, pieces_of

#: filecoin-proofs 19.1.0 with the trapdoors 2, 3, 5, 7, 11: SHA-256 of .vk and .params, the digest as in the
#: manifest, and points of h, l, a, b, ic.
FILES = {
    WINDOW: (
        "2ebe307e316d50e34a7cdbb044a0f53a35a917e009d510ff19c31c1eb9ca1b10",
        "d54438789ed21b3b3c62811396206b28ab60ad7bb0e8e4f71081538b86ee8f75",
        "73e751276747de691d53e38f4216674c",
        (32767, 22128, 16793, 16029, 23),
    ),
    WINNING: (
        "6a878f7848ac86fc4a91018f59bdd524233835f417ff4dd575b925e7ce6430f1",
        "a92f46366184537322a3a05f74b21a356be2bca33688b2f02859bfdab6ce0910",
        "33532f1a07ddae8edf009a3c42bbd8da",
        (131071, 91674, 69433, 66793, 133),
    ),
}
#: Sizes of .vk and .params.
SIZES = {
    (WINNING, 2 * KIB): (13636, 47299128),
    (WINNING, 8 * MIB): (13636, 113383224),
    (WINNING, 32 * GIB): (13636, 192050232),
    (WINNING, 64 * GIB): (13636, 200014584),
    (WINDOW, 2 * KIB): (3076, 11501496),
    (WINDOW, 8 * MIB): (3076, 30859704),
    (WINDOW, 512 * MIB): (3076, 45257400),
    (WINDOW, 32 * GIB): (2481508, 60780374232),
}
UPSTREAM = [name for name, vector in EXPECT["vectors"].items() if name.startswith("w") and "proof" in vector]


def circuit_of(kind: str, sector_bytes: int = 2 * KIB) -> Circuit:
    builder = CircuitBuilder(kind)
    build(builder, post_shape(kind, sector_bytes))
    return builder.circuit()


@pytest.fixture(scope="module")
def files(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The parameters of both kinds at 2 KiB."""
    folder, device, trapdoors = tmp_path_factory.mktemp("post"), CpuDevice(), Trapdoors.of([2, 3, 5, 7, 11])
    return {
        kind: generate(
            device, circuit_of(kind), trapdoors, folder=folder, stem=kind, sector_bytes=2 * KIB, given=True
        )
        for kind in (WINDOW, WINNING)
    }


@pytest.mark.parametrize("kind", FILES)
def test_the_parameters_are_upstreams_to_the_byte(kind: str, files: dict[str, Path]) -> None:
    vk, params, digest, points = FILES[kind]
    assert hashlib.sha256(files[kind].with_suffix(".vk").read_bytes()).hexdigest() == vk
    assert hashlib.sha256(files[kind].read_bytes()).hexdigest() == params
    assert file_digest(files[kind]) == digest
    counts = open_parameters(files[kind]).counts
    assert (counts.h, counts.l, counts.a, counts.b, counts.ic) == points


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_proof_is_upstreams_to_the_byte(name: str, files: dict[str, Path]) -> None:
    given, device = read_post(pieces_of(name)), CpuDevice()
    given.check_statement()
    given.check_partition(0, device)
    circuit, parameters = circuit_of(given.shape.kind), open_parameters(files[given.shape.kind])
    target = CpuTarget(device, parameters)
    target.require_good_points(ignore)
    proof = upstreams_proof(target, parameters, circuit, free_values(given, 0), given.public_inputs(0))
    assert proof.to_bytes().hex() == EXPECT["vectors"][name]["proof"]["bytes"]


def test_upstream_proved_what_is_compared() -> None:
    assert UPSTREAM == ["winning-2k", "window-2k", "window-2k-v1-p1"]


@pytest.mark.parametrize(
    ("kind", "sector_bytes"),
    [pytest.param(*size, marks=pytest.mark.slow if size == (WINDOW, 32 * GIB) else ()) for size in SIZES],
)
def test_parameters_of_every_size_have_the_size_of_upstreams(kind: str, sector_bytes: int) -> None:
    counts = point_counts(circuit_of(kind, sector_bytes))
    vk, params = SIZES[kind, sector_bytes]
    assert counts.key_bytes == vk
    assert params == vk + 5 * 4 + 96 * (counts.h + counts.l + counts.a + counts.b) + 192 * counts.b


@pytest.mark.parametrize(
    ("kind", "sector_bytes", "log2"),
    [(WINNING, 32 * GIB, 19), (WINNING, 8 * MIB, 18), (WINDOW, 32 * GIB, 27), (WINDOW, 512 * MIB, 17)],
)
def test_the_domain_is_the_least_that_holds_all_rows(kind: str, sector_bytes: int, log2: int) -> None:
    assert domain_log2(circuit_of(kind, sector_bytes)) == log2
