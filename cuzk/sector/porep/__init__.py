"""PoRep: a Commit 1 output, read, checked, and handed over as plain arrays; or made up.

In reading order:

    shape, registered_proof            what a sector's size and the name of its seal decide
    inputs                             the arrays that leave this floor
    chacha, graph, challenges          which nodes a sector's proofs open, and what their parents are
    replica_id, labels                 what ties a sector to its miner; a node's label
    public_inputs                      what a verifier computes for itself
    c1                                 the input and its checks
    c1_document, c1_reader, c1_writer  from JSON to these arrays and back
    synthesize                         sectors that nobody sealed
"""
