"""Field arithmetic as programs, written once and read by machines.

A program is a Python function that calls the few operations of a *machine*. Reading order:

radix52   programs on 52-bit limbs, for AVX-512 IFMA: eight elements side by side
radix64   programs on 64-bit limbs with double-width products: one element
ints      the machine of the tests: plain integers, every range asserted
llvm      the machine that emits LLVM IR, one lane or eight
radix32   programs on 32-bit limbs, for GPUs; factor32: products by known factors; both in terms of
asm       instructions with a carry flag: recorded, run on plain integers, printed as PTX

May import `modulus` only.
"""
