"""Order on the card: streams, events between them, and graphs of recorded launches.

Streams here do not wait for CUDA's default stream, nor it for them. While the host waits, other threads run.
"""

from __future__ import annotations

from collections.abc import Callable

from cuzk.kernels.device.cuda_driver import Context, Handle

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_NO_FLAGS = 0


class Stream(Handle):
    """Work that the card does in order."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.call("cuStreamCreate", _NON_BLOCKING), "cuStreamDestroy")

    def synchronise(self) -> None:
        """Wait until everything submitted so far is done. Raises what went wrong in it."""
        self.context.call("cuStreamSynchronize", self.value)

    def wait(self, event: Event) -> None:
        """Let what is submitted from now on wait for the event; the host does not wait."""
        self.context.call("cuStreamWaitEvent", self.value, event.value, _NO_FLAGS)


class Event(Handle):
    """A moment in a stream. One that was never recorded counts as past."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.call("cuEventCreate", _NO_FLAGS), "cuEventDestroy")

    def record(self, stream: Stream) -> Event:
        self.context.call("cuEventRecord", self.value, stream.value)
        return self

    def synchronise(self) -> None:
        self.context.call("cuEventSynchronize", self.value)

    def elapsed_ms(self, since: Event) -> float:
        """Milliseconds of the card's clock between two recorded events; waits for the later one."""
        self.synchronise()
        return float(self.context.call("cuEventElapsedTime", since.value, self.value))


class Graph(Handle):
    """Recorded launches and copies with the arguments of their recording, submitted as one."""

    def run(self, stream: Stream) -> None:
        self.context.call("cuGraphLaunch", self.value, stream.value)


def record_graph(stream: Stream, submit: Callable[[], None]) -> Graph:
    """The graph of all that `submit` puts into the stream, of which nothing runs yet.

    `submit` may launch and copy from pinned memory or on the card; what allocates, frees or waits breaks the
    recording, and its error is raised after the stream is back in order.
    """
    context = stream.context
    # Thread-local: other threads may allocate meanwhile.
    mode = context.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    context.call("cuStreamBeginCapture", stream.value, mode)
    try:
        submit()
    except BaseException:
        _drop_recording(stream)
        raise
    recorded = context.call("cuStreamEndCapture", stream.value)
    try:
        return Graph(context, context.call("cuGraphInstantiate", recorded, _NO_FLAGS), "cuGraphExecDestroy")
    finally:
        context.give_back("cuGraphDestroy", recorded)


def _drop_recording(stream: Stream) -> None:
    """End a recording that failed; the driver answers with its failure, which is already being raised."""
    code, recorded = stream.context.api.cuStreamEndCapture(stream.value)
    if not code:
        stream.context.give_back("cuGraphDestroy", recorded)
