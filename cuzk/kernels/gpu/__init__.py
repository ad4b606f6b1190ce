"""Kernels of an NVIDIA GPU and what launches them: twins of the CPU's, which are in files of the same names.

Plain Python, for plans that are made without a card:

    workspace, card_speed                scratch memory laid out beforehand; how costs scale to a card
    ntt_schedule                         the passes of transforms, and their tables
    sum_schedule, sum_plan               windows, passes and working memory of sums, by measured costs

Importable where numba-cuda is:

    compiler, cubin, jit                 from Python to code for a card; the decorator, and where code is kept
    models, ops                          data models of the field types; operations beside the field
    eight_values, ntt_kernels, ntt       transforms: their steps, kernels and launches
    inverse, pair_add, rounds, tail_sum  additions of pairs; rounds of them; short lists without inversions
    digits, bucket_sort, staged_sort,
    integrate, msm, selected_sum         sums of points
    points, subset_sums, fixed_base      encodings, checks and multiples
    instances, witness, template_rows,
    selection                            a circuit's tables, variables, rows, and scalars for the sums
    proof_kernels, self_test             what a task compiles ahead; a card's kernels against plain integers
"""
