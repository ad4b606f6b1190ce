"""The daemon: Curio's gRPC service in front of an engine, with metrics, a status page and a journal.

In reading order: `proving.proto` with `proving_pb2` (the messages) and `contract` (what else both sides go
by), `kinds` and `circuits` (what is proven, and its names), `seam` with `sectors` (what the server asks of
an engine), `payload`, `intake` and `readers` (a request read and checked, beside the event loop),
`outcome` and `book` (jobs: who waits for what, and results), `feeder` (from the book to the engine),
`store`, `journal` and `recovery` (what outlives the process), `messages` (between our types and theirs),
`service` (one function a call), `loads` (parameters on request), `kept_memory` (for large requests),
`address`, `access` and `listening` (where it listens, who may call), `log` with `directives`, `chronicle`
and `manager` (what it says), `daemon` (from start to end). `client` and `bench_client` are the other side.

What is to be seen of it: `recent` and `gpu_time` (the timeline of the last minutes), `history`, `stages` and
`card_readings`, put together by `observation`; as texts `metrics`, `contract_status`, `live_status`; over
HTTP `door`, `http`, `status_page` with the files of `page`; `beside` joins all that to a daemon.

Words: a *request* is what a client sent; a *job* is an entry of the book, which several calls may wait for.

Everything that says nothing else runs on the event loop's only thread and never waits outside `await`: there
are no locks. Threads of the engine reach it through `call_soon_threadsafe`.

Imports the engine and what stands on it, nothing of the command line.
"""
