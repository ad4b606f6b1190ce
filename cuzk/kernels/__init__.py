"""What Numba compiles, and its twins in plain integers: fields, groups, transforms, sums, circuits.

Read in this order:

    modulus, curve                       the primes and the groups, in plain integers
    codegen, lowering                    programs of field arithmetic; how values become instructions
    field_type, field_memory, field      `Fq`, `Fr`, `Fq2` in compiled code: forms, memory, operators
    jit                                  the decorator, and where compiled code is kept
    device                               what kernels run on: its forms, threads and memory
    fr_vector, field_buffer, ntt_cpu, ntt    vectors of Fr and their transforms
    inverse, batch_add, points, xyzz     many additions with one inversion; encodings; single points
    segment_sums, msm, selected_sum,
    subset_sums, fixed_base              sums and multiples of points
    poseidon, poseidon_hash              the hash, its constants and many of it at once
    team                                 code that one CPU thread or all threads of a GPU's block run
    instances, witness, template_rows    a circuit's tables, the values of its variables, its rows
    sha256, poseidon_witness, steps,
    packing, products, serialize         what `witness` runs for each gadget; rows as bytes

and for a GPU, importable where numba-cuda is:

    cuda_compile, cuda_toolchain,
    cuda_jit                             from Python to code for a card; the decorator, and where code is kept
    gpu_types, gpu_ops                   models of the field types there; operations beside the field
    ntt_schedule, eight_values,
    ntt_gpu_kernels, ntt_gpu             transforms: their passes, steps, kernels and launches
    inverse_gpu, pair_add_gpu,
    rounds_gpu, tail_sum_gpu             additions of pairs; rounds of them; short lists without inversions
    bucket_sort_gpu, staged_sort_gpu,
    integrate_gpu, workspace_gpu,
    msm_gpu, selected_sum_gpu            sums of points
    points_gpu, subset_sums_gpu,
    fixed_base_gpu                       encodings, checks and multiples
    instances_gpu, witness_gpu,
    template_rows_gpu, selection_gpu     a circuit's tables, variables, rows, and scalars for the sums
    proof_kernels_gpu                    what a task compiles ahead

Words: a *form* says how elements are held (field, lanes, layout) and is an argument of kernels; a *row* of an
array is one element or point; a *code* names a point row with a sign; a *twin* or *textbook* function is the
reference in plain integers. May import `errors` and `folders`.
"""
