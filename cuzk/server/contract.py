"""What both sides of the contract go by beside its messages."""

from __future__ import annotations

SERVICE = "cuzk.v1.ProvingEngine"
#: Of what a call may bring or take: what Curio's client allows.
MESSAGE_BYTES = 256 << 20
#: The same for servers and channels of gRPC.
MESSAGE_LIMITS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
)
