"""Groth16 over BLS12-381: parameters, proofs and their check; the floor where circuit and kernels meet.

Read in this order:

    encoding, proof                  single points and proofs as bytes
    files                            whole or absent, room on a disk, digests
    parameters/                      a folder of its own: parameter files, from formats to downloads
    qap, point_rows, proof_memory    domain and counts of a circuit; sections as rows; where proofs write to
    memory_plan, memory_limits       what a proof will take; what there is
    query                            which scalars meet the points of a section
    target, target_cpu               quotient and sums of a proof; the CPU as the machine that computes them
    gpu/                             a folder of its own: a GPU as that machine
    prove, verify                    from an assignment to a verified proof; the pairing equation
    values_at_tau, generate          parameters from trapdoors

Imports circuit, sector and kernels.
"""
