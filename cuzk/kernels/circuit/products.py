"""Witness of variables that are products: own number k is A * B of the template's row k, whose C it is.

So the rows themselves say what to compute: sums (B is ONE), products, numbers kept or cleared by a bit. A row
may read what the rows before it have made, so one member of a team makes them all.
"""

from __future__ import annotations

from cuzk.kernels.circuit.team import member
from cuzk.kernels.circuit.template_rows import gather_bits, side_value
from cuzk.kernels.field import store, to_mont
from cuzk.kernels.jit import jit


@jit
def fill_products(form, templates, template, instances, instance, variables, local, digits):
    """Fills the variables of one instance; `local` and `digits` as for `template_rows.evaluate_instance`."""
    gather_bits(template, instances, instance, variables.bits, local)
    if member():
        return
    values = variables.values
    for row in range(template.rows):
        a = side_value(form, templates, template, instances, instance, row, 0, values, local, digits)
        b = side_value(form, templates, template, instances, instance, row, 1, values, local, digits)
        store(form, values, instance.first_value + row, to_mont(form, a) * b)
