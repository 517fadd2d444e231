"""Threads, forks, descriptors, the garbage collector: one transport in a whole process, and in its children."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer, answers
from ways import DIRECT_WAYS, WAYS, call, direct, request, way

from membrane_lite.abort import AbortController
from membrane_lite.errors import MembraneError
from membrane_lite.transport.pool import Transport

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSES = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"

DESCRIPTORS = "/proc/self/fd"
counts_descriptors = pytest.mark.skipif(not os.path.isdir(DESCRIPTORS), reason="descriptors cannot be counted here")


def descriptors() -> int:
    return len(os.listdir(DESCRIPTORS))


def echoes_or_cuts(peer: Peer) -> None:
    """Answers with the body of the request; one in ten, by its number, is cut."""
    while (received := peer.request()) is not None:
        cut = received.body.endswith(b"7")
        size = len(received.body) + (5 if cut else 0)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (size, received.body))
        if cut:
            return


@counts_descriptors
@pytest.mark.parametrize("name", DIRECT_WAYS)
def test_many_threads_with_faults_mix_nothing_up_and_leave_nothing_open(name: str, certificates: Certificates) -> None:
    whole: list[int] = []
    cut: list[int] = []
    before = descriptors()

    def calls(transport: Transport, url: str, thread: int) -> None:
        for number in range(20):
            body = b"%d-%d" % (thread, number)
            try:
                assert transport.open(request(url, body), call()).read(100) == body
                whole.append(number)
            except MembraneError as error:
                assert error.type == "network"
                cut.append(number)

    with way(name, certificates, echoes_or_cuts) as (server, transport):
        threads = [threading.Thread(target=calls, args=(transport, server.url(), n)) for n in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert (len(whole), len(cut)) == (32 * 18, 32 * 2)
    assert descriptors() == before


@counts_descriptors
@pytest.mark.parametrize("name", WAYS)
def test_nothing_is_left_open_however_a_call_ends(name: str, certificates: Certificates) -> None:
    def ends(transport: Transport, url: str) -> Iterator[object]:
        yield transport.open(request(url), call()).finish()
        yield transport.open(request(url), call()).close()
        yield transport.open(request(url), call()).read(1)
        yield transport.open(request(url), call()).read(100)
        controller = AbortController()
        stream = transport.open(request(url), call(signal=controller.signal))
        controller.abort()
        with pytest.raises(MembraneError):
            list(stream)
        yield None

    before = descriptors()
    with way(name, certificates, answers) as (server, transport):
        for _ in ends(transport, server.url()):
            pass
    assert descriptors() == before


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_collect() -> Iterator[None]:
    """What all other tests have made is set aside: the collector would go over it each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def opened_and_dropped(transport: Transport, url: str, controller: AbortController) -> None:
    transport.open(request(url), call(signal=controller.signal))


def iterated_and_dropped(transport: Transport, url: str, controller: AbortController) -> None:
    next(iter(transport.open(request(url), call(signal=controller.signal))))


def never_iterated(transport: Transport, url: str, controller: AbortController) -> None:
    iter(transport.open(request(url), call(signal=controller.signal)))


def failed(transport: Transport, url: str, controller: AbortController) -> None:
    limits = call(signal=controller.signal, idle_ms=20)
    stream = transport.open(request(url), limits)
    limits.deadlines.first_event()
    with pytest.raises(MembraneError):
        list(stream)


ABANDONED = {
    "the stream": opened_and_dropped,
    "an iteration that began": iterated_and_dropped,
    "one that did not": never_iterated,
    "after an error": failed,
}


@counts_descriptors
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    "head", [CHUNKED + b"3\r\none\r\n", CLOSES + b"one", LENGTH + b"one"], ids=["chunked", "close", "length"]
)
@pytest.mark.parametrize("abandon", ABANDONED.values(), ids=ABANDONED.keys())
def test_what_is_abandoned_closes_without_the_collector(
    abandon: Callable[[Transport, str, AbortController], None], head: bytes, name: str, certificates: Certificates
) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head)
        peer.wait_for_client_to_close()

    controller = AbortController()
    before = descriptors()
    with way(name, certificates, script) as (server, transport), no_collector():
        abandon(transport, server.url(), controller)
        assert server.client_closed.wait(0.5)
    assert descriptors() == before
    assert controller.signal._callbacks == []


def test_an_error_that_is_forgotten_holds_nothing() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED + b"3\r\none\r\n")

    with RawServer(script) as server, direct() as transport, no_collector():
        stream = transport.open(request(server.url()), call())
        held = weakref.ref(stream)
        try:
            list(stream)
        except MembraneError as error:
            assert error.type == "network"
        del stream
        assert held() is None


def test_nothing_grows_with_the_number_of_calls() -> None:
    controller = AbortController()
    with RawServer(answers) as server, direct() as transport:
        for _ in range(20):
            transport.open(request(server.url()), call(signal=controller.signal)).read(10)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(100):
            transport.open(request(server.url()), call(signal=controller.signal)).read(10)
        server.requests.clear()
        gc.collect()
        assert len(gc.get_objects()) - before < 50
        assert server.connections == 1


# Forks.

forks = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="no safe fork here")
fork_warning = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


def in_child(run: Callable[[], bool]) -> bool:
    """Run it in a forked child, which then ends without running anything else; whether it returned True."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if run() else 1
        finally:
            os._exit(code)
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.002)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


@forks
@fork_warning
@pytest.mark.parametrize("name", WAYS)
def test_a_child_makes_its_own_connection_and_the_parents_go_on(name: str, certificates: Certificates) -> None:
    def script(peer: Peer) -> None:
        while (received := peer.request()) is not None:
            peer.send(CHUNKED + b"3\r\none\r\n")
            if received.body == b"held":
                peer.wait_for_test()
            peer.send(b"3\r\ntwo\r\n0\r\n\r\n")

    controller = AbortController()
    with way(name, certificates, script) as (server, transport):
        running = transport.open(request(server.url(), b"held"), call(signal=controller.signal))
        pieces = iter(running)
        assert next(pieces) == b"one"
        assert transport.open(request(server.url()), call()).read(10) == b"onetwo"
        assert server.connections == 2

        def child() -> bool:
            controller.abort()  # the copy of a signal ends no call of the parent
            body = transport.open(request(server.url()), call()).read(10)
            running.close()
            transport.close()
            return body == b"onetwo"

        assert in_child(child)
        assert server.connections == 3
        assert transport.open(request(server.url()), call()).read(10) == b"onetwo"
        assert server.connections == 3
        server.go_on.set()
        assert list(pieces) == [b"two"]


@forks
@fork_warning
def test_a_child_is_not_blocked_by_a_lock_that_another_thread_held() -> None:
    with RawServer(answers) as server, direct() as transport:
        transport.open(request(server.url()), call()).read(10)
        stop = threading.Event()

        def busy() -> None:
            while not stop.is_set():
                transport.open(request(server.url()), call()).read(10)

        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                assert in_child(lambda: transport.open(request(server.url()), call()).read(10) == b"ok")
        finally:
            stop.set()
            for thread in threads:
                thread.join(5)


@forks
@fork_warning
@counts_descriptors
def test_a_child_closes_the_descriptors_it_inherited() -> None:
    with RawServer(answers) as server, direct() as transport:
        streams = [transport.open(request(server.url()), call()) for _ in range(4)]
        for stream in streams:
            stream.read(10)

        def child() -> bool:
            before = descriptors()
            transport.open(request(server.url()), call()).close()
            return descriptors() == before - 8  # a socket and its handle for each idle connection

        assert in_child(child)
