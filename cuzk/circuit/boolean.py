"""Bits of a template under trace, as literals: 2 * slot, plus 1 when negated. Negation is free.

The constants are the literals of slot 0, ONE: TRUE = 0 and FALSE = 1, so `literal < 2` tells a constant, and
`literal ^ 1` negates variables and constants alike. Each operation folds where an operand is constant, and
otherwise allocates one variable and one row (MAJ: two of each). The rules and their order are those of
bellpepper-core, gadgets/boolean.rs: they decide which rows exist.
"""

from __future__ import annotations

from cuzk.circuit.r1cs import LC, ONE, Tracer

TRUE, FALSE = 0, 1


def literal(slot: int) -> int:
    return 2 * slot


def constant(value: bool) -> int:
    return TRUE if value else FALSE


def add_scaled(lc: LC, bit: int, scale: int) -> LC:
    """Add scale * bit to `lc`, in place: ONE - v for a negated variable, nothing for FALSE."""
    slot = bit >> 1
    if bit & 1 == 0:
        lc[slot] = lc.get(slot, 0) + scale
    elif slot:
        lc[ONE] = lc.get(ONE, 0) + scale
        lc[slot] = lc.get(slot, 0) - scale
    return lc


def xor(tracer: Tracer, a: int, b: int) -> int:
    if a < 2:
        return b if a == FALSE else b ^ 1
    if b < 2:
        return a if b == FALSE else a ^ 1
    if a & 1 and not b & 1:
        a, b = b, a
    out = tracer.alloc_bit()
    tracer.enforce_xor(a >> 1, b >> 1, out)
    return literal(out) | (a ^ b) & 1


def and_(tracer: Tracer, a: int, b: int) -> int:
    if a < 2 or b < 2:
        if FALSE in (a, b):
            return FALSE
        return b if a == TRUE else a
    if a & 1 and not b & 1:
        a, b = b, a
    out = tracer.alloc_bit()
    tracer.enforce(add_scaled({}, a, 1), add_scaled({}, b, 1), {out: 1})
    return literal(out)


def choose(tracer: Tracer, a: int, b: int, c: int) -> int:
    """CH: b where a is set, else c."""
    if a < 2 and b < 2 and c < 2:
        return b if a == TRUE else c
    if a == FALSE:
        return c
    if b == FALSE:
        return and_(tracer, a ^ 1, c)
    if c == FALSE:
        return and_(tracer, a, b)
    if c == TRUE:
        return and_(tracer, a, b ^ 1) ^ 1
    if b == TRUE:
        return and_(tracer, a ^ 1, c ^ 1) ^ 1
    out = tracer.alloc_bit()
    tracer.enforce(add_scaled(add_scaled({}, b, 1), c, -1), add_scaled({}, a, 1), add_scaled({out: 1}, c, -1))
    return literal(out)


def majority(tracer: Tracer, a: int, b: int, c: int) -> int:
    """MAJ: what two of the three are. Its variable comes before that of b & c."""
    if a < 2 and b < 2 and c < 2:
        return TRUE if (a, b, c).count(TRUE) >= 2 else FALSE
    for constant_, x, y in ((a, b, c), (b, a, c), (c, a, b)):
        if constant_ == FALSE:
            return and_(tracer, x, y)
    for constant_, x, y in ((c, a, b), (b, a, c), (a, b, c)):
        if constant_ == TRUE:
            return and_(tracer, x ^ 1, y ^ 1) ^ 1
    out = tracer.alloc_bit()
    both = and_(tracer, b, c)
    left = add_scaled(add_scaled(add_scaled({}, both, 2), b, -1), c, -1)
    tracer.enforce(left, add_scaled({}, a, 1), add_scaled({out: -1}, both, 1))
    return literal(out)
