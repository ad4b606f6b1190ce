"""Makes what Python needs of proving.proto anew: `python -m cuzk.server.generate [FOLDER]`. For developers.

The results are checked in, so that an installation needs no compiler: proving.desc, from which `proving_pb2`
makes the classes when it is imported, and proving_pb2.pyi, their types. Code that a compiler generates is not
among them, since it runs only with the protobuf releases near its own. Needs grpcio-tools.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PROTO = "cuzk/server/proving.proto"


def generate(out: Path) -> None:
    """Write both below `out`, which has a folder cuzk/server."""
    from grpc_tools import protoc

    described = out / _PROTO.replace(".proto", ".desc")
    arguments = ["protoc", f"-I{_ROOT}", f"--descriptor_set_out={described}", f"--pyi_out={out}", _PROTO]
    code = protoc.main(arguments)
    if code != 0:
        raise SystemExit(code)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else _ROOT)
