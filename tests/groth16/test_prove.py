"""Proofs of the toy circuit against upstream's bytes; what must never come out: one that does not hold."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import evaluate_rows
from cuzk.circuit.witness import Assignment, assign
from cuzk.errors import ProofError
from cuzk.events import Event, ignore
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.groth16.parameters.verifying_key import read_verifying_key
from cuzk.groth16.proof import Proof
from cuzk.groth16.prove import Randomizers
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FR
from cuzk.kernels.ntt import quotient
from tests.circuit.plain import row_values, variables
from tests.groth16.proving import proven
from tests.toy_circuit import TOY_PUBLIC_INPUT, toy_values

#: Upstream's figures for the numbers 1 and 2 (bellperson 0.26, neptune).
H_SHA256 = "b0fd41c62f8a2450ce3d6cab0cae5ca52d5a279c28a3f97692420b16876c1d72"
PROOF_R13_S17 = (
    "964edad13637ea916c5141a8aa471732d915a88743ab111bdb4b420d22559d225eb0c9507ee1e14f6e83176417c50707"
    "80885dbe1e98fe2923edb8e35c1e42acea0b9ec78303b154d2ac410d386b52d2601b5d06757e636b1a0d0bef9e15ba51"
    "07530bfb712b5f894802373b9488caae58cf8424ba72519f835d635b5771418263ed6ed12396c19a48805ff97c4e89ab"
    "847fc7a13e9d9b323ad1d2f4ea0da0bf7e8b07e4c3a43cf8db3b2b7478965b4e7c4bcf8b3f7a247eddec7fd52ff85120"
)
PUBLIC_INPUTS = from_integers([TOY_PUBLIC_INPUT])
DOMAIN = 512


@pytest.fixture
def assignment(device: CpuDevice, toy: Circuit) -> Assignment:
    return assign(device, toy, toy_values(1, 2))


def prove_toy(
    device: CpuDevice,
    toy: Circuit,
    params: Path,
    assignment: Assignment,
    randomizers: Randomizers,
    public_inputs: np.ndarray = PUBLIC_INPUTS,
    **how: Any,
) -> Proof:
    parameters = open_parameters(params)
    target = CpuTarget(device, parameters)
    target.require_good_points(ignore)
    return proven(target, parameters, toy, assignment, randomizers, public_inputs=public_inputs, **how)


def holds(params: Path, proof: Proof, public_inputs: np.ndarray = PUBLIC_INPUTS) -> bool:
    return Verifier(read_verifying_key(params.with_suffix(".vk"))).verify_partition(public_inputs, proof)


def test_the_quotient_has_upstreams_coefficients(
    device: CpuDevice, toy: Circuit, assignment: Assignment
) -> None:
    a, b = evaluate_rows(device, toy, assignment, out=(aligned_empty(DOMAIN, 4), aligned_empty(DOMAIN, 4)))
    h = quotient(device, a, b)
    assert len(h) == DOMAIN - 1
    assert hashlib.sha256(np.ascontiguousarray(h)).hexdigest() == H_SHA256


def test_the_proof_is_upstreams_to_the_byte(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment
) -> None:
    proof = prove_toy(device, toy, toy_params, assignment, Randomizers(r=13, s=17))
    assert proof.to_bytes().hex() == PROOF_R13_S17


@pytest.mark.parametrize(("r", "s"), [(0, 0), (0, 1), (1, 0), (FR.p - 1, FR.p - 1)])
def test_randomizers_at_the_edges_give_proofs_that_hold(
    r: int, s: int, device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment
) -> None:
    assert holds(toy_params, prove_toy(device, toy, toy_params, assignment, Randomizers(r=r, s=s)))


def test_fresh_randomness_gives_another_proof_each_time_and_all_hold(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment
) -> None:
    proofs = [prove_toy(device, toy, toy_params, assignment, Randomizers.fresh()) for _ in range(4)]
    assert all(holds(toy_params, proof) for proof in proofs)
    for part in ("a", "b", "c"):
        assert len({getattr(proof, part) for proof in proofs}) == 4


def test_random_trapdoors_give_parameters_whose_proofs_hold_under_their_key_only(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment, tmp_path: Path
) -> None:
    params = generate(
        device, toy, Trapdoors.random(), folder=tmp_path, stem="toy", sector_bytes=0, given=False
    )
    proof = prove_toy(device, toy, params, assignment, Randomizers.fresh())
    assert holds(params, proof)
    assert not holds(toy_params, proof)


@settings(max_examples=10)
@given(st.lists(st.integers(0, FR.p - 1) | st.sampled_from([0, 1, FR.p - 1]), min_size=2, max_size=2))
def test_any_preimage_is_proven(
    device: CpuDevice, toy: Circuit, toy_params: Path, preimage: list[int]
) -> None:
    assignment = assign(device, toy, toy_values(*preimage))
    public = assignment.inputs[1:]
    proof = prove_toy(device, toy, toy_params, assignment, Randomizers.fresh(), public)
    assert holds(toy_params, proof, public)
    assert holds(toy_params, proof) == (to_integers(public) == [TOY_PUBLIC_INPUT])


@pytest.fixture(params=[0, 1, 100, 312])
def wrong(request: pytest.FixtureRequest, assignment: Assignment) -> Assignment:
    """With one variable that is another."""
    values = assignment.values.copy()
    values[assignment.num_inputs + request.param, 0] ^= 1
    return replace(assignment, values=values)


def test_a_wrong_witness_gives_an_error_and_no_proof(
    device: CpuDevice, toy: Circuit, toy_params: Path, wrong: Assignment
) -> None:
    with pytest.raises(ProofError) as raised:
        prove_toy(device, toy, toy_params, wrong, Randomizers.fresh(), where="c1.json, partition 3")
    assert raised.value.where == "c1.json, partition 3"
    assert raised.value.next is not None and str(toy_params) in raised.value.next


def test_the_first_row_that_does_not_hold_is_named_when_it_is_asked_for(
    device: CpuDevice, toy: Circuit, toy_params: Path, wrong: Assignment
) -> None:
    a, b, c = (row_values(toy, variables(toy, wrong), side) for side in range(3))
    row = next(k for k in range(len(a)) if a[k] * b[k] % FR.p != c[k])
    events: list[Event] = []
    how = {"check": True, "on_event": events.append, "where": "c1.json, partition 3"}
    with pytest.raises(ProofError, match="a row of the circuit does not hold") as raised:
        prove_toy(device, toy, toy_params, wrong, Randomizers.fresh(), **how)
    assert raised.value.where == f"c1.json, partition 3, row {row}: {toy.name_of_row(row)}"
    assert {event.name for event in events} == {"check of the rows"}, "no sum was made"


def test_rows_that_hold_change_nothing_when_they_are_checked(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment
) -> None:
    proof = prove_toy(device, toy, toy_params, assignment, Randomizers(r=13, s=17), check=True)
    assert proof.to_bytes().hex() == PROOF_R13_S17


def test_a_good_witness_of_another_statement_gives_an_error_and_no_proof(
    device: CpuDevice, toy: Circuit, toy_params: Path
) -> None:
    other = assign(device, toy, toy_values(2, 1))
    with pytest.raises(ProofError, match="does not verify"):
        prove_toy(device, toy, toy_params, other, Randomizers.fresh())


def test_parameters_of_other_trapdoors_in_one_section_give_an_error_and_no_proof(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment, tmp_path: Path
) -> None:
    """Good points, of order r, but not these: nothing but the proof's own check can tell."""
    parameters = open_parameters(toy_params)
    swapped = parameters.h.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    damaged = replace(parameters, h=swapped)
    target = CpuTarget(device, damaged)
    target.require_good_points(ignore)
    with pytest.raises(ProofError):
        proven(target, damaged, toy, assignment, Randomizers.fresh(), public_inputs=PUBLIC_INPUTS)


def test_stages_are_told_in_the_order_of_the_work(
    device: CpuDevice, toy: Circuit, toy_params: Path, assignment: Assignment
) -> None:
    events: list[Event] = []
    prove_toy(device, toy, toy_params, assignment, Randomizers.fresh(), on_event=events.append)
    names = list(dict.fromkeys(event.name for event in events))
    assert names == [
        "rows",
        "transforms",
        "sum h",
        "sum l",
        "sum a",
        "sum b_g1",
        "sum b_g2",
        "finish",
        "verify",
    ]
