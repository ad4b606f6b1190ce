"""Versions of the proofs' API, which change how parents and challenges are drawn.

Source: filecoin-proofs-api, registry.rs.
"""

from __future__ import annotations

from enum import Enum


class ApiVersion(Enum):
    """Decides the parent graph; 1.1.0 and 1.2.0 have the same one."""

    V1_0 = "1.0.0"
    V1_1 = "1.1.0"
    V1_2 = "1.2.0"
