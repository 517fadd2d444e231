"""OpenAI's Images API: a picture from words, then the same picture edited, with previews while it is made.

python examples/openai_images.py                       against loopback
OPENAI_API_KEY=... python examples/openai_images.py    for real (it costs a few cents)
"""

import os

from membrane_lite import GeneratedImage, Membrane, OpenAIImagesAdapter
from membrane_lite.loopback import Image, LoopbackProvider, Reply, openai_images
from membrane_lite.loopback.format import Asked

SETTINGS = {"size": "1024x1024", "quality": "low"}
GENERATE = {
    "messages": [{"participant": "User", "content": "A red square"}],
    "config": {"model": "gpt-image-1"},
    "provider_params": SETTINGS,
}
ANSWER = Reply("A square, red", Image())


def edit(image: GeneratedImage) -> dict:
    """Images in the conversation are edited: the request becomes a form, each image a file in it."""
    source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "Make it blue"}]
    return {
        "messages": [{"participant": "User", "content": content}],
        "config": {"model": "gpt-image-1"},
        "provider_params": {**SETTINGS, "partial_images": 2},
    }


def show(adapter: OpenAIImagesAdapter) -> None:
    request = adapter.render(GENERATE)
    print("--- the request:", request.method, request.url, request.body.decode(), sep="\n")
    response = Membrane(adapter).complete(GENERATE)
    image = response.content[-1]
    print("--- the result:", response.text, image.mime_type, len(image.data), "characters of base64", response.usage)

    request = adapter.render(edit(image), stream=True)
    print("--- the edit:", request.url, dict(request.headers)["Content-Type"], request.body[:300], sep="\n")
    response = Membrane(adapter).stream(
        edit(image),
        on_content_block_update=lambda index, block: print(index, block.type, getattr(block, "is_preview", "")),
    )
    print("--- the result:", [block.type for block in response.content], response.stop_reason)


with LoopbackProvider([ANSWER, ANSWER]) as provider, provider.transport() as transport:
    asked = Asked({"partial_images": 1, "image[]": []})
    print("--- the events of an edit", b"".join(openai_images.events(ANSWER, asked)).decode(), sep="\n")
    show(OpenAIImagesAdapter(api_key="any", base_url=provider.url + "/v1", transport=transport))

if os.environ.get("OPENAI_API_KEY"):
    with OpenAIImagesAdapter() as real:
        show(real)
