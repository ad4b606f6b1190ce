"""Sectors of 32 and 64 GiB: their file is read in time and memory, and their checks find a flipped bit.

Nobody seals such a sector in a test: only what the proofs open is made, and the rest of the trees is made up.
The trees are hashed by the compiled Poseidon, which `test_poseidon_hash` compares with the textbook.
"""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import cuzk
from cuzk.errors import InputError
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon_hash import hash_many
from cuzk.proofs.sources import check_input
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.porep.challenges import challenges
from cuzk.sector.porep.inputs import Statement
from cuzk.sector.porep.public_inputs import graph_of
from cuzk.sector.porep.registered_proof import registered_proof
from tests.sector.porep.documents import wrapped
from tests.sector.porep.sealing import Tree, document, encode, label, label_parents, sha_all, sha_node

DEVICE = CpuDevice()
REPLICA_ID, SEED, TICKET = (encode(value) for value in (3**150, 5**100, 7**80))


def poseidon_all(children):
    rows = np.frombuffer(b"".join(encode(node) for preimage in children for node in preimage), dtype="<u8")
    return [
        int.from_bytes(row.tobytes(), "little")
        for row in hash_many(DEVICE, rows.reshape(len(children), -1, 4))
    ]


def opened_columns(registered, nodes):
    """Labels of the challenged nodes, made from made-up labels of their parents."""
    graph, layers = graph_of(registered), range(1, registered.shape.layers + 1)
    parents = {node: graph.parents(node) for node in nodes}
    columns = {
        parent: [sha_node(b"%d %d" % (parent, layer)) for layer in layers]
        for node in nodes
        for parent in parents[node]
    }
    assert not columns.keys() & parents.keys()  # else the order of making would matter
    for node in nodes:
        by_layer = [{parent: columns[parent][layer - 1] for parent in parents[node]} for layer in layers]
        columns[node] = [
            label(
                REPLICA_ID,
                layer,
                node,
                label_parents(parents[node], layer, by_layer[layer - 1], by_layer[layer - 2]),
            )
            for layer in layers
        ]
    return columns


def made_up(registered):
    """The inner document of a made-up sector that passes every check without a miner."""
    shape = registered.shape
    fixed = {"registered_proof": registered, "replica_id": REPLICA_ID, "seed": SEED}
    draft = Statement(comm_d=bytes(32), comm_r=bytes(32), **fixed)
    nodes = [node for partition in range(registered.partitions) for node in challenges(draft, partition)]
    data = {node: sha_node(b"data %d" % node) for node in nodes}
    columns = opened_columns(registered, nodes)
    tree_d = Tree(data, (2,) * shape.d_levels, sha_all)
    hashes = poseidon_all(list(columns.values()))
    tree_c = Tree(zip(columns, hashes, strict=True), shape.path_arities, poseidon_all)
    replica = {node: (columns[node][-1] + data[node]) % FR.p for node in nodes}
    tree_r = Tree(replica, shape.path_arities, poseidon_all)
    comm_r = encode(poseidon_all([[tree_c.root, tree_r.root]])[0])
    statement = Statement(comm_d=encode(tree_d.root), comm_r=comm_r, **fixed)
    return document(statement, TICKET, columns, tree_d, tree_c, tree_r)


@pytest.fixture(scope="module", params=["StackedDrg32GiBV1_1", "StackedDrg64GiBV1_1"])
def c1_file(request, tmp_path_factory):
    registered = registered_proof(request.param)
    path = tmp_path_factory.mktemp("c1") / "c1.json"
    path.write_bytes(wrapped(made_up(registered), SectorSize=registered.sector_bytes))
    return path


@pytest.mark.slow
def test_a_large_sector_passes_within_seconds_and_a_flipped_bit_does_not(c1_file):
    c1 = read_c1(c1_file)
    start = time.perf_counter()
    check_input(c1, DEVICE)
    seconds = time.perf_counter() - start
    print(f"checked in {seconds:.2f} s")
    assert seconds < 10
    partition = c1.partitions[7]
    siblings = partition.c_paths.siblings.copy()
    siblings[11, 3, 40, 5] ^= 4
    damaged = replace(partition, c_paths=replace(partition.c_paths, siblings=siblings))
    with pytest.raises(InputError, match="partition 7, challenge 11, C path of DRG parent 2"):
        check_input(replace(c1, partitions=(*c1.partitions[:7], damaged, *c1.partitions[8:])), DEVICE)


@pytest.mark.slow
def test_the_file_of_a_large_sector_is_read_in_two_seconds_and_a_gibibyte(c1_file):
    script = (
        "import sys, time; from pathlib import Path; from cuzk.sector.porep.c1_reader import read_c1;"
        "start = time.process_time(); read_c1(Path(sys.argv[1])); print(time.process_time() - start);"
        "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, c1_file], capture_output=True, text=True, check=True
    )
    seconds, peak_kib = map(float, output.stdout.split())
    print(f"{c1_file.stat().st_size / 1e6:.0f} MB read in {seconds:.2f} s, peak {peak_kib / 1024:.0f} MiB")
    assert seconds < 2 and peak_kib < 1 << 20


@pytest.mark.slow
def test_partitions_that_disagree_are_named():
    """Each is good by itself, in its own place of its own sector."""
    c1, other = (cuzk.synthesize(32 << 30, seed=seed) for seed in (1, 2))
    check_input(c1, DEVICE)
    mixed = replace(c1, partitions=(*c1.partitions[:3], other.partitions[3], *c1.partitions[4:]))
    with pytest.raises(InputError, match="partition 3, challenge 0"):
        check_input(mixed, DEVICE)
    first, second, *rest = c1.partitions
    swapped = (replace(second, index=0), replace(first, index=1), *rest)
    with pytest.raises(InputError, match=r"partition 0, challenge 0.*replica_id and seed ask for node"):
        check_input(replace(c1, partitions=swapped), DEVICE)
    roots = replace(first.c_paths, roots=other.partitions[0].c_paths.roots)
    with pytest.raises(InputError, match=r"partition 0, challenge 0, C path"):
        check_input(replace(c1, partitions=(replace(first, c_paths=roots), second, *rest)), DEVICE)
