"""Groth16 over BLS12-381: parameters, proofs and their check; the floor where circuit and kernels meet.

Read in this order:

    encoding, proof                  single points and proofs as bytes
    verifying_key, parameters        the formats of `.vk` and `.params`; reading them
    writer, development              writing development parameters, and the mark they carry
    manifest, locate, fetch          published files: what they are, where they lie, how to get them
    checked                          what was found out about large files, so that it is found out once
    verify                           the pairing equation
    files                            whole or absent, room on a disk, digests

Words: the *key* is the verifying key, a *section* one list of points in `.params`, a *stem* the name of a set
of parameter files without its ending, the *mark* the file that declares parameters to be development ones.
Imports circuit, sector and kernels.
"""
