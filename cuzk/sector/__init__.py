"""What a prover is given, for every kind of proof: read, checked, handed over as plain arrays; or made up.

In reading order:

    shape, tree_form, arrays          what a sector's size decides; the arrays that leave this floor
    claim                             what every kind has in common: the shape of a circuit, an input for it
    merkle, path_check                inclusion paths, and whether they lead where they should
    document, bincode, pieces         bytes of a file; values in bincode; vanilla proofs that travel in pieces
    api_version, commitments          as callers write them
    made_up, thue_morse, sparse_tree  of sectors that nobody sealed

    PoRep    porep/, a folder of its own, which the other kinds need nothing of
    PoSt     post_shape, post
    updates  update_shape, update, update_synthesis

May import `kernels` and servants. Compiled code is needed to check paths and to make sectors up, not to read;
nothing above this floor sees JSON or bincode.
"""
