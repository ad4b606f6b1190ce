"""What a prover is given, for every kind of proof: read, checked, handed over as plain arrays; or made up.

In reading order:

    shape, tree_form, arrays, inputs  what a sector's size decides; the arrays that leave this floor
    claim                             what every kind has in common: the shape of a circuit, an input for it
    merkle, path_check                whether inclusion paths lead where they should
    document, bincode, pieces         bytes of a file; values in bincode; vanilla proofs that travel in pieces
    made_up, thue_morse, sparse_tree  of sectors that nobody sealed

    PoRep    porep_shape, registered_proof; c1_document, c1, c1_writer (JSON to arrays and back); chacha,
             graph, challenges, replica_id, labels, public_inputs (what a verifier computes for itself);
             porep (the input and its checks); synthesize
    PoSt     post_shape, post
    updates  update_shape, commitments, update, update_synthesis

May import `kernels` and servants. Compiled code is needed to check paths and to make sectors up, not to read;
nothing above this floor sees JSON or bincode.
"""
