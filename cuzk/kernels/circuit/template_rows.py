"""Rows of a circuit from its templates: their values under an assignment, and their transpose.

Nearly all rows are sums of bits times small powers of two, and the long ones (multi-equations) sums of bits
times powers up to 2^253: both are added as integers. Field products remain for Poseidon's factors only.
Transposed, a term adds 2^k * L to its variable, L the Lagrange value of the row: the doublings of L are
made once a row. Own variables are added to in place, externals in a buffer of the instance, so that
instances may run in parallel; `add_externals` merges the buffers afterwards.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.circuit.instances import GENERAL, SIGN, instance_at, template_at, value_place
from cuzk.kernels.circuit.team import meet, member, members
from cuzk.kernels.field import FR, any_lane, from_words, is_zero, load, store, to_mont
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR as FR_MODULUS

BOUNDS_A_ROW = 6
EXPONENT_MASK = SIGN - 1
NARROW = 30  # a side whose exponents stay below this fits an int64, whatever its number of terms (< 2^32)
DIGITS = 8
DIGIT_MASK = 0xFFFFFFFF

_MODULUS_DIGITS = np.array(FR_MODULUS.limbs(FR_MODULUS.p, DIGITS, 32), dtype=np.int64)
_M0, _M1, _M2, _M3 = FR_MODULUS.limbs(FR_MODULUS.p, 4, 64)


@jit
def gather_bits(template, instances, instance, bits, local):
    """local[slot] = the bit in each slot of an instance; slot 0 is ONE, numbers' slots hold rubbish."""
    if member() == 0:
        local[0] = 1
    for k in range(member(), template.external_bits, members()):
        local[1 + k] = bits[instances.external_bits[instance.bits_start + k]]
    for k in range(member(), template.aux, members()):
        local[template.first_own + k] = bits[instance.first_aux + k]
    meet()


@jit
def narrow_sum(slots, codes, begin, end, local):
    """The sum of +-2^k * bit over terms begin..end-1, for small k."""
    total = np.int64(0)
    for k in range(begin, end):
        code = np.int64(codes[k])
        term = np.int64(local[slots[k]]) << (code & EXPONENT_MASK)
        total += -term if code & SIGN else term
    return total


@jit
def from_signed(form, value):
    """value mod r, for |value| < 2^63."""
    nothing = np.uint64(0)
    if value >= 0:
        return from_words(form, (np.uint64(value), nothing, nothing, nothing))
    # The lowest word of r is close to 2^64, so nothing is borrowed.
    return from_words(
        form, (np.uint64(_M0) + np.uint64(value), np.uint64(_M1), np.uint64(_M2), np.uint64(_M3))
    )


@jit
def wide_sum(form, slots, codes, begin, end, local, digits):
    """The sum of +-2^k * bit mod r over terms begin..end-1, for a sum in (-r, 2^255).

    Collected in signed digits of 32 bits, beginning with r: 2^31 terms would fit before a digit overflows.
    """
    for d in range(DIGITS):
        digits[d] = _MODULUS_DIGITS[d]
    for k in range(begin, end):
        code = np.int64(codes[k])
        exponent = code & EXPONENT_MASK
        term = np.int64(local[slots[k]]) << (exponent & 31)
        digits[exponent >> 5] += -term if code & SIGN else term
    for d in range(1, DIGITS):
        digits[d] += digits[d - 1] >> 32
        digits[d - 1] &= DIGIT_MASK
    words = (word_of(digits, 0), word_of(digits, 1), word_of(digits, 2), word_of(digits, 3))
    while not is_canonical(words):
        words = less_modulus(words)
    return from_words(form, words)


@jit
def word_of(digits, i):
    return np.uint64(digits[2 * i]) | np.uint64(digits[2 * i + 1]) << np.uint64(32)


@jit
def is_canonical(words):
    if words[3] != np.uint64(_M3):
        return words[3] < np.uint64(_M3)
    if words[2] != np.uint64(_M2):
        return words[2] < np.uint64(_M2)
    if words[1] != np.uint64(_M1):
        return words[1] < np.uint64(_M1)
    return words[0] < np.uint64(_M0)


@jit
def less_modulus(words):
    """words - r, mod 2^256."""
    w0, borrow = less(words[0], np.uint64(_M0), np.uint64(0))
    w1, borrow = less(words[1], np.uint64(_M1), borrow)
    w2, borrow = less(words[2], np.uint64(_M2), borrow)
    w3, borrow = less(words[3], np.uint64(_M3), borrow)
    return w0, w1, w2, w3


@jit
def less(x, y, borrow):
    """x - y - borrow mod 2^64, and the next borrow."""
    middle = x - y
    return middle - borrow, np.uint64(x < y) | np.uint64(middle < borrow)


@jit
def add_others(form, total, templates, template, instances, instance, begin, end, local, values):
    """total + numbers times their coefficients, and bits times coefficients that are no powers of two."""
    own_positions = template.positions_start - template.first_own
    for k in range(begin, end):
        slot, code = np.int64(templates.term_slots[k]), np.int64(templates.term_codes[k])
        is_own = slot >= template.first_own
        if slot <= template.external_bits or (is_own and templates.full_position[own_positions + slot] < 0):
            if local[slot]:
                total = total + load(form, templates.coefficients, code - GENERAL)
            continue
        value = load(form, values, value_place(templates, template, instances, instance, slot))
        if code == 0:
            total = total + value
        elif code == SIGN:
            total = total - value
        else:
            total = total + value * load(form, templates.coefficients_mont, code - GENERAL)
    return total


