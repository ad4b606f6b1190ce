"""The Thue-Morse word and its tree D against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.sector.merkle import sha256_children
from cuzk.sector.thue_morse import ThueMorse, ones_are_odd
from tests.sector.porep.sealing import Tree, encode, sha_all, sha_node

FIRST, SECOND = 3**150, 7**80


def test_the_word_begins_as_it_is_known_to():
    assert "".join(map(str, ones_are_odd(np.arange(32)))) == "01101001100101101001011001101001"


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**32 - 1, 2**62 + 2**33 + 1, 2**63 - 1])
def test_parities_of_large_numbers_are_those_of_plain_ints(number):
    assert ones_are_odd(np.array([number])) == [bin(number).count("1") % 2]


@pytest.mark.parametrize("levels", [1, 2, 6, 9])
def test_root_and_paths_are_those_of_the_tree_over_all_nodes(levels):
    pair = np.frombuffer(encode(FIRST) + encode(SECOND), dtype=np.uint8).reshape(2, 32)
    word = ThueMorse(pair[None], (2,) * levels, sha256_children)
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


@pytest.mark.parametrize(
    ("arities", "blocks"), [((2, 2, 2), 2), ((2, 2, 2), 8), ((8, 8), 2), ((8, 8), 16), ((8, 8, 8, 2), 4)]
)
def test_blocks_of_pairs_of_their_own_make_the_tree_over_all_nodes(arities, blocks):
    """Arities that no hash of the project has for one arity alone: here it is SHA-256 of all children."""

    def hash_children(children):
        digests = b"".join(encode(sha_node(row.tobytes())) for row in children)
        return np.frombuffer(digests, np.uint64).reshape(-1, 4)

    def hash_all(children):
        return [sha_node(b"".join(map(encode, row))) for row in children]

    count = int(np.prod(arities))
    values = [[3 ** (20 + block), 5 ** (20 + block)] for block in range(blocks)]
    pairs = np.frombuffer(b"".join(encode(value) for pair in values for value in pair), np.uint8)
    word = ThueMorse(pairs.reshape(blocks, 2, 32), arities, hash_children)
    leaves = [values[node * blocks // count][bin(node).count("1") % 2] for node in range(count)]
    plain = Tree(enumerate(leaves), arities, hash_all)
    assert word.root == encode(plain.root)
    for level, above in enumerate(plain.levels):
        of_level = word.nodes(level, np.arange(len(above)))
        assert [bytes(node) for node in of_level] == [encode(above[node]) for node in range(len(above))]
    paths = word.paths(np.arange(count))
    for node in range(count):
        siblings = [bytes(sibling).hex() for element in plain.elements(node) for sibling in element["hashes"]]
        assert [bytes(sibling).hex() for sibling in paths[node].siblings] == siblings
