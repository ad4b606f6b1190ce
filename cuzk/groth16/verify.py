"""Checking proofs by pairings, in one equation for any number of partitions.

One proof (A, B, C) with public inputs x_1 ... x_n, X = ic_0 + sum_i x_i ic_i, holds when

    e(A, B) = e(alpha, beta) e(X, gamma) e(C, delta)

K of them hold together, but for a chance of 2^-128, when for random 128-bit z_1 ... z_K

    prod_k e(z_k A_k, B_k) = e(sum_k z_k alpha, beta) e(sum_k z_k X_k, gamma) e(sum_k z_k C_k, delta)

which takes K + 3 Miller loops, one final exponentiation and one sum over ic. A single proof is K = 1 with z =
1. (Keeping e(alpha, beta) would save 0.3 ms of a check.) All points have been read strictly, subgroup
included. Source: bellperson, groth16/verifier.rs.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from py_arkworks_bls12381 import GT, G1Point, Scalar

from cuzk.errors import ParameterError
from cuzk.groth16.proof import Proof
from cuzk.groth16.verifying_key import NEXT, VerifyingKey
from cuzk.kernels.modulus import FR

_WEIGHT_BITS = 128


class Verifier:
    """Checks any number of proofs under one verifying key, from any thread."""

    def __init__(self, key: VerifyingKey) -> None:
        self._key = key.points

    def verify_partition(self, public_inputs: npt.NDArray[np.uint64], proof: Proof) -> bool:
        """Whether `proof` holds for `public_inputs`: (n, 4) uint64, canonical, without ONE.

        Raises InputError when a point of the proof is unreadable, ParameterError when the key is of a circuit
        with another number of public inputs.
        """
        return self._holds([public_inputs], [proof], weights=[1])

    def verify_partitions(
        self, public_inputs: Sequence[npt.NDArray[np.uint64]], proofs: Sequence[Proof]
    ) -> bool:
        """Whether all proofs hold, each for the public inputs at its index; at least one. Raises as above.

        Which of them fails, if one does, `verify_partition` tells.
        """
        if len(proofs) == 1:
            return self.verify_partition(public_inputs[0], proofs[0])
        return self._holds(public_inputs, proofs, [secrets.randbits(_WEIGHT_BITS) for _ in proofs])

    def _holds(
        self,
        public_inputs: Sequence[npt.NDArray[np.uint64]],
        proofs: Sequence[Proof],
        weights: Sequence[int],
    ) -> bool:
        assert len(public_inputs) == len(proofs) >= 1, (len(public_inputs), len(proofs))
        key = self._key
        points = [proof.points(where=f"partition {k}") for k, proof in enumerate(proofs)]
        scalars = [Scalar(weight) for weight in weights]
        total = Scalar(sum(weights) % FR.p)
        weighted_x = G1Point.multiexp_unchecked(list(key.ic), self._ic_scalars(public_inputs, weights))
        weighted_c = G1Point.multiexp_unchecked([c for _, _, c in points], scalars)
        product = GT.multi_pairing(
            [a * z for (a, _, _), z in zip(points, scalars, strict=True)]
            + [-(key.alpha_g1 * total), -weighted_x, -weighted_c],
            [b for _, b, _ in points] + [key.beta_g2, key.gamma_g2, key.delta_g2],
        )
        return bool(product == GT.one())

    def _ic_scalars(
        self, public_inputs: Sequence[npt.NDArray[np.uint64]], weights: Sequence[int]
    ) -> list[Scalar]:
        """sum_k z_k for ic_0, sum_k z_k x_{k,i} for ic_i."""
        sums = [sum(weights)] + [0] * (len(self._key.ic) - 1)
        for weight, inputs in zip(weights, public_inputs, strict=True):
            if len(inputs) + 1 != len(self._key.ic):
                raise ParameterError(
                    "the verifying key belongs to another circuit: "
                    f"it takes {len(self._key.ic) - 1} public inputs, not {len(inputs)}",
                    next=NEXT,
                )
            for index, value in enumerate(_integers(inputs), start=1):
                sums[index] += weight * value
        return [Scalar(value % FR.p) for value in sums]


def _integers(values: npt.NDArray[np.uint64]) -> list[int]:
    """(n, 4) uint64 little-endian limbs as n integers, which are below r."""
    assert values.dtype == np.uint64 and values.shape[1:] == (4,), (values.dtype, values.shape)
    integers = [int.from_bytes(row.tobytes(), "little") for row in values]
    assert all(value < FR.p for value in integers), "public inputs are not canonical"
    return integers
