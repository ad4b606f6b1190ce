"""The variables and rows of a circuit, in code that a CPU's thread or all threads of a GPU's block run.

Read in this order:

    team                                 who runs a kernel together, and how they meet
    instances                            a circuit's tables: templates and their instances as flat arrays
    sha256, poseidon_witness, steps,
    packing, products                    the values of variables, gadget by gadget
    witness                              those of all instances
    template_rows                        the rows' values under an assignment, and their transpose
    serialize                            rows as bytes
"""
