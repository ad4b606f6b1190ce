"""Sectors proven: the engine, the circuits and the groth16 prover brought together for each kind of proof.

Read in this order:

    kinds                   what each kind of proof is: names, shapes, how its input is read and made up
    sources                 what a caller gives, read, checked and refused
    warm_up, warm_up_gpu    kernels compiled before they are needed
    targets, proving        what computes a proof, and the partitions of one input on it
    synthesis               all variables and rows of a partition, to look at them
    jobs, setups, places    what the engine sees of a sector: work, parameters, what they take of a device
    sector_engine           the engine for sectors

Below stand groth16 and engine, which know nothing of each other; above, `api` for one sector, server and cli.
"""
