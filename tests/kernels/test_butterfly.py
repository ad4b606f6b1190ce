"""Short transforms as formulas, on plain integers whose ranges are asserted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.kernels.butterfly import transform_of
from cuzk.kernels.modulus import FR, omega
from cuzk.kernels.ntt import ntt_textbook
from tests.kernels.field_values import edge_values

R = FR.p
LOOSE = [frozenset[int](), frozenset(range(1, 8)), frozenset(range(8)), frozenset({2, 5})]


class Integers:
    """Sums take canonical values, products take those below 2p; both are counted."""

    def __init__(self) -> None:
        self.sums = self.products = 0

    def sum(self, a: int, b: int, loose: bool = False) -> int:
        assert a < R and b < R
        self.sums += 1
        return a + b if loose else (a + b) % R

    def difference(self, a: int, b: int, loose: bool = False) -> int:
        assert a < R and b < R
        self.sums += 1
        return a - b + R if loose else (a - b) % R

    def times(self, a: int, constant: int) -> int:
        assert 0 <= a < 2 * R
        self.products += 1
        return a * constant % R


def values(count: int) -> st.SearchStrategy[list[int]]:
    value = st.sampled_from(edge_values(R)) | st.integers(0, R - 1)
    return st.lists(value, min_size=count, max_size=count)


@pytest.mark.parametrize("loose", LOOSE)
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("log2_size", range(4))
@given(st.data())
def test_a_short_transform_is_the_textbooks(
    log2_size: int, inverse: bool, loose: frozenset[int], data: st.DataObject
) -> None:
    x = data.draw(values(1 << log2_size))
    y = transform_of(Integers(), list(x), inverse, loose)
    assert [v % R for v in y] == ntt_textbook(x, pow(omega(log2_size), -1 if inverse else 1, R))
    assert all(0 <= v < (2 * R if k in loose else R) for k, v in enumerate(y))


@pytest.mark.parametrize(("size", "sums", "products"), [(1, 0, 0), (2, 2, 0), (4, 8, 1), (8, 26, 4)])
def test_it_costs_what_the_head_says(size: int, sums: int, products: int) -> None:
    counted = Integers()
    transform_of(counted, list(range(size)), inverse=False)
    assert (counted.sums, counted.products) == (sums, products)


@pytest.mark.parametrize("inverse", [False, True])
def test_the_fourth_root_is_taken_in_its_short_form(inverse: bool) -> None:
    class Constants(Integers):
        seen: list[int] = []

        def times(self, a: int, constant: int) -> int:
            self.seen.append(constant)
            return super().times(a, constant)

    transform_of(Constants(), list(range(4)), inverse)
    assert Constants.seen[-1].bit_length() == 192
