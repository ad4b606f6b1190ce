"""Verifying keys: upstream's file, and damaged ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from py_arkworks_bls12381 import G1Point

from cuzk.errors import ParameterError
from cuzk.groth16.encoding import decode_g1, decode_g2
from cuzk.groth16.parameters import verifying_key
from cuzk.groth16.parameters.verifying_key import VerifyingKey, read_verifying_key


def test_upstream_key_is_read_and_written_back(upstream_key_path: Path) -> None:
    published = json.loads((upstream_key_path.parent / "vectors.json").read_text())["params_2k"]
    key = read_verifying_key(upstream_key_path)
    assert len(key.ic) == published["points"]["ic"] == 40
    assert hashlib.sha256(key.to_bytes()).hexdigest() == published["vk_sha256"]
    assert key.digest == hashlib.blake2b(upstream_key_path.read_bytes()).hexdigest()[:32]


def test_points_stand_in_the_order_of_the_format(small_key: VerifyingKey) -> None:
    data = small_key.to_bytes()
    assert len(data) == 864 + 4 + 2 * 96
    assert data[:96] == small_key.alpha_g1 and data[192:384] == small_key.beta_g2
    assert data[672:864] == small_key.delta_g2 and data[864:868] == b"\0\0\0\2"
    assert VerifyingKey.from_bytes(data, where="key") == small_key


def test_points_are_those_of_the_bytes_and_decoded_once(
    upstream_key_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifying_key._checked_key.cache_clear()
    decoded: list[bytes] = []

    def counted(data: bytes) -> G1Point:
        decoded.append(data)
        return decode_g1(data)

    monkeypatch.setattr(verifying_key, "decode_g1", counted)
    for _ in range(3):
        key = read_verifying_key(upstream_key_path)
        assert key.points.ic == tuple(decode_g1(point) for point in key.ic)
        assert key.points.delta_g2 == decode_g2(key.delta_g2)
    assert len(decoded) == 40 + 3


REJECTED = {
    "empty": (lambda data: b"", "the file is empty"),
    "truncated_in_the_fixed_part": (lambda data: data[:500], "truncated: 500 bytes"),
    "truncated_before_the_count": (lambda data: data[:866], "truncated: 866 bytes"),
    "truncated_in_ic": (lambda data: data[:-1], "has 1060 bytes, not 1059"),
    "trailing_byte": (lambda data: data + b"\0", "has 1060 bytes, not 1061"),
    "no_ic": (lambda data: data[:864] + bytes(4), "count of ic points is 0"),
    "absurd_count": (lambda data: data[:864] + b"\xff" * 4 + data[868:], "count of ic points is 4294967295"),
    "alpha_is_the_identity": (
        lambda data: b"\x40" + bytes(95) + data[96:],
        "alpha_g1 is unusable: the identity",
    ),
    "gamma_off_the_curve": (
        lambda data: data[:575] + bytes([data[575] ^ 1]) + data[576:],
        "gamma_g2 is unusable: not on the curve",
    ),
    "last_ic_outside_the_subgroup": (
        lambda data: data[:-96] + bytes(95) + b"\2",
        r"ic\[1\] is unusable: on the curve, but outside the subgroup",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_damaged_key_is_refused(name: str, small_key: VerifyingKey, tmp_path: Path) -> None:
    damage, reason = REJECTED[name]
    path = tmp_path / "damaged.vk"
    path.write_bytes(damage(small_key.to_bytes()))
    with pytest.raises(ParameterError, match=reason) as raised:
        read_verifying_key(path)
    assert raised.value.where == str(path) and raised.value.next


def test_missing_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="the file is missing"):
        read_verifying_key(tmp_path / "none.vk")


def test_a_file_of_another_kind_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.vk"
    with path.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(ParameterError, match="far too large"):
        read_verifying_key(path)
