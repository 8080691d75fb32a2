"""The process that renders chat templates: `python -m ahalab.tasks.template_worker`.

It renders with the function of the installed transformers, so a text is the same to the byte as in
the caller's process. Memory and length are bounded here, time by the caller (`chat_template.py`).
"""

from __future__ import annotations

import json

from ahalab.killable import Message, limit_cpu, limit_memory, serve

MEMORY_BYTES = 1 << 30  # that a template may take, beside what the interpreter takes
MAX_ADDED = 1 << 20  # characters of a prompt beyond those of its messages


def _ready() -> Message:
    from transformers.utils.chat_template_utils import render_jinja_template  # noqa: F401

    limit_memory(MEMORY_BYTES)
    return {"ready": True}


def _reply(request: Message) -> Message:
    """Render conversations, all or none.

    A template is a program by the model's author, so whatever it raises is told as its fault.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    limit_cpu(request["seconds"])
    try:
        texts, generated = render_jinja_template(**request["arguments"])
        for text in texts:
            text.encode()  # half of a character is no text to tokenize
    except MemoryError:
        return {"bound": "more memory asked for"}
    except Exception as error:  # noqa: BLE001
        return {"refused": f"{error}" or type(error).__name__}
    for conversation, text in zip(request["arguments"]["conversations"], texts, strict=True):
        if len(text) > len(json.dumps(conversation)) + MAX_ADDED:
            return {"bound": f"one of {len(text)} characters"}
    return {"texts": texts, "generated": generated}


if __name__ == "__main__":
    serve(_ready, _reply)
