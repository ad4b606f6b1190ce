"""How values of a form become LLVM IR: one module a kind of form, with the same functions in each.

one_lane     one element of 64-bit limbs, whole numbers of LLVM, always canonical
eight_lanes  eight elements of 52-bit limbs, ranges tracked by the type
gpu          one element of 32-bit limbs, always canonical: a block of PTX an operation; `shoup` beside it

A lowering knows, for its forms: the IR type of a value; the types of sums and products; how to emit
constants, sums, products, carries, reductions and choices; how rows of memory become values and back.
`form.lowering` finds it.
"""
