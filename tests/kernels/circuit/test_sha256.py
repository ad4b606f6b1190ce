"""SHA-256's constants against FIPS 180-4; the witness kernel is tested with its rows, in tests/circuit."""

from __future__ import annotations

from cuzk.kernels.circuit.sha256 import INITIAL_STATE, ROUND_CONSTANTS


def test_initial_state_is_that_of_the_standard() -> None:
    assert INITIAL_STATE == (
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
    )  # fmt: skip


def test_round_constants_are_those_of_the_standard() -> None:
    assert ROUND_CONSTANTS[:4] == (0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5)
    assert ROUND_CONSTANTS[-4:] == (0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2)
    assert len(set(ROUND_CONSTANTS)) == 64