@jit
def side_value(form, templates, template, instances, instance, row, side, values, local, digits):
    """A (side 0), B (1) or C (2) of a row of the template, canonical; `local` holds the instance's bits."""
    bounds, slots, codes = templates.bounds, templates.term_slots, templates.term_codes
    at = template.bounds_start + BOUNDS_A_ROW * row + 2 * side
    first, middle, last = np.int64(bounds[at]), np.int64(bounds[at + 1]), np.int64(bounds[at + 2])
    if first < middle and codes[first] & EXPONENT_MASK >= NARROW:
        total = wide_sum(form, slots, codes, first, middle, local, digits)
    else:
        total = from_signed(form, narrow_sum(slots, codes, first, middle, local))
    if middle < last:
        total = add_others(form, total, templates, template, instances, instance, middle, last, local, values)
    return total


@jit
def evaluate_instance(form, templates, instances, i, side, variables, out, local, digits):
    """out[row] = the value of A (side 0), B (1) or C (2), canonical, for the rows of instance i.

    `side_value` row by row, but written out: calls would count references to all arrays, in every row, which
    takes ten times the work of a row.

    local   a byte for each slot, for the team
    digits  (DIGITS,) int64, for each member
    """
    instance = instance_at(instances.table, i)
    template = template_at(templates.table, instance.template)
    bounds, slots, codes = templates.bounds, templates.term_slots, templates.term_codes
    gather_bits(template, instances, instance, variables.bits, local)
    for row in range(member(), template.rows, members()):
        at = template.bounds_start + BOUNDS_A_ROW * row + 2 * side
        first, middle, last = np.int64(bounds[at]), np.int64(bounds[at + 1]), np.int64(bounds[at + 2])
        if first < middle and codes[first] & EXPONENT_MASK >= NARROW:
            total = wide_sum(form, slots, codes, first, middle, local, digits)
        else:
            total = from_signed(form, narrow_sum(slots, codes, first, middle, local))
        if middle < last:
            total = add_others(
                form, total, templates, template, instances, instance, middle, last, local, variables.values
            )
        store(form, out, instance.first_row + row, total)


@jit
def evaluate_instances(form, templates, instances, begin, end, side, variables, out):
    """The same for instances begin..end-1."""
    longest = 0
    for i in range(begin, end):
        template = template_at(templates.table, instance_at(instances.table, i).template)
        longest = max(longest, template.first_own + template.aux)
    local = np.zeros(longest, dtype=np.uint8)
    digits = np.zeros(DIGITS, dtype=np.int64)
    for i in range(begin, end):
        evaluate_instance(form, templates, instances, i, side, variables, out, local, digits)


@jit
def is_satisfied(form, a, b, c, row):
    """Whether a * b = c in a row."""
    product = to_mont(form, load(form, a, row)) * load(form, b, row)
    return any_lane(is_zero(product - load(form, c, row)))


@jit
def first_unsatisfied(form, a, b, c, begin, end):
    """The first of rows begin..end-1 whose a * b is not c; -1 if there is none."""
    for row in range(begin, end):
        if not is_satisfied(form, a, b, c, row):
            return row
    return -1


@jit
def double_up(doublings, lagrange, row, top):
    """doublings[k] = 2^k * lagrange[row], up to k = top."""
    x = load(FR, lagrange, row)
    store(FR, doublings, 0, x)
    for k in range(1, top + 1):
        x = x + x
        store(FR, doublings, k, x)


@jit
def transpose_instances(templates, instances, begin, end, side, lagrange, own, externals, externals_start):
    """own[aux] += coefficient * L[row] over the rows of instances begin..end-1, for their own variables.

    What belongs to ONE and to externals is added up in `externals`, 1 + their number for each instance, from
    externals_start on.
    """
    doublings = np.empty((EXPONENT_MASK + 1, 4), dtype=np.uint64)
    bounds, slots, codes = templates.bounds, templates.term_slots, templates.term_codes
    for i in range(begin, end):
        instance = instance_at(instances.table, i)
        template = template_at(templates.table, instance.template)
        at = template.bounds_start + 2 * side
        for row in range(instance.first_row, instance.first_row + template.rows):
            first, middle, last = np.int64(bounds[at]), np.int64(bounds[at + 1]), np.int64(bounds[at + 2])
            at += BOUNDS_A_ROW
            if first < last:
                double_up(doublings, lagrange, row, codes[first] & EXPONENT_MASK if first < middle else 0)
            for k in range(first, last):
                slot, code = np.int64(slots[k]), np.int64(codes[k])
                if code >= GENERAL:
                    term = load(FR, doublings, 0) * load(FR, templates.coefficients_mont, code - GENERAL)
                else:
                    term = load(FR, doublings, code & EXPONENT_MASK)
                negative = SIGN <= code < GENERAL
                if slot < template.first_own:
                    add_in_place(externals, externals_start + slot, term, negative)
                else:
                    add_in_place(own, instance.first_aux + slot - template.first_own, term, negative)
        externals_start += template.first_own


@jit
def add_in_place(target, row, term, negative):
    total = load(FR, target, row)
    store(FR, target, row, total - term if negative else total + term)


@jit
def add_externals(templates, instances, begin, end, num_inputs, externals, out):
    """out[variable] += what `transpose_instances` left in `externals` for instances begin..end-1."""
    at = 0
    for i in range(begin, end):
        instance = instance_at(instances.table, i)
        template = template_at(templates.table, instance.template)
        for slot in range(template.first_own):
            if slot == 0:
                variable = 0
            elif slot <= template.external_bits:
                variable = num_inputs + np.int64(instances.external_bits[instance.bits_start + slot - 1])
            else:
                number = instance.numbers_start + slot - 1 - template.external_bits
                variable = np.int64(instances.external_numbers[number])
            add_in_place(out, variable, load(FR, externals, at), False)
            at += 1
