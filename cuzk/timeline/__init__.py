"""What the GPUs did and when: a record of the engine's work, read back, analysed and drawn.

In reading order: `line` (the form of one line, both ways), `record` (the writer that an engine holds),
`read` (a log to runs of events), `spans` (events to spans), `intervals`, `devices`, `jobs` and `analyze`
(figures), `facts` (the same as plain data), `compare` (of two logs), `tracks`, `lanes`, `svg`, `png` and
`page` (pictures), `chrome` (for trace viewers), `tail` and `live` (of an engine that still writes).

Words: a *run* is the life of one engine, whose clock began at 0; a *call* is a GPU's work on one partition,
from GPU_START to GPU_END; the *bracket* is all that lies between, waiting for the lock included; a *gap* lies
between two calls of a GPU.

Imports `errors` and `garbage`, no numpy and no compiler. The engine writes with it, the command line reads.
"""
