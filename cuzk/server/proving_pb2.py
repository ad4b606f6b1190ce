"""The messages of proving.proto, made from its descriptors; proving_pb2.pyi has their types."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

[_described] = descriptor_pb2.FileDescriptorSet.FromString(
    Path(__file__).with_name("proving.desc").read_bytes()
).file
DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(_described.SerializeToString())

for _message in DESCRIPTOR.message_types_by_name.values():
    globals()[_message.name] = message_factory.GetMessageClass(_message)
for _enum in DESCRIPTOR.enum_types_by_name.values():
    globals()[_enum.name] = EnumTypeWrapper(_enum)
    globals().update({value.name: value.number for value in _enum.values})
