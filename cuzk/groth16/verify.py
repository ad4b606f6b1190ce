"""Checking proofs by pairings, in one equation for any number of partitions.

One proof (A, B, C) with public inputs x_1 ... x_n, X = ic_0 + sum_i x_i ic_i, holds when

    e(A, B) = e(alpha, beta) e(X, gamma) e(C, delta)

K of them hold together, but for a chance of 2^-128, when for random 128-bit z_1 ... z_K

    prod_k e(z_k A_k, B_k) = e(sum_k z_k alpha, beta) e(sum_k z_k X_k, gamma) e(sum_k z_k C_k, delta)

which takes K + 3 Miller loops, one final exponentiation and one sum over ic. A single proof is K = 1 with z =
1 and takes 3 loops: e(alpha, beta) is kept with the key. All points have been read strictly, subgroup
included. Source: bellperson, groth16/verifier.rs.

The sum over ic takes 3.3 ms of the 328 points of a sector's partition and 0.13 s of the 25,840 of a window,
the rest of a check 2 ms. A long one is taken by several threads, a slice each, which costs half as much again
in all.
"""

from __future__ import annotations

import operator
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import numpy as np
import numpy.typing as npt
from py_arkworks_bls12381 import GT, G1Point, Scalar

from cuzk.errors import ParameterError
from cuzk.groth16.parameters.verifying_key import NEXT, VerifyingKey
from cuzk.groth16.proof import Proof

_ONE = Scalar(1)
_WEIGHT_BITS = 128
_SLICE = 2048
"""Points of ic that a thread sums at a time, 15 ms: the library's sum has no threads and holds no lock."""


class Verifier:
    """Checks any number of proofs under one verifying key, from any thread."""

    def __init__(self, key: VerifyingKey) -> None:
        self._key, self._points = key, key.points

    def verify_partition(self, public_inputs: npt.NDArray[np.uint64], proof: Proof) -> bool:
        """Whether `proof` holds for `public_inputs`: (n, 4) uint64, canonical, without ONE.

        Raises ProofError when a point of the proof is unreadable, ParameterError when the key is of a circuit
        with another number of public inputs.
        """
        key, (a, b, c) = self._points, proof.points(where="partition 0")
        x = _sum_of_products(key.ic, [_ONE, *self._scalars(public_inputs)])
        product = GT.multi_pairing([a, -x, -c], [b, key.gamma_g2, key.delta_g2])
        return bool(product == self._key.alpha_beta)

    def verify_partitions(
        self, public_inputs: Sequence[npt.NDArray[np.uint64]], proofs: Sequence[Proof]
    ) -> bool:
        """Whether all proofs hold, each for the public inputs at its index; at least one. Raises as above.

        Which of them fails, if one does, `verify_partition` tells.
        """
        if len(proofs) == 1:
            return self.verify_partition(public_inputs[0], proofs[0])
        assert len(public_inputs) == len(proofs) >= 1, (len(public_inputs), len(proofs))
        points = [proof.points(where=f"partition {k}") for k, proof in enumerate(proofs)]
        weights = [Scalar(secrets.randbits(_WEIGHT_BITS)) for _ in proofs]
        key, total = self._points, reduce(operator.add, weights)
        weighted_x = _sum_of_products(key.ic, self._ic_scalars(public_inputs, weights))
        weighted_c = G1Point.multiexp_unchecked([c for _, _, c in points], weights)
        product = GT.multi_pairing(
            [a * z for (a, _, _), z in zip(points, weights, strict=True)]
            + [-(key.alpha_g1 * total), -weighted_x, -weighted_c],
            [b for _, b, _ in points] + [key.beta_g2, key.gamma_g2, key.delta_g2],
        )
        return bool(product == GT.one())

    def _ic_scalars(
        self, public_inputs: Sequence[npt.NDArray[np.uint64]], weights: Sequence[Scalar]
    ) -> list[Scalar]:
        """sum_k z_k for ic_0, sum_k z_k x_{k,i} for ic_i."""
        weighted = [
            [weight, *(weight * value for value in self._scalars(inputs))]
            for weight, inputs in zip(weights, public_inputs, strict=True)
        ]
        return [reduce(operator.add, of_point) for of_point in zip(*weighted, strict=True)]

    def _scalars(self, inputs: npt.NDArray[np.uint64]) -> list[Scalar]:
        """Of one partition. Raises ParameterError unless there are as many as the key takes."""
        if len(inputs) + 1 != len(self._points.ic):
            raise ParameterError(
                "the verifying key belongs to another circuit: "
                f"it takes {len(self._points.ic) - 1} public inputs, not {len(inputs)}",
                next=NEXT,
            )
        return _scalars(inputs)


def _scalars(values: npt.NDArray[np.uint64]) -> list[Scalar]:
    """(n, 4) uint64, little-endian limbs of numbers below r. Raises ValueError for one that is not."""
    assert values.dtype == np.uint64 and values.shape[1:] == (4,), (values.dtype, values.shape)
    return [Scalar.from_le_bytes(row) for row in values.view("V32").ravel().tolist()]


def _sum_of_products(points: Sequence[G1Point], scalars: Sequence[Scalar]) -> G1Point:
    """Of as many points as scalars, at least one."""
    slices = [slice(start, start + _SLICE) for start in range(0, len(scalars), _SLICE)]

    def sum_of(part: slice) -> G1Point:
        return G1Point.multiexp_unchecked(list(points[part]), list(scalars[part]))

    if len(slices) == 1:
        return sum_of(slices[0])
    with ThreadPoolExecutor(min(len(slices), len(os.sched_getaffinity(0)))) as threads:
        return reduce(operator.add, threads.map(sum_of, slices))
