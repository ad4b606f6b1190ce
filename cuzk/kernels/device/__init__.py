"""The machines that kernels run on. `cpu.CpuDevice` is the one there is; a device knows its forms, threads and memory."""
