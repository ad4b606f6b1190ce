"""Instances in waves: all that a wave reads, earlier waves have filled. For machines with many threads.

The D path of a challenge is the longest chain, five instances a level: 150 waves at 32 GiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.r1cs import Template
from cuzk.kernels.circuit.instances import Instances
from cuzk.kernels.circuit.witness import FREE, NOTHING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waves:
    """The instances that have variables to compute.

    order   (n,) uint32 instances, wave by wave
    starts  where waves begin in `order`, and their end
    """

    order: NDArray[np.uint32]
    starts: tuple[int, ...]


def waves_of(templates: Sequence[Template], instances: Instances, num_inputs: int) -> Waves:
    """Each instance in the first wave that may have it."""
    readers, writers = dependencies(templates, instances, num_inputs)
    level = [0] * len(instances.table)
    for reader, writer in zip(readers.tolist(), writers.tolist(), strict=True):
        if level[writer] >= level[reader]:
            level[reader] = level[writer] + 1
    computes = np.array([template.witness.kind not in (FREE, NOTHING) for template in templates])
    computed = np.flatnonzero(computes[instances.table["template"]])
    levels = np.array(level)[computed]
    _, sizes = np.unique(levels, return_counts=True)
    return Waves(
        order=computed[np.argsort(levels, kind="stable")].astype(np.uint32),
        starts=(0, *np.cumsum(sizes).tolist()),
    )


def dependencies(
    templates: Sequence[Template], instances: Instances, num_inputs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All (reader, writer), once each and by reader: the instances that read what others have filled."""
    count = len(instances.table)
    bits, numbers = (
        np.repeat(np.arange(count), np.array(per_template)[instances.table["template"]])
        for per_template in (
            [template.external_bits for template in templates],
            [template.external_numbers for template in templates],
        )
    )
    pairs = bits * count + owners(instances, instances.external_bits)
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]  # of runs of bits from one instance, one
    writers = number_writers(instances, num_inputs, numbers)
    pairs = np.unique(np.concatenate([pairs, numbers * count + writers]))
    readers, writers = np.divmod(pairs, count)
    others = readers != writers
    return readers[others], writers[others]


def number_writers(instances: Instances, num_inputs: int, readers: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each external number the instance that fills it: an input's is the first that has it."""
    variables = instances.external_numbers.astype(np.int64)
    first_input, positions = np.unique(variables, return_index=True)
    is_input = variables < num_inputs
    writers = owners(instances, variables - num_inputs)
    writers[is_input] = readers[positions[np.searchsorted(first_input, variables[is_input])]]
    return writers


def owners(instances: Instances, aux: NDArray[np.integer]) -> NDArray[np.int64]:
    """The instance whose own variable each aux is."""
    # Instances without variables share their successor's first: the last one that begins there has it.
    firsts = np.ascontiguousarray(instances.table["first_aux"])
    return np.searchsorted(firsts, aux.astype(np.int64), side="right") - 1
