"""Sparse trees against plain trees: where all leaves are given, and around a few of them."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.sector.sparse_tree import SparseTree
from tests.sector.porep.sealing import Tree, encode, poseidon_all, sha_node


def hash_textbook_children(children):
    return from_integers(poseidon_all([to_integers(family) for family in children]))


def make_up(level, count):
    return from_integers(sha_node(b"%d %d" % (level, i)) for i in range(count))


def sparse_tree(leaves, arities):
    nodes = np.array(sorted(leaves))
    values = from_integers(leaves[node] for node in nodes.tolist())
    return SparseTree(nodes, values, arities, hash_textbook_children, make_up)


@pytest.mark.parametrize("arities", [(8,), (8, 8), (8, 4, 2)], ids=str)
def test_a_tree_of_all_leaves_is_the_ordinary_one(arities):
    leaves = {node: 3**100 + node for node in range(np.prod(arities))}
    tree, plain = sparse_tree(leaves, arities), Tree(leaves, arities, poseidon_all)
    assert tree.roots.tobytes() == encode(plain.root)
    paths = tree.paths(np.arange(len(leaves)))
    for node in leaves:
        elements = plain.elements(node)
        expected = [sibling for element in elements for sibling in element["hashes"]]
        assert paths[node].siblings.tolist() == expected
        assert paths[node].indices.tolist() == [element["index"] for element in elements]
        assert bytes(paths[node].leaves) == encode(leaves[node])
        assert bytes(paths[node].roots) == encode(plain.root)


@pytest.mark.parametrize(
    "opened",
    [[0], [511], [0, 7, 8, 63, 64, 300, 301, 511], [5, 1000, 1023]],
    ids=lambda opened: str(len(opened)),
)
def test_paths_lead_to_one_root_and_agree_wherever_they_meet(opened):
    arities = (8, 8, 8, 2)
    leaves = {node: 5**90 + node for node in opened}
    tree = sparse_tree(leaves, arities)
    paths = tree.paths(np.array(opened))
    seen = {}
    for row, node in enumerate(opened):
        siblings, running, position = iter(to_integers(paths[row].siblings)), leaves[node], node
        for level, arity in enumerate(arities):
            index = int(paths[row].indices[level])
            assert index == position % arity
            family = [running if i == index else next(siblings) for i in range(arity)]
            for i, value in enumerate(family):
                assert seen.setdefault((level, position - index + i), value) == value
            (running,), position = poseidon_all([family]), position // arity
        assert encode(running) == tree.roots.tobytes() == bytes(paths[row].roots)


def test_trees_side_by_side_are_those_of_their_own_leaves():
    arities, size = (8, 2), 16
    own = [{node: 7**80 + 100 * tree + node for node in range(size)} for tree in range(3)]
    together = {tree * size + node: leaf for tree in (0, 2) for node, leaf in own[tree].items()}
    forest = sparse_tree(together, arities)
    for number, tree in enumerate((0, 2)):
        alone = sparse_tree(own[tree], arities)
        assert forest.roots[number].tobytes() == alone.roots.tobytes()
        found, expected = forest.paths(np.arange(size) + tree * size), alone.paths(np.arange(size))
        for part in ("roots", "leaves", "siblings", "indices"):
            assert np.array_equal(getattr(found, part), getattr(expected, part)), part


def test_leading_axes_of_paths_are_those_of_the_nodes():
    tree = sparse_tree({1: 10, 9: 20, 17: 30}, (8, 8))
    paths = tree.paths(np.array([[1, 17, 1], [9, 9, 17]]))
    assert (paths.roots.shape, paths.leaves.shape) == ((2, 3, 32), (2, 3, 32))
    assert (paths.siblings.shape, paths.indices.shape) == ((2, 3, 14, 32), (2, 3, 2))
    assert [to_integers(row) for row in paths.leaves] == [[10, 30, 10], [20, 20, 30]]
