"""The Thue-Morse word and its tree D against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.sector.thue_morse import ThueMorse, ones_are_odd
from tests.sector.sealing import Tree, encode, sha_all

FIRST, SECOND = 3**150, 7**80


def test_the_word_begins_as_it_is_known_to():
    assert "".join(map(str, ones_are_odd(np.arange(32)))) == "01101001100101101001011001101001"


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**32 - 1, 2**62 + 2**33 + 1, 2**63 - 1])
def test_parities_of_large_numbers_are_those_of_plain_ints(number):
    assert ones_are_odd(np.array([number])) == [bin(number).count("1") % 2]


@pytest.mark.parametrize("levels", [1, 2, 6, 9])
def test_root_and_paths_are_those_of_the_tree_over_all_nodes(levels):
    pair = np.frombuffer(encode(FIRST) + encode(SECOND), dtype=np.uint8).reshape(2, 32)
    word = ThueMorse(pair, levels)
    leaves = [(FIRST, SECOND)[bin(node).count("1") % 2] for node in range(1 << levels)]
    plain = Tree(enumerate(leaves), (2,) * levels, sha_all)
    assert word.root == encode(plain.root)
    paths = word.paths(np.arange(1 << levels))
    for node, leaf in enumerate(leaves):
        elements = plain.elements(node)
        assert paths[node].siblings.tolist() == [element["hashes"][0] for element in elements]
        assert paths[node].indices.tolist() == [element["index"] for element in elements]
        assert bytes(paths[node].leaves) == encode(leaf)
        assert bytes(paths[node].roots) == word.root
