"""Operations on bits: their rows admit exactly the value of the operation, for all kinds of operands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from cuzk.circuit import boolean
from cuzk.circuit.boolean import FALSE, TRUE
from cuzk.circuit.r1cs import Template, Tracer, Witness
from cuzk.kernels.modulus import FR

NO_WITNESS = Witness(0, None)  # type: ignore[arg-type]

OPERATIONS = {
    "xor": (boolean.xor, 2, lambda a, b: a ^ b),
    "and": (boolean.and_, 2, lambda a, b: a & b),
    "choose": (boolean.choose, 3, lambda a, b, c: b if a else c),
    "majority": (boolean.majority, 3, lambda a, b, c: int(a + b + c >= 2)),
}


def value_of(literal: int, values: tuple[int, ...]) -> int:
    return values[literal >> 1] ^ literal & 1


def satisfied(template: Template, values: tuple[int, ...]) -> bool:
    sides, begin = [], 0
    for end in template.ends.tolist():
        terms = zip(template.slots[begin:end], template.coefficients[begin:end], strict=True)
        sides.append(sum(values[slot] * template.values[factor] for slot, factor in terms))
        begin = end
    return all((a * b - c) % FR.p == 0 for a, b, c in zip(sides[::3], sides[1::3], sides[2::3], strict=True))


def operand_kinds(count: int) -> list[tuple[int, ...]]:
    """Constants, variables and negated variables in all places.

    Two negated operands of CH or MAJ are left out: b - c then has a zero coefficient, which a template
    refuses; these operations read sums only, which are never negated.
    """
    kinds = product(*[(TRUE, FALSE, 2 * slot, 2 * slot + 1) for slot in range(1, count + 1)])
    return [case for case in kinds if count < 3 or sum(bit > 1 and bit & 1 for bit in case) < 2]


@pytest.mark.parametrize("name", OPERATIONS)
def test_rows_admit_the_value_of_the_operation_and_no_other(name: str) -> None:
    operation: Callable[..., int]
    operation, count, expected = OPERATIONS[name]
    for literals in operand_kinds(count):
        tracer = Tracer(bits=count)
        result = operation(tracer, *literals)
        template = tracer.template(name, NO_WITNESS)
        for externals in product((0, 1), repeat=count):
            operands = [value_of(literal, (1, *externals)) for literal in literals]
            solutions = [
                (1, *externals, *own)
                for own in product((0, 1), repeat=template.aux)
                if satisfied(template, (1, *externals, *own))
            ]
            assert [value_of(result, solution) for solution in solutions] == [expected(*operands)], literals
