"""The machines that kernels run on: a device knows its threads or card, its memory, and how work gets there.

`cpu` is the CPU. `cuda` is an NVIDIA GPU; its head names the files that it is made of. `choose` reads what a
user writes after --device.
"""
