"""Rows of a circuit from its templates: their values under an assignment, and their transpose.

Nearly all rows are sums of bits times small powers of two, and the long ones (multi-equations) sums of bits
times powers up to 2^253: both are added as integers. Field products remain for Poseidon's factors only.
Transposed, a term adds 2^k * L to its variable, L the Lagrange value of the row: the doublings of L are
made once a row. Own variables are added to in place, externals in a buffer of the instance, so that
instances may run in parallel; `add_externals` merges the buffers afterwards.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.field import FR, load, store, to_mont
from cuzk.kernels.instances import GENERAL, SIGN, value_place
from cuzk.kernels.jit import jit
from cuzk.kernels.modulus import FR as FR_MODULUS

BOUNDS_A_ROW = 6
EXPONENT_MASK = SIGN - 1
NARROW = 30  # a side whose exponents stay below this fits an int64, whatever its number of terms (< 2^32)
DIGITS = 8
DIGIT_MASK = 0xFFFFFFFF

_MODULUS_DIGITS = np.array(FR_MODULUS.limbs(FR_MODULUS.p, DIGITS, 32), dtype=np.int64)
_MODULUS = np.array(FR_MODULUS.limbs(FR_MODULUS.p, 4, 64), dtype=np.uint64)


@jit
def gather_bits(template, instance, external_bits, bits, local):
    """local[slot] = the bit in each slot of an instance; slot 0 is ONE, numbers' slots hold rubbish."""
    local[0] = 1
    for k in range(template.external_bits):
        local[1 + k] = bits[external_bits[instance.bits_start + k]]
    for k in range(template.aux):
        local[template.first_own + k] = bits[instance.first_aux + k]


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
def store_signed(value, out, row):
    """out[row] = value mod r, for |value| < 2^63."""
    if value >= 0:
        out[row, 0], out[row, 1], out[row, 2], out[row, 3] = np.uint64(value), 0, 0, 0
    else:  # the lowest word of r is close to 2^64, so nothing is borrowed
        out[row, 0] = _MODULUS[0] + np.uint64(value)
        out[row, 1], out[row, 2], out[row, 3] = _MODULUS[1], _MODULUS[2], _MODULUS[3]


@jit
def wide_sum(slots, codes, begin, end, local, digits, row):
    """row = the sum of +-2^k * bit mod r over terms begin..end-1, for a sum in (-r, 2^255).

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
    for word in range(4):
        row[word] = np.uint64(digits[2 * word]) | np.uint64(digits[2 * word + 1]) << np.uint64(32)
    while not is_canonical(row):
        subtract_modulus(row)


@jit
def is_canonical(row):
    for word in range(3, -1, -1):
        if row[word] != _MODULUS[word]:
            return row[word] < _MODULUS[word]
    return False


@jit
def subtract_modulus(row):
    borrow = np.uint64(0)
    for word in range(4):
        before = row[word]
        middle = before - _MODULUS[word]
        row[word] = middle - borrow
        borrow = np.uint64(before < _MODULUS[word]) | np.uint64(middle < borrow)


@jit
def add_others(templates, template, instance, external_values, begin, end, local, values, out, row):
    """out[row] += numbers times their coefficients, and bits times coefficients that are no powers of two."""
    own_positions = template.positions_start - template.first_own
    total = load(FR, out, row)
    for k in range(begin, end):
        slot, code = np.int64(templates.term_slots[k]), np.int64(templates.term_codes[k])
        is_own = slot >= template.first_own
        if slot <= template.external_bits or (is_own and templates.full_position[own_positions + slot] < 0):
            if local[slot]:
                total = total + load(FR, templates.coefficients, code - GENERAL)
            continue
        place = value_place(template, instance, external_values, templates.full_position, slot)
        value = load(FR, values, place)
        if code == 0:
            total = total + value
        elif code == SIGN:
            total = total - value
        else:
            total = total + value * load(FR, templates.coefficients_mont, code - GENERAL)
    store(FR, out, row, total)


@jit
def evaluate_instances(templates, instances, begin, end, side, bits, values, out):
    """out[row] = the value of A (side 0), B (1) or C (2), canonical, for instances begin..end-1."""
    longest = 0
    for t in range(len(templates.table)):
        longest = max(longest, templates.table[t].first_own + templates.table[t].aux)
    local = np.zeros(longest, dtype=np.uint8)
    digits = np.zeros(DIGITS, dtype=np.int64)
    bounds, slots, codes = templates.bounds, templates.term_slots, templates.term_codes
    for i in range(begin, end):
        instance = instances.table[i]
        template = templates.table[instance.template]
        gather_bits(template, instance, instances.external_bits, bits, local)
        at = template.bounds_start + 2 * side
        for row in range(instance.first_row, instance.first_row + template.rows):
            first, middle, last = np.int64(bounds[at]), np.int64(bounds[at + 1]), np.int64(bounds[at + 2])
            at += BOUNDS_A_ROW
            if first < middle and codes[first] & EXPONENT_MASK >= NARROW:
                wide_sum(slots, codes, first, middle, local, digits, out[row])
            else:
                store_signed(narrow_sum(slots, codes, first, middle, local), out, row)
            if middle < last:
                places = instances.external_values
                add_others(templates, template, instance, places, middle, last, local, values, out, row)


@jit
def first_unsatisfied(a, b, c, begin, end):
    """The first of rows begin..end-1 whose a * b is not c; -1 if there is none."""
    product = np.empty((1, 4), dtype=np.uint64)
    for row in range(begin, end):
        store(FR, product, 0, to_mont(FR, load(FR, a, row)) * load(FR, b, row))
        for word in range(4):
            if product[0, word] != c[row, word]:
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
        instance = instances.table[i]
        template = templates.table[instance.template]
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
        instance = instances.table[i]
        template = templates.table[instance.template]
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
