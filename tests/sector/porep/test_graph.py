"""Parents: through upstream's labels of whole tiny sectors, which depend on every parent of every node."""

import pytest

from cuzk.sector.api_version import ApiVersion
from cuzk.sector.porep.chacha import chacha_blocks
from cuzk.sector.porep.graph import Graph
from tests.sector.porep.sealing import label_layers

LAST_LABELS = [  # storage-proofs-porep, tests/stacked_vanilla.rs: least significant limb first
    (64, 0x00, ApiVersion.V1_0, "d3faa96b9a0fba04 ea81a283d106485e e3d51b9afa5ac2b3 0462f4f4f1a68d37"),
    (128, 0x00, ApiVersion.V1_0, "7e191e52c4a8da86 5ae8a1c9e6fac148 ce239f3b88a894b8 234c00d1dc1d53be"),
    (64, 0x7B, ApiVersion.V1_1, "abb3f38bb70defcf 777a2e4d7769119f 3448959d495490bc 06021188c7a71cb5"),
    (128, 0x7B, ApiVersion.V1_1, "22ab81cf68c4676d 7a77a82fc7c9c189 c6c03d32c1e42d23 0f777c18cc2c55bd"),
]


@pytest.mark.parametrize("nodes, porep_byte, api_version, limbs", LAST_LABELS)
def test_the_last_label_of_eleven_layers_is_upstreams(nodes, porep_byte, api_version, limbs):
    graph = Graph(nodes=nodes, porep_id=bytes([porep_byte]) * 32, api_version=api_version)
    last = label_layers(graph, b"\x09" * 32, 11)[-1][-1]
    assert last == sum(int(limb, 16) << 64 * i for i, limb in enumerate(limbs.split()))


@pytest.mark.parametrize("api_version", [ApiVersion.V1_0, ApiVersion.V1_1])
def test_the_first_two_nodes_have_node_0_as_every_drg_parent(api_version):
    graph = Graph(nodes=64, porep_id=bytes(32), api_version=api_version)
    assert graph.drg_parents([0, 1]) == [(0,) * 6] * 2


@pytest.mark.parametrize("nodes", [64, 128, 1 << 10])
def test_the_expander_is_regular_each_node_has_eight_children(nodes):
    graph = Graph(nodes=nodes, porep_id=b"\x05" * 32, api_version=ApiVersion.V1_1)
    parents = sorted(parent for node in range(nodes) for parent in graph.expander_parents(node))
    assert parents == [node for node in range(nodes) for _ in range(8)]


def test_the_versions_order_drg_parents_differently():
    old, new = (
        Graph(nodes=1 << 20, porep_id=bytes(32), api_version=version)
        for version in (ApiVersion.V1_0, ApiVersion.V1_1)
    )
    [before], [after] = (graph.drg_parents([77_777]) for graph in (old, new))
    assert after == (77_776, *before[:5])
    assert new.expander_parents(77_777) == old.expander_parents(77_777)


def test_chacha20_is_rfc_8439s():
    counter_and_nonce = bytes.fromhex("01000000000000090000004a00000000")
    given = bytes(range(32)) + counter_and_nonce
    assert chacha_blocks([given], rounds=20)[0].hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_chacha8_of_zeros_is_the_estream_vector():
    assert chacha_blocks([bytes(48)], rounds=8)[0].hex() == (
        "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
        "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
    )


def test_blocks_that_are_made_together_are_those_made_alone():
    """Words that carry, keys and counters that differ; and no block at all."""
    given = [bytes(48), b"\xff" * 48, bytes(range(48)), bytes(range(32)) + b"\xff" * 4 + bytes(12)]
    for rounds in (8, 20):
        alone = [chacha_blocks([one], rounds=rounds)[0] for one in given]
        assert chacha_blocks(given, rounds=rounds) == alone
        assert len(set(alone)) == len(given)
    assert chacha_blocks([], rounds=8) == []


@pytest.mark.parametrize("api_version", [ApiVersion.V1_0, ApiVersion.V1_1])
def test_parents_of_many_nodes_are_those_of_each(api_version):
    graph = Graph(nodes=1 << 30, porep_id=b"\x07" * 32, api_version=api_version)
    nodes = [0, 1, 2, 3, (1 << 30) - 1, 77_777, 1 << 29]
    assert graph.parents_of(nodes).tolist() == [list(graph.parents(node)) for node in nodes]
