"""The server: what it records, how many it serves at once, and that nothing is left of it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from loopback.plain_client import ASKED, COMPLETIONS, Browser, connect, exchange, read_all, read_until, request

from membrane_lite.call import Call
from membrane_lite.clock import Clock
from membrane_lite.loopback import LoopbackProvider, Raw, Received, Reply, ToolCall, faults
from membrane_lite.wire.http import HttpRequest

OK = Raw(200, {}, "ok", framing="length")
FDS = Path("/proc/self/fd")


def test_every_byte_of_a_request_is_recorded() -> None:
    data = (
        b"POST //v1/%3a/..?a=%zz HTTP/1.1\r\nHost: x\r\nX-Twice: 1\r\nx-twice:2 \r\nLatin: \xe9\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: 1\r\n\r\n"
    )
    with LoopbackProvider([Raw(200, {}, "ok", then="close")]) as provider:
        exchange(provider, data)
        received = provider.requests[0]
    assert received.raw == data
    assert (received.method, received.target, received.body) == ("POST", "//v1/%3a/..?a=%zz", b"hello")
    assert received.headers == (
        ("Host", "x"),
        ("X-Twice", "1"),
        ("x-twice", "2 "),
        ("Latin", "é"),
        ("Transfer-Encoding", "chunked"),
    )
    assert received.header("x-TWICE") == "1"


def test_each_request_of_a_connection_is_recorded_for_itself() -> None:
    with LoopbackProvider([OK, OK]) as provider, connect(provider) as sock:
        sock.sendall(request() + request(model="n"))
        read_until(sock, b"okHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        assert [received.raw for received in provider.requests] == [request(), request(model="n")]
        assert [(received.number, received.connection) for received in provider.requests] == [(1, 1), (2, 1)]


def test_a_body_is_parsed_for_whoever_asks() -> None:
    with LoopbackProvider([OK]) as provider, Browser(provider) as browser:
        browser.post()
        assert provider.requests[0].json == ASKED
        assert repr(provider.requests[0]) == "Received(POST /v1/messages, 5 headers, 81 bytes)"


def test_recording_can_be_switched_off() -> None:
    with LoopbackProvider([OK, OK], record=False) as provider, Browser(provider) as browser:
        browser.post()
        browser.post()
        assert (provider.requests, provider.request_count) == ([], 2)


LAST_TEXTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a string": ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "b"),
    "blocks": ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "ab"),
    "before a prefill": ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
}


@pytest.mark.parametrize("messages, text", LAST_TEXTS.values(), ids=LAST_TEXTS.keys())
def test_a_function_may_answer_what_was_asked(messages: list[dict[str, Any]], text: str) -> None:
    def echo(received: Received) -> Reply:
        return Reply(f"You said: {received.last_user_text}")

    with LoopbackProvider(echo) as provider, Browser(provider) as browser:
        _, body = browser.post(COMPLETIONS, messages=messages)
    assert f'"content":"You said: {text}"'.encode() in body


def test_a_function_that_raises_is_an_error_that_says_so() -> None:
    def broken(received: Received) -> Reply:
        raise KeyError("city")

    with LoopbackProvider(broken) as provider, Browser(provider) as browser:
        assert browser.post() == (
            500,
            b'{"type":"error","error":{"type":"api_error","message":"the script raised KeyError: \'city\'"}}',
        )


def test_a_used_up_script_is_an_error_that_says_so() -> None:
    with LoopbackProvider([OK]) as provider, Browser(provider) as browser:
        browser.post()
        status, body = browser.post()
    assert status == 500
    assert json.loads(body)["error"]["message"] == "the script is used up: it has no answer to request 2"


def test_a_client_that_asks_for_a_close_gets_one() -> None:
    data = request().replace(b"Host: x", b"Host: x\r\nConnection: close")
    with LoopbackProvider([OK]) as provider:
        assert exchange(provider, data).endswith(b"\r\n\r\nok")


def test_a_request_that_is_no_http_is_refused() -> None:
    with LoopbackProvider([OK]) as provider:
        assert b" 400 " in exchange(provider, b"hello there you\r\n\r\n").partition(b"\r\n")[0]
        assert b" 400 " in exchange(provider, b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n").partition(b"\r\n")[0]


def test_a_request_that_ends_early_is_not_answered_and_not_recorded() -> None:
    with LoopbackProvider([OK]) as provider:
        with connect(provider) as sock:
            sock.sendall(request()[:-1])
        assert provider.wait_for_close()
        assert provider.request_count == 0


def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    head, _, body = request().replace(b"Host: x", b"Host: x\r\nExpect: 100-continue").partition(b"\r\n\r\n")
    with LoopbackProvider([OK]) as provider, connect(provider) as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert read_until(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert read_until(sock, b"ok").startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert _session(seed=3) == _session(seed=3)
    assert _session(seed=3) != _session(seed=4)


def test_ids_and_dates_come_from_the_seed() -> None:
    with LoopbackProvider([Reply("Hi", then="close")], seed=2) as provider:
        answer = exchange(provider)
    assert answer.startswith(
        b"HTTP/1.1 200 OK\r\nDate: Sun, 15 Jun 2025 15:06:42 GMT\r\nContent-Type: application/json\r\n"
        b'request-id: req_loopback_2000001\r\nContent-Length: 268\r\n\r\n{"id":"msg_loopback_2000001",'
    )


def test_many_threads_are_served_at_once() -> None:
    wrong: list[bytes] = []

    def client(name: str) -> None:
        with Browser(provider) as browser:
            for call in range(50):
                text = f"{name}.{call}"
                status, body = browser.post(messages=[{"role": "user", "content": text}], stream=bool(call % 2))
                if status != 200 or f'"text":"{text}"'.encode() not in body:
                    wrong.append(body)

    with LoopbackProvider(lambda received: Reply(received.last_user_text), record=False) as provider:
        threads = [threading.Thread(target=client, args=(f"thread{number}",)) for number in range(32)]
        _run(threads)
        assert (wrong, provider.request_count, provider.connections_made) == ([], 1600, 32)
        assert provider.wait_for_close()


def test_connections_are_counted() -> None:
    with LoopbackProvider([OK]) as provider:
        assert (provider.connections_made, provider.connections_open) == (0, 0)
        with connect(provider) as sock:
            sock.sendall(request())
            read_until(sock, b"ok")
            assert (provider.connections_made, provider.connections_open) == (1, 1)
            assert not provider.wait_for_close(0.001)
        assert provider.wait_for_close()
        assert (provider.connections_made, provider.connections_open) == (1, 0)


def test_close_ends_connections_in_every_state() -> None:
    threads, descriptors = threading.active_count(), _descriptors()
    answers = [
        OK,
        faults.silence(),
        faults.drip(Reply("Hi"), after=1, every_ms=1),
        Raw(200, {}, "hello", chunks=1, pause_ms=60_000),
        Raw(200, {}, bytes(30_000_000), framing="length"),
    ]
    with LoopbackProvider(answers, check=False) as provider:
        socks = [connect(provider) for _ in range(len(answers) + 1)]
        for number, sock in enumerate(socks[:-1], 1):
            sock.sendall(request(stream=True))
            assert provider.wait_for_requests(number)
        started = time.monotonic()
    assert time.monotonic() - started < 1
    for sock in socks:
        sock.close()
    assert (threading.active_count(), _descriptors(), provider.connections_open) == (threads, descriptors, 0)


def test_close_may_be_repeated() -> None:
    provider = LoopbackProvider()
    provider.close()
    provider.close()
    with pytest.raises(ConnectionRefusedError):
        connect(provider)


def test_a_port_may_be_chosen() -> None:
    with LoopbackProvider() as first:
        port = first.port
    with LoopbackProvider(port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl absent")
    folder = tmp_path_factory.mktemp("tls")
    files = (str(folder / "cert.pem"), str(folder / "key.pem"))
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_tls(certificate: tuple[str, str]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    with LoopbackProvider([Reply("Hi", then="close"), faults.silence()], tls=certificate) as provider:
        assert provider.url.startswith("https://127.0.0.1:")
        with connect(provider) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            sock.sendall(request())
            assert read_all(sock).startswith(b"HTTP/1.1 200 OK\r\n")
        silent = context.wrap_socket(connect(provider), server_hostname="127.0.0.1")
        silent.sendall(request())
        assert provider.wait_for_requests(2)
        in_handshake = connect(provider)
    silent.close()
    in_handshake.close()
    assert provider.connections_open == 0


def test_a_failed_handshake_is_the_end_of_its_connection_only(
    certificate: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with LoopbackProvider([OK], tls=certificate) as provider:
        with connect(provider) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionResetError):
                read_all(sock)
        assert provider.wait_for_close()
    assert capsys.readouterr().err == ""


def test_its_transport_takes_no_proxy_and_trusts_it(
    certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for tls in (None, certificate):
        with LoopbackProvider([OK], tls=tls) as provider, provider.transport() as transport:
            stream = transport.open(HttpRequest("POST", provider.url, [], b"Hi"), Call(clock=Clock()))
            assert (stream.read(100), provider.requests[0].body) == (b"ok", b"Hi")
            stream.close()


def test_the_module_knows_nothing_of_the_client() -> None:
    code = "import sys, membrane_lite.loopback; print([n for n in sys.modules if n.startswith('membrane_lite.')])"
    root = Path(__file__).parents[2]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True).stdout
    loaded = [name for name in ast.literal_eval(out) if not name.startswith("membrane_lite.loopback")]
    assert loaded == []


def _session(seed: int) -> list[bytes]:
    """Everything that is sent in a small session."""
    script = [Reply("Hello"), Reply(ToolCall("t", {"a": 1})), faults.error(Reply("Hello"), after=2), Reply("Hi")]
    with LoopbackProvider(script, seed=seed) as provider:
        stream = {"stream": True}
        asked = [request(), request(**stream), request(COMPLETIONS, **stream), request(COMPLETIONS)]
        return [exchange(provider, _closing(data)) for data in asked]


def _closing(data: bytes) -> bytes:
    return data.replace(b"Host: x", b"Host: x\r\nConnection: close")


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _descriptors() -> int:
    """0 where the system does not say."""
    return len(os.listdir(FDS)) if FDS.exists() else 0
