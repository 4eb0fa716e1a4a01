"""Pigweed's own Python client (PyPI pigweed 0.0.24) against a Sinew server.

usage: matrix.py PROTO_MODULE_DIR LINK ADDRESS [--calls N]

LINK is "tcp" (ADDRESS host:port) or "pty" (ADDRESS a device path). For every kind of method and
every direction of cancel there is a cell, made by taking the product of both lists, so that one
that nobody wrote is empty and fails. Then N unary calls, none of which may be lost. Prints one line
a cell; exits non-zero if any failed.

The server wraps demo.Kinds: a few numbers have a special meaning (see tests/src/lib.rs).
"""

import itertools
import os
import socket
import sys
import threading
import time
import traceback

sys.path.insert(0, sys.argv[1])
import demo_pb2  # noqa: E402
from pw_hdlc import rpc as hdlc_rpc  # noqa: E402
from pw_rpc import callback_client  # noqa: E402
from pw_rpc.callback_client.errors import RpcError  # noqa: E402
from pw_status import Status  # noqa: E402
from pw_stream import stream_readers  # noqa: E402

LINK, ADDRESS = sys.argv[2], sys.argv[3]
CALLS = int(sys.argv[sys.argv.index("--calls") + 1]) if "--calls" in sys.argv else 0

HOLD = 1_000_000_001  # the call is kept open
GIVE_UP = 1_000_000_002  # the service ends the call with ABORTED
CANCELS = 1_000_000_003  # Double answers how many cancels the service has seen

KINDS = ("unary", "server stream", "client stream", "bidi")
CANCELLED_BY = ("nobody", "the client", "the server")


class PtyReader(stream_readers.CancellableReader):
    """Reads a pseudo-terminal; ends when the client is closed."""

    def __init__(self, fd):
        super().__init__(fd)
        self._fd = fd
        self._open = True

    def read(self):
        import select

        while self._open:
            ready, _, _ = select.select([self._fd], [], [], 0.1)
            if ready:
                return os.read(self._fd, 4096)
        return b""

    def cancel_read(self):
        self._open = False


