"""What both sides of the contract go by beside its messages."""

from __future__ import annotations

SERVICE = "cuzk.v1.ProvingEngine"
#: Trailing metadata of the daemon's own errors: without it UNAVAILABLE is gRPC's, which found no daemon.
ANSWERED = ("cuzk-answered", "yes")
#: Of what a call may bring or take: what Curio's client allows.
MESSAGE_BYTES = 256 << 20
#: The same for servers and channels of gRPC.
MESSAGE_LIMITS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
)
