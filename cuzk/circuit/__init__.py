"""What the rows and variables of a circuit are: a description by templates and instances, for any circuit.

Read in this order:

    r1cs                             rows of one template, traced on symbolic variables
    boolean, uint32                  bits and words under trace
    tables                           templates as the flat arrays of `kernels.circuit.instances`
    builder, kept                    instances of templates in order: a circuit; circuits on disk
    numbers, sha256, poseidon,
    insertion, merkle_path, label    gadgets: what builders call
    porep, empty_sector_update,
    fallback_post                    the circuits of one partition, and their free values
    waves, marks                     which instances can be filled at a time; sets of variables
    witness, rows, digest            all values, A.z and B.z and the transpose, what pins a circuit down

Words: a *template* is a gadget's rows over *slots*; an *instance* puts it at a row and a variable, over
*external* variables; *free* variables are given, all others computed; a *strand* is a range of instances that
depends on the first strand and on itself only. May import `sector`, `kernels` and servants.
"""
