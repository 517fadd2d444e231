"""What the client costs beside its floor: urllib3 and one json.loads per event, doing the same transfers in one run.

    python tests/bench/run.py            # all rows; each figure is the median of 7 fresh processes
    python tests/bench/run.py stream     # rows whose name holds the word

Figures are CPU seconds of the client process (user + system), so that neither the server nor a busy machine counts.
The server is a process of its own that writes bytes prepared beforehand. Nothing is asserted; ratios are printed.

    import          CPU of `import membrane_lite` beyond the bare interpreter, and of the first real names
    call            one small call on a kept connection
    stream          one 5,000-delta stream, per delta, in each wire format
    memory          growth of the peak while 50,000 deltas are streamed, beside the text itself
    xml             reading the tags of a 1 MB answer in 4-byte chunks, per character; its floor is one of 100 KB
    embed           10,000 texts, per text, beside six threads of urllib3 with one json.loads an answer and one
                    array("f") a vector; by the clock on the wall too, since both have six threads
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from array import array
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

RUNS = 7
CALLS = 400
DELTAS = 5_000
MEMORY_DELTAS = 50_000
PIECE = "word, "
XML_PIECE = 4
XML_SIZES = (100_000, 1_000_000)
EMBED_TEXTS = [f"text {number}" for number in range(96 * 104)]
EMBED_PATH = "/embed/model/cohere.embed-v4%3A0/invoke"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


# The server: prepared bytes, by path


def sse(events: list[tuple[str | None, Any]]) -> list[bytes]:
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        lines.append(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
    return lines


def anthropic_stream(deltas: int) -> list[bytes]:
    message = {"id": "m", "model": "claude-sonnet-4-5", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": PIECE}}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": deltas}}
    return sse(
        [
            ("message_start", {"type": "message_start", "message": message}),
            ("content_block_start", start),
            *[("content_block_delta", delta)] * deltas,
            ("content_block_stop", {"type": "content_block_stop", "index": 0}),
            ("message_delta", end),
            ("message_stop", {"type": "message_stop"}),
        ]
    )


def chat_stream(deltas: int) -> list[bytes]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "llama3.3"}
    delta = {**head, "choices": [{"index": 0, "delta": {"content": PIECE}, "finish_reason": None}]}
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return sse([*[(None, delta)] * deltas, (None, end), (None, "[DONE]")])


BEDROCK_PATH = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"


def bedrock_stream(deltas: int) -> list[bytes]:
    """Anthropic's events, each in a frame."""
    from membrane_lite.loopback.bedrock import chunk

    return [chunk(event.partition(b"data: ")[2].strip()) for event in anthropic_stream(deltas)]


GEMINI_PATH = "/models/claude-sonnet-4-5:streamGenerateContent?alt=sse"


def gemini_stream(deltas: int) -> list[bytes]:
    """Each chunk brings its counts, as the service does it."""
    content = {"parts": [{"text": PIECE}], "role": "model"}
    around = {"modelVersion": "gemini-2.5-flash", "responseId": "g"}
    delta = {"candidates": [{"content": content, "index": 0}], **around}
    end = {"candidates": [{"finishReason": "STOP", "index": 0}], **around}
    counts = [
        {"promptTokenCount": 9, "candidatesTokenCount": said, "totalTokenCount": 9 + said} for said in range(deltas)
    ]
    return sse([*((None, {**delta, "usageMetadata": usage}) for usage in counts), (None, end)])


def responses_stream(deltas: int) -> list[bytes]:
    at = {"item_id": "msg_1", "output_index": 0}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    part = {"type": "output_text", "text": PIECE * deltas, "annotations": []}
    whole, delta = {**item, "content": [part]}, {**at, "content_index": 0, "delta": PIECE, "logprobs": []}
    end = {"id": "r", "model": "gpt-4o", "status": "completed", "output": [whole], "usage": {"output_tokens": deltas}}
    events = [
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
        *[("response.output_text.delta", delta)] * deltas,
        ("response.output_item.done", {"output_index": 0, "item": whole}),
        ("response.completed", {"response": end}),
    ]
    numbered = enumerate(events)
    return sse([(name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in numbered])


def answers() -> dict[str, bytes]:
    """Whole HTTP answers by path. Streams are chunked, one HTTP chunk per event, as providers send them."""
    document = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hello there."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }
    body = json.dumps(document).encode()
    small = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    streams = {
        f"/{deltas}{path}": make(deltas)
        for deltas in (DELTAS, MEMORY_DELTAS)
        for path, make in (
            ("/v1/messages", anthropic_stream),
            ("/chat/completions", chat_stream),
            (GEMINI_PATH, gemini_stream),
            (BEDROCK_PATH, bedrock_stream),
            ("/responses", responses_stream),
        )
    }
    return {
        "/call/v1/messages": small,
        EMBED_PATH: embed_answer(),
        **{path: chunked(events) for path, events in streams.items()},
    }


def embed_answer() -> bytes:
    """96 vectors, with numbers as long as Cohere's."""
    dice = random.Random(1)
    vectors = [[round(dice.gauss(0, 0.03), 9) for _ in range(1024)] for _ in range(96)]
    answer = {"id": "e", "response_type": "embeddings_by_type", "embeddings": {"float": vectors}}
    body = json.dumps(answer, separators=(",", ":")).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def chunked(events: list[bytes]) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


def serve(listener: socket.socket) -> None:
    prepared = answers()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection, prepared), daemon=True).start()


