"""What Numba compiles, and its twins in plain integers: fields, groups, transforms, sums, circuits.

Read in this order:

    modulus, curve                       the primes and the groups, in plain integers
    codegen, lowering                    programs of field arithmetic; how values become instructions
    field_type, field_formula,
    field_memory, field_lanes, field     `Fq`, `Fr`, `Fq2` in compiled code: forms, memory, operators
    jit                                  the decorator, and where compiled code is kept
    device                               what kernels run on: its forms, threads and memory
    fr_vector, field_buffer, butterfly,
    ntt_cpu, ntt                         vectors of Fr and their transforms
    inverse, batch_add, points, xyzz     many additions with one inversion; encodings; single points
    segment_sums, msm, selected_sum,
    subset_sums, fixed_base              sums and multiples of points
    poseidon, poseidon_hash              the hash, its constants and many of it at once
    circuit                              the variables and rows of a circuit
    gpu                                  the same once more for a GPU, with names of the same files

Nothing here imports `gpu` before a GPU is asked for.

Words: a *form* says how elements are held (field, lanes, layout) and is an argument of kernels; a *row* of an
array is one element or point; a *code* names a point row with a sign; a *twin* or *textbook* function is the
reference in plain integers. May import `errors` and `folders`.
"""
