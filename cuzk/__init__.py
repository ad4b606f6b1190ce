"""cuzk: a Groth16 prover for Filecoin PoRep C2 in pure Python (Numba).

Importing this package compiles nothing and loads no kernel; see docs/architecture.md for the floors of the house.
"""

__version__ = "0.1.0"
