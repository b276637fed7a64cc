import struct
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.media import image_size, media_counts, media_of
from ctxbench.scenarios.model import Media

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
EXIF = b"\xff\xe1" + struct.pack(">H", 12) + b"\xff\xc0" * 5
JPEG = b"\xff\xd8" + EXIF + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03\0"
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14) + b"\0" * 5
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
DATA = b64encode(PNG).decode()
SIZED = Media("image", 640, 480)


@pytest.mark.parametrize("head", [PNG, GIF, JPEG, LOSSY, LOSSLESS, EXTENDED])
def test_the_header_of_an_image_has_its_size(head: bytes) -> None:
    """Each format says 640 by 480; a JPEG's start of frame is not looked for within its metadata."""
    assert image_size(head) == (640, 480)


@given(head=st.sampled_from([b"", PNG[:8], GIF[:6], b"\xff\xd8", LOSSY[:12]]), rest=st.binary(max_size=40))
def test_damaged_headers_raise_nothing(head: bytes, rest: bytes) -> None:
    """Whatever follows a signature, the size is positive or not known."""
    size = image_size(head + rest)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}, SIZED),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, Media("image")),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"}},
            Media("image", 640, 480, detail="low"),
        ),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"}, SIZED),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, Media("audio")),
        ({"type": "file", "file": {"file_data": "", "filename": "a.pdf"}}, Media("file")),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, Media("file")),
        ({"inlineData": {"mimeType": "image/png", "data": DATA}}, SIZED),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "a"}, "duration": 9.5}, Media("video", seconds=9.5)),
        ({"image": {"format": "png", "source": {"bytes": DATA}}}, SIZED),
        ({"type": "blob", "modality": "image", "mime_type": "image/png", "content": DATA}, SIZED),
        ({"type": "document", "text": "a"}, None),
        ({"type": "text", "text": "a"}, None),
    ],
)
def test_parts_of_each_form_are_media(part: dict[str, object], media: Media | None) -> None:
    """The kind is told by the type or the MIME type; what holds plain text is none."""
    assert media_of(part) == media


def test_media_are_counted_by_kind() -> None:
    """Kinds that are not there are not named."""
    assert media_counts(["image", "file", "image", "audio"]) == "2 images, 1 audio clip, 1 file"
