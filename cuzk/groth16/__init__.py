"""Groth16 over BLS12-381: parameters, proofs and their check; the floor where circuit and kernels meet.

Read in this order:

    encoding, proof                  single points and proofs as bytes
    verifying_key, parameters        the formats of `.vk` and `.params`; reading them
    qap, point_rows, proof_memory    domain and counts of a circuit; sections as rows; where proofs write to
    memory_plan, memory_limits       what a proof will take; what there is
    query                            which scalars meet the points of a section
    target, target_cpu, target_gpu   quotient and sums of a proof, and the two machines that compute them
    prove, verify                    from an assignment to a verified proof; the pairing equation
    generate, writer, development    parameters from trapdoors; writing them; the mark they carry
    manifest, locate, fetch          published files: what they are, where they lie, how to get them
    checked                          what was found out about large files, so that it is found out once
    files                            whole or absent, room on a disk, digests

Words: the *key* is the verifying key, a *section* one list of points in `.params`, a *stem* the name of a set
of parameter files without its ending, the *mark* the file that declares parameters to be development ones.
Imports circuit, sector and kernels.
"""
