"""Images, sounds, films and files in recorded content: their kind, and their size by what is recorded of them.

Providers and frameworks write the same part in many forms:

    {"type": "image", "source": {"type": "base64", "media_type", "data"}} · {"type": "document", "source"}
    {"type": "image_url", "image_url": {"url", "detail"}} · {"type": "input_image", "image_url", "detail"}
    {"type": "input_audio", "input_audio": {"data", "format"}} · {"type": "file", "file": {"file_data", "filename"}}
    {"inlineData": {"mimeType", "data"}} · {"fileData": {"mimeType", "fileUri"}, "mediaResolution": {"level"}}
    {"image": {"format", "source": {"bytes"}}} · {"type": "blob", "modality", "mime_type", "content"}

The kind is that of the type, or of the MIME type where the type names none. Of an image that is recorded as base64 the
header alone is decoded, for its size in pixels; nothing keeps the bytes.
"""

from __future__ import annotations

import binascii
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, get_args

from .model import Media, MediaKind

_KINDS: dict[str, MediaKind] = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), "audio"),
    **dict.fromkeys(("video", "input_video", "video_url"), "video"),
    **dict.fromkeys(("file", "input_file", "document", "blob", "uri", "media"), "file"),
}
# Parts without a type are told by the key that holds their content.
_HOLDERS = ("image", "audio", "video", "document", "inlineData", "inline_data", "fileData", "file_data")
_MIME = ("media_type", "mediaType", "mime_type", "mimeType", "mime")
_DATA = ("data", "url", "image_url", "bytes", "file_data", "image", "content")
_DETAIL = ("detail", "mediaResolution", "media_resolution", "level", "resolution")
_SECONDS = ("seconds", "duration_seconds", "duration")
_PAGES = ("pages", "page_count", "num_pages")
_DEEPEST = 3
# Characters of base64 that are decoded: a JPEG has its size behind its metadata and a thumbnail.
_HEAD = 1 << 19


def media_of(part: Mapping[str, Any]) -> Media | None:
    """Return a part of a message's content as media, or None if it is something else.

    What a file holds as plain text is read as text: such a part is none.
    """
    kind = _kind(part)
    is_text = kind not in (None, "image") and (isinstance(part.get("text"), str) or document_text(part) is not None)
    return None if kind is None or is_text else sized(kind, part)


def document_text(part: Mapping[str, Any]) -> str | None:
    """Return what Anthropic's documents of plain text and search results show, with their titles; None for others."""
    kind, source = part.get("type"), part.get("source")
    held = part.get("content")
    if kind == "document" and isinstance(source, dict) and source.get("type") in ("text", "content"):
        held = source.get("data", source.get("content"))
    elif kind != "search_result":
        return None
    inner = [one.get("text") if isinstance(one, dict) else one for one in (held if isinstance(held, list) else [held])]
    shown = (source, part.get("title"), part.get("context"), *inner)
    return "\n".join(text for text in shown if isinstance(text, str) and text)


def sized(kind: MediaKind, part: Mapping[str, Any]) -> Media:
    """Return media of a kind, with the sizes that its part gives or, for an image, that its first bytes do."""
    fields = _fields(part, _DEEPEST)
    data = next((fields[key] for key in _DATA if isinstance(fields.get(key), str)), "")
    width, height = _number(fields, ("width",)), _number(fields, ("height",))
    if kind == "image" and (width is None or height is None):
        data = data[data.find(",") + 1 :] if data.startswith("data:") else data
        with suppress(ValueError):  # no base64
            # Cut after a multiple of four characters. Padding that is missing is put there; more than is due does no
            # harm.
            head = binascii.a2b_base64(data[:_HEAD].translate(_URL_SAFE) + "==")
            width, height = image_size(head) or (None, None)
    return Media(
        kind,
        None if width is None else round(width),
        None if height is None else round(height),
        _number(fields, _SECONDS),
        None if (pages := _number(fields, _PAGES)) is None else round(pages),
        next((fields[key] for key in _DETAIL if isinstance(fields.get(key), str)), ""),
    )


def media_counts(kinds: Iterable[MediaKind]) -> str:
    """Return how many there are of each kind: 12 images, 1 file."""
    counts = Counter(kinds)
    nouns = ((kind, f"{kind} clip" if kind == "audio" else kind) for kind in get_args(MediaKind))
    return ", ".join(f"{counts[kind]:,} {noun}{'s' * (counts[kind] > 1)}" for kind, noun in nouns if counts[kind])


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels by the first bytes of a PNG, JPEG, GIF or WebP; None if they do not say."""
    if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR" and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
    elif head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8 " and len(head) >= 30:  # RFC 9649
        width, height = (side & 0x3FFF for side in struct.unpack("<HH", head[26:30]))  # the rest is scaling
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8L" and len(head) >= 30:
        # Behind a byte of signature: width less one in 14 bits, then height less one.
        bits = int.from_bytes(head[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) >= 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
    elif head[:2] == b"\xff\xd8":
        width, height = _jpeg_size(head)
    else:
        return None
    return (width, height) if width and height else None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Return the size that the first start of frame of a JPEG gives; 0 if it is not among the bytes."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # tables, reserved, arithmetic coding
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        else:
            # The length of a segment counts its own two bytes, not those of the marker.
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return 0, 0


def _kind(part: Mapping[str, Any]) -> MediaKind | None:
    declared = part.get("type")
    if isinstance(declared, str) and declared:
        kind = _KINDS.get(declared)
    elif "modality" in part:
        kind = "file"
    else:
        holder = next((key for key in _HOLDERS if isinstance(part.get(key), dict)), None)
        kind = None if holder is None else _KINDS.get(holder, "file")
    if kind != "file":
        return kind
    fields = _fields(part, _DEEPEST)
    mime = next((fields[key] for key in _MIME if isinstance(fields.get(key), str)), "")
    named = part.get("modality") or mime.partition("/")[0]
    return next((other for other in get_args(MediaKind) if other == named), "file")


def _fields(part: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return the fields of a part and of the objects within it; of several with one name the outermost."""
    fields: dict[str, Any] = {}
    for value in part.values():
        if isinstance(value, dict) and depth:
            fields = {**_fields(value, depth - 1), **fields}
    return {**fields, **{key: value for key, value in part.items() if not isinstance(value, dict)}}


def _number(fields: Mapping[str, Any], keys: Iterable[str]) -> float | None:
    numbers = [fields[key] for key in keys if isinstance(fields.get(key), (int, float))]
    return next((number for number in numbers if isfinite(number) and number > 0), None)


_URL_SAFE = str.maketrans("-_", "+/")