def connect():
    if LINK == "tcp":
        host, port = ADDRESS.rsplit(":", 1)
        sock = socket.create_connection((host, int(port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader, write = stream_readers.SocketReader(sock, 4096), sock.sendall
    else:
        fd = os.open(ADDRESS, os.O_RDWR | os.O_NOCTTY)
        lock = threading.Lock()

        def write(data):
            with lock:
                while data:
                    data = data[os.write(fd, data) :]

        reader = PtyReader(fd)
    return hdlc_rpc.HdlcRpcClient(
        reader,
        [demo_pb2],
        hdlc_rpc.default_channels(write),
        client_impl=callback_client.Impl(
            default_unary_timeout_s=20, default_stream_timeout_s=20
        ),
    )


def same(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def until(condition, what):
    """Waits for something that the server does by itself."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"not seen in 20 s: {what}"
        time.sleep(0.01)


CELLS = {}


def cell(kind, cancelled_by):
    def enter(function):
        CELLS[kind, cancelled_by] = function
        return function

    return enter


def cancels(kinds):
    status, answer = kinds.Double(n=CANCELS)
    same(status, Status.OK)
    return answer.n


def server_sees_cancel(kinds, call):
    before = cancels(kinds)
    assert call.cancel(), "cancel() sent nothing"
    until(lambda: cancels(kinds) == before + 1, "the cancel, at the service")
    return "cancel seen by the service"


@cell("unary", "nobody")
def _(kinds):
    status, answer = kinds.Double(n=21)
    same((status, answer.n), (Status.OK, 42))
    status, _ = kinds.Double(n=2**31)
    same(status, Status.OUT_OF_RANGE)
    return "42, and OUT_OF_RANGE for 2^31"


@cell("unary", "the client")
def _(kinds):
    return server_sees_cancel(kinds, kinds.Double.invoke(kinds.Double.request(n=HOLD)))


@cell("unary", "the server")
def _(kinds):
    status, _ = kinds.Double(n=GIVE_UP)
    same(status, Status.ABORTED)
    return "ABORTED"


@cell("server stream", "nobody")
def _(kinds):
    result = kinds.Count(n=1000)
    same(result.status, Status.OK)
    same([item.n for item in result.responses], list(range(1000)))
    return "1000 items in order, then OK"


@cell("server stream", "the client")
def _(kinds):
    items = []
    call = kinds.Count.invoke(
        kinds.Count.request(n=2**32 - 1), on_next=lambda _, item: items.append(item.n)
    )
    until(lambda: len(items) >= 20, "20 items")
    seen = server_sees_cancel(kinds, call)
    same(items, list(range(len(items))))
    return seen


@cell("server stream", "the server")
def _(kinds):
    result = kinds.Count(n=GIVE_UP)
    same(result.status, Status.ABORTED)
    same([item.n for item in result.responses], [0, 1, 2])
    return "3 items, then ABORTED"


@cell("client stream", "nobody")
def _(kinds):
    call = kinds.Sum.invoke()
    for n in range(1, 101):
        call.send(n=n)
    status, answer = call.finish_and_wait()
    same((status, answer.n), (Status.OK, 5050))
    return "the total of 100 items"


@cell("client stream", "the client")
def _(kinds):
    call = kinds.Sum.invoke()
    call.send(n=1)
    return server_sees_cancel(kinds, call)


@cell("client stream", "the server")
def _(kinds):
    call = kinds.Sum.invoke()
    call.send(n=2**32 - 1)
    call.send(n=1)
    until(call.completed, "the end of the call")
    same(call.status, Status.OUT_OF_RANGE)
    try:
        call.send(n=1)
    except RpcError as error:
        same(error.status, Status.FAILED_PRECONDITION)
        return "OUT_OF_RANGE in mid-stream; a later send is refused"
    raise AssertionError("send() after the end raised nothing")


@cell("bidi", "nobody")
def _(kinds):
    call = kinds.EchoAll.invoke()
    for n in range(100):
        call.send(n=n)
    result = call.finish_and_wait()
    same(result.status, Status.OK)
    same([item.n for item in result.responses], list(range(100)))
    return "100 items back in order"


@cell("bidi", "the client")
def _(kinds):
    call = kinds.EchoAll.invoke()
    call.send(n=1)
    same(next(iter(call.get_responses(count=1))).n, 1)
    return server_sees_cancel(kinds, call)


@cell("bidi", "the server")
def _(kinds):
    call = kinds.EchoAll.invoke()
    call.send(n=5)
    call.send(n=GIVE_UP)
    until(call.completed, "the end of the call")
    same(call.status, Status.ABORTED)
    same([item.n for item in call.responses], [5])
    return "one item back, then ABORTED"


def main():
    client = connect()
    kinds = client.rpcs().demo.Kinds
    failed = 0
    for kind, by in itertools.product(KINDS, CANCELLED_BY):
        try:
            run = CELLS.get((kind, by))
            assert run is not None, "EMPTY CELL"
            verdict = "ok    " + run(kinds)
        except Exception as error:  # every cell is tried
            failed += 1
            verdict = f"FAILED {error}"
            traceback.print_exc()
        print(f"{LINK:4} {kind:14} cancelled by {by:11} {verdict}", flush=True)

    if CALLS:
        lost = 0
        cache = client.rpcs().demo.Cache
        for n in range(CALLS // 2):
            set_status, _ = cache.SetValue(value=n)
            get_status, answer = cache.GetValue()
            if not (set_status.ok() and get_status.ok() and answer.value == n):
                lost += 1
        print(f"{LINK:4} {CALLS} calls, {lost} lost", flush=True)
        failed += lost
    client.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