def answer(connection: socket.socket, prepared: dict[str, bytes]) -> None:
    data = b""
    # A client process that ends resets what it has open.
    with connection, contextlib.suppress(ConnectionResetError):
        while True:
            while b"\r\n\r\n" not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, rest = data.partition(b"\r\n\r\n")
            fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
            length = int(fields[b"content-length"])
            while len(rest) < length:
                rest += connection.recv(65536)
            data = rest[length:]
            connection.sendall(prepared[head.split(b" ")[1].decode()])


# The clients: each runs in a process of its own and prints one number


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def wall(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


TIMED = {"CPU": cpu, "wall": wall}


REQUEST = {
    "messages": [{"participant": "User", "content": "Hi"}],
    "config": {"model": "claude-sonnet-4-5", "max_tokens": 64},
}
BODY = {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}


HEADERS = {  # those the product sends, to make the same request of it
    "user-agent": "bench",
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "gzip",
    "anthropic-version": "2023-06-01",
    "x-api-key": "bench-key",
}


def floor_pool() -> Any:
    import urllib3

    return urllib3.PoolManager()


def floor_call(port: int) -> float:
    pool = floor_pool()
    url = f"http://127.0.0.1:{port}/call/v1/messages"

    def call() -> None:
        response = pool.request("POST", url, body=json.dumps(BODY).encode(), headers=HEADERS)
        assert json.loads(response.data)["content"]

    call()
    return cpu(lambda: [call() for _ in range(CALLS)]) / CALLS


def floor_events(port: int, path: str) -> Iterator[Any]:
    body, url = json.dumps(BODY).encode(), f"http://127.0.0.1:{port}{path}"
    response = floor_pool().request("POST", url, body=body, headers=HEADERS, preload_content=False)
    if path.endswith(BEDROCK_PATH):
        yield from floor_frames(response)
        return
    left = b""
    for chunk in response.stream(65536):
        *blocks, left = (left + chunk).split(b"\n\n")
        for block in blocks:
            data = block[block.index(b"data: ") + 6 :]
            if data != b"[DONE]":
                yield json.loads(data)


def floor_frames(response: Any) -> Iterator[Any]:
    """Cut by their lengths, checksums and headers not looked at; what they hold is JSON in base64 in JSON."""
    left = b""
    for chunk in response.stream(65536):
        left += chunk
        while len(left) >= 12 and len(left) >= int.from_bytes(left[:4], "big"):
            total, headers = int.from_bytes(left[:4], "big"), int.from_bytes(left[4:8], "big")
            frame, left = left[12 + headers : total - 4], left[total:]
            yield json.loads(b64decode(json.loads(frame)["bytes"]))


def floor_stream(port: int, path: str) -> float:
    def read() -> None:
        for _ in floor_events(port, path):
            pass

    read()  # imports, first connection
    return cpu(read) / DELTAS


def product(port: int, path: str) -> Any:
    from membrane_lite import (
        AnthropicAdapter,
        BedrockAdapter,
        GeminiAdapter,
        Membrane,
        OpenAICompatibleAdapter,
        OpenAIResponsesAPIAdapter,
        Transport,
    )

    url, transport = f"http://127.0.0.1:{port}/{path.split('/')[1]}", Transport(proxy=None)
    if path.endswith("/messages"):
        return Membrane(AnthropicAdapter(api_key="bench-key", base_url=url, transport=transport))
    if path.endswith(BEDROCK_PATH):
        return Membrane(BedrockAdapter(api_key="bench-key", region="us-west-2", base_url=url, transport=transport))
    if path.endswith(GEMINI_PATH):
        return Membrane(GeminiAdapter(api_key="bench-key", base_url=url, transport=transport))
    if path.endswith("/responses"):
        return Membrane(OpenAIResponsesAPIAdapter(api_key="bench-key", base_url=url, transport=transport))
    return Membrane(OpenAICompatibleAdapter(base_url=url, transport=transport))


def product_call(port: int) -> float:
    membrane = product(port, "/call/v1/messages")
    membrane.complete(REQUEST)

    def calls() -> None:
        for _ in range(CALLS):
            assert membrane.complete(REQUEST).text

    return cpu(calls) / CALLS


def product_stream(port: int, path: str) -> float:
    membrane = product(port, path)
    seen: list[str] = []

    def read() -> None:
        response = membrane.stream(REQUEST, on_chunk=lambda text, meta: seen.append(text))
        assert response.text == PIECE * DELTAS

    read()
    return cpu(read) / DELTAS


def peak_kb() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def product_memory(port: int, path: str) -> float:
    """Growth in KB while a long stream is read, beyond its text, after a short one has warmed everything up."""
    warm = path.replace(str(MEMORY_DELTAS), str(DELTAS))
    product(port, warm).stream(REQUEST)
    membrane, before = product(port, path), peak_kb()
    response = membrane.stream(REQUEST, on_chunk=lambda text, meta: None)
    grown = peak_kb() - before
    assert response.text == PIECE * MEMORY_DELTAS
    return grown - len(response.text) / 1024


def floor_memory(port: int, path: str) -> float:
    for _ in floor_events(port, path.replace(str(MEMORY_DELTAS), str(DELTAS))):
        pass
    before = peak_kb()
    for _ in floor_events(port, path):
        pass
    return float(peak_kb() - before)


def xml_answer(size: int) -> list[str]:
    """Thinking and text by turns, with markup that is none of the transcript's; a long call ends it."""
    turn = f"<thinking>{PIECE * 20}</thinking>\n\n{PIECE * 20}\n<b>{PIECE * 20}</b>\n\n"
    call = f'<function_calls>\n<invoke name="look">\n<parameter name="at">{PIECE * (size // 60)}'
    text = (turn * (size // len(turn) + 1))[: size - len(call)] + call
    return [text[at : at + XML_PIECE] for at in range(0, size, XML_PIECE)]


def xml_read(chunks: list[str]) -> None:
    """One answer on its whole way: stop sequences, tags, events, and the blocks at the end."""
    from membrane_lite import AnthropicXmlFormatter
    from membrane_lite.formatters.base import BuildSettings
    from membrane_lite.values.deltas import BlockEnd, Finished, TextDelta
    from membrane_lite.values.reader import read_request

    asked = {"messages": [{"participant": "Ann", "content": "Hi"}], "config": {"model": "m"}, "tool_mode": "xml"}
    assembler = AnthropicXmlFormatter().conversation(read_request(asked), BuildSettings()).assembler()
    for chunk in chunks:
        assembler.add(TextDelta(0, chunk))
    for delta in (BlockEnd(0), Finished("max_tokens", "max_tokens")):
        assembler.add(delta)
    assembler.end()
    assert assembler.content()[-1].type == "tool_use"


def xml_cost(size: int) -> float:
    """Per character, over as many answers as make up the longest one."""
    chunks, times = xml_answer(size), max(XML_SIZES) // size
    xml_read(xml_answer(1000))  # imports
    return cpu(lambda: [xml_read(chunks) for _ in range(times)]) / (size * times)


def floor_embed(port: int, timed: str) -> float:
    import urllib3

    pool = urllib3.PoolManager(maxsize=6)
    url = f"http://127.0.0.1:{port}{EMBED_PATH}"

    def one(texts: list[str]) -> list[array[float]]:
        fields = {"texts": texts, "input_type": "search_document", "output_dimension": 1024}
        response = pool.request("POST", url, body=json.dumps(fields).encode(), headers=HEADERS)
        return [array("f", row) for row in json.loads(response.data)["embeddings"]["float"]]

    def all_of(texts: list[str]) -> None:
        with ThreadPoolExecutor(6) as threads:
            batches = [texts[start : start + 96] for start in range(0, len(texts), 96)]
            assert sum(map(len, threads.map(one, batches))) == len(texts)

    all_of(EMBED_TEXTS[:96])
    return TIMED[timed](lambda: all_of(EMBED_TEXTS)) / len(EMBED_TEXTS)


def product_embed(port: int, timed: str) -> float:
    from membrane_lite import Transport
    from membrane_lite.lanes import make_bedrock_client, make_embeddings

    os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = f"http://127.0.0.1:{port}/embed"
    os.environ["AWS_BEARER_TOKEN_BEDROCK"] = "bench-key"
    service = make_embeddings(make_bedrock_client("us-east-1", transport=Transport(proxy=None)))

    def all_of(texts: list[str]) -> None:
        assert len(service.embed(texts)) == len(texts)

    all_of(EMBED_TEXTS[:96])
    return TIMED[timed](lambda: all_of(EMBED_TEXTS)) / len(EMBED_TEXTS)


def import_cost(statement: str) -> float:
    return cpu(lambda: exec(statement))


# The rows


def measured(*arguments: str) -> float:
    """The median of RUNS fresh processes."""
    command = [sys.executable, "-X", "utf8", __file__, "--client", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs = [subprocess.run(command, env=env, capture_output=True, text=True, check=True) for _ in range(RUNS)]
    return statistics.median(float(run.stdout) for run in runs)


def row(name: str, unit: str, scale: float, floor: float, own: float) -> None:
    ratio = f"{own / floor:8.2f}" if floor > 0 else "        "
    print(f"{name:<24}{floor * scale:>12.2f}{own * scale:>12.2f}  {unit:<14}{ratio}", flush=True)


IMPORTS = {
    "import": "import membrane_lite",
    "import and first names": "from membrane_lite import Membrane, AnthropicAdapter",
}


def rows(port: str) -> dict[str, Callable[[], None]]:
    streams = {
        "anthropic": f"/{DELTAS}/v1/messages",
        "chat": f"/{DELTAS}/chat/completions",
        "gemini": f"/{DELTAS}{GEMINI_PATH}",
        "bedrock": f"/{DELTAS}{BEDROCK_PATH}",
        "responses": f"/{DELTAS}/responses",
    }
    long = {name: path.replace(str(DELTAS), str(MEMORY_DELTAS)) for name, path in streams.items()}
    return {
        **{
            name: lambda name=name, code=code: row(  # type: ignore[misc]
                name, "ms CPU", 1e3, measured("import", "import urllib3"), measured("import", code)
            )
            for name, code in IMPORTS.items()
        },
        "call": lambda: row("call", "us CPU", 1e6, measured("floor_call", port), measured("product_call", port)),
        **{
            f"embed {timed}": lambda timed=timed: row(  # type: ignore[misc]
                f"embed {timed}",
                f"us {timed}/text",
                1e6,
                measured("floor_embed", port, timed),
                measured("product_embed", port, timed),
            )
            for timed in TIMED
        },
        **{
            f"stream {name}": lambda name=name, path=path: row(  # type: ignore[misc]
                f"stream {name}",
                "us CPU/delta",
                1e6,
                measured("floor_stream", port, path),
                measured("product_stream", port, path),
            )
            for name, path in streams.items()
        },
        **{
            f"memory {name}": lambda name=name, path=path: row(  # type: ignore[misc]
                f"memory {name}",
                "KB over text",
                1,
                measured("floor_memory", port, path),
                measured("product_memory", port, path),
            )
            for name, path in long.items()
        },
        "xml": lambda: row("xml", "ns CPU/char", 1e9, *(measured("xml", str(size)) for size in XML_SIZES)),
    }


def client(name: str, *arguments: str) -> float:
    if name == "import":
        return import_cost(arguments[0])
    if name == "xml":
        return xml_cost(int(arguments[0]))
    port, *path = arguments
    return {
        "floor_call": floor_call,
        "product_call": product_call,
        "floor_stream": floor_stream,
        "product_stream": product_stream,
        "floor_embed": floor_embed,
        "product_embed": product_embed,
        "floor_memory": floor_memory,
        "product_memory": product_memory,
    }[name](int(port), *path)  # type: ignore[operator]


def main(words: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        server = subprocess.Popen(
            [sys.executable, __file__, "--server", str(listener.fileno())],
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
        )
        try:
            assert server.stdout is not None and server.stdout.readline() == b"ready\n"
            print(f"{'':<24}{'floor':>12}{'product':>12}  {'unit':<14}{'ratio':>8}")
            for name, run in rows(str(listener.getsockname()[1])).items():
                if not words or any(word in name for word in words):
                    run()
        finally:
            server.kill()
            server.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--server"]:
        serve(socket.socket(fileno=int(sys.argv[2])))
    elif sys.argv[1:2] == ["--client"]:
        print(client(*sys.argv[2:]))
    else:
        main(sys.argv[1:])
