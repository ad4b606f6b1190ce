"""Sealing of tiny sectors and openings of any sector, written from the protocol with plain integers.

The code under test has no part in it but `Graph` and `challenges`, whose answers are compared with upstream's
elsewhere, and where a test says so the compiled Poseidon.
"""

from __future__ import annotations

from hashlib import sha256

from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import hash_textbook
from cuzk.sector.porep.challenges import challenges
from cuzk.sector.porep.inputs import Statement
from cuzk.sector.porep.public_inputs import graph_of
from cuzk.sector.porep.replica_id import replica_id


def encode(value):
    return value.to_bytes(32, "little")


def sha_node(data):
    """SHA-256 as a field element: an integer below 2^254."""
    return int.from_bytes(sha256(data).digest(), "little") & (1 << 254) - 1


def sha_all(children):
    return [sha_node(encode(left) + encode(right)) for left, right in children]


def poseidon_all(children):
    return [hash_textbook(preimage) for preimage in children]


def label_parents(parents, layer, own_layer, layer_below):
    """The 37 labels of a preimage, from the labels of the node's own layer and of the one below it."""
    drg = [own_layer[parent] for parent in parents[:6]]
    if layer == 1:
        return drg * 6 + drg[:1]
    both = drg + [layer_below[parent] for parent in parents[6:]]
    return both * 2 + both[:9]


def label(replica, layer, node, parents):
    position = layer.to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
    return sha_node(replica + position + b"".join(map(encode, parents)))


def label_layers(graph, replica, layers):
    """Labels of every node, layer 1 first."""
    labels = []
    for layer in range(1, layers + 1):
        own, below = [], labels[-1] if labels else None
        for node in range(graph.nodes):
            parents = label_parents(graph.parents(node), layer, own, below) if node else []
            own.append(label(replica, layer, node, parents))
        labels.append(own)
    return labels


class Tree:
    """A Merkle tree of which some leaves are known; other children that a path needs have made-up values."""

    def __init__(self, leaves, arities, hash_all):
        self.arities, self.levels = arities, [dict(leaves)]
        for level, arity in enumerate(arities):
            nodes = self.levels[-1]
            above = sorted({node // arity for node in nodes})
            children = [
                [nodes.setdefault(p * arity + i, sha_node(b"%d %d %d" % (level, p, i))) for i in range(arity)]
                for p in above
            ]
            self.levels.append(dict(zip(above, hash_all(children), strict=True)))
        self.root = self.levels[-1][0]

    def elements(self, node):
        """The path of a leaf, as the document has it."""
        path = []
        for nodes, arity in zip(self.levels, self.arities, strict=False):
            first = node - node % arity
            hashes = [list(encode(nodes[i])) for i in range(first, first + arity) if i != node]
            path.append({"hashes": hashes, "index": node % arity})
            node //= arity
        return path

    def proof(self, node, shape=None):
        """The inclusion proof of a leaf: Single, or the form that trees C and R have in a shape."""
        body = {"root": list(encode(self.root)), "leaf": list(encode(self.levels[0][node]))}
        path = self.elements(node)
        if shape is None or not shape.sub_arity:
            return {"data": {"Single": body | {"path": {"path": path}}}}
        base = shape.base_levels
        body |= {"base_proof": {"path": path[:base]}, "sub_proof": {"path": path[base : base + 1]}}
        if not shape.top_arity:
            return {"data": {"Sub": body}}
        return {"data": {"Top": body | {"top_proof": {"path": path[base + 1 :]}}}}


def sealed(registered, data, *, miner=1000, number=1, ticket=b"\1" * 32, seed=b"\1" * 32, replica_of=None):
    """The inner document of a whole sector; `data` is one integer below r for every node.

    `replica_of`: other data that the replica encodes, which makes an invalid sector.
    """
    shape, graph = registered.shape, graph_of(registered)
    tree_d = Tree(enumerate(data), (2,) * shape.d_levels, sha_all)
    replica = replica_id(
        miner=miner,
        sector_number=number,
        ticket=ticket,
        comm_d=encode(tree_d.root),
        porep_id=registered.porep_id,
    )
    columns = list(zip(*label_layers(graph, replica, shape.layers), strict=True))
    tree_c = Tree(enumerate(poseidon_all(columns)), shape.path_arities, poseidon_all)
    encoded = [(column[-1] + node) % FR.p for column, node in zip(columns, replica_of or data, strict=True)]
    tree_r = Tree(enumerate(encoded), shape.path_arities, poseidon_all)
    statement = Statement(
        registered_proof=registered,
        replica_id=replica,
        comm_d=encode(tree_d.root),
        comm_r=encode(hash_textbook([tree_c.root, tree_r.root])),
        seed=seed,
    )
    return document(statement, ticket, columns, tree_d, tree_c, tree_r)


def document(statement, ticket, columns, tree_d, tree_c, tree_r):
    """The inner document of the statement's challenges. `columns`: by node, its labels from layer 1 on."""
    registered = statement.registered_proof
    shape, graph = registered.shape, graph_of(registered)

    def column_proof(node):
        rows = [list(encode(row)) for row in columns[node]]
        column = {"index": node, "rows": rows, "_h": None}
        return {"column": column, "inclusion_proof": tree_c.proof(node, shape)}

    def labeling(node, layer):
        own, below = ({p: columns[p][i] for p in graph.parents(node)} for i in (layer - 1, layer - 2))
        parents = label_parents(graph.parents(node), layer, own, below)
        return {"parents": [list(encode(p)) for p in parents], "layer_index": layer, "node": node}

    def vanilla_proof(node):
        parents = [column_proof(parent) for parent in graph.parents(node)]
        return {
            "comm_d_proofs": tree_d.proof(node),
            "comm_r_last_proof": tree_r.proof(node, shape),
            "replica_column_proofs": {
                "c_x": column_proof(node),
                "drg_parents": parents[:6],
                "exp_parents": parents[6:],
            },
            "labeling_proofs": [labeling(node, layer) for layer in range(1, shape.layers + 1)],
            "encoding_proof": labeling(node, shape.layers),
        }

    partitions = [
        [vanilla_proof(node) for node in challenges(statement, partition)]
        for partition in range(registered.partitions)
    ]
    names = ("comm_r", "comm_d", "replica_id", "seed")
    commitments = {name: list(getattr(statement, name)) for name in names}
    vanilla = {registered.size_key: partitions}
    return {
        "registered_proof": registered.name,
        "vanilla_proofs": vanilla,
        **commitments,
        "ticket": list(ticket),
    }
