"""What a prover is given: Commit 1 outputs, read, checked and handed over as plain arrays; or made for tests.

In reading order: `shape` and `registered_proof` (what size and name decide), `inputs` (the dataclasses that
leave this floor), `tree_form`, `c1_document`, `c1` and `c1_writer` (JSON to arrays and back), `bincode` (the
same for pieces of other kinds), `chacha`, `graph`, `challenges`, `replica_id` and `public_inputs` (what a
verifier computes for itself), `merkle`, `labels`, `path_check` and `check` (whether all of it fits together),
`made_up`, `thue_morse`, `sparse_tree` and `synthesize` (sectors that nobody sealed). Proofs of spacetime have
`post_shape` and `post`, updates of sectors `update_shape`, `update`, `update_synthesis` and `commitments`.

May import `kernels` and `errors`. Only `check` and `synthesize` need compiled code; nothing above this floor
sees JSON.
"""
