"""What a prover is given: Commit 1 outputs, read, checked and handed over as plain arrays.

In reading order: `shape` and `registered_proof` (what size and name decide), `inputs` (the dataclasses that
leave this floor), `c1_document` and `c1` (JSON to arrays), `chacha`, `graph`, `challenges`, `replica_id` and
`public_inputs` (what a verifier computes for itself), `merkle` and `check` (whether all of it fits together).

May import `kernels` and `errors`. Only `check` needs compiled code; nothing above this floor sees JSON.
"""
