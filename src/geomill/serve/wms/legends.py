"""Legends as pictures: a box of colour and a text for each class."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from geomill.domain.assets.style import rgba

ROW, BOX, GAP, TEXT_SIZE = 20, 16, 6, 12
MOST_ROWS = 100
LONGEST_TEXT = 60


def legend_picture(entries: Sequence[tuple[str, str]]) -> bytes:
    """Return the legend as a PNG. `entries` are texts and colours."""
    font = ImageFont.load_default(TEXT_SIZE)
    rows = [(text[:LONGEST_TEXT], color) for text, color in entries[:MOST_ROWS]]
    if len(entries) > MOST_ROWS:
        rows.append((f"and {len(entries) - MOST_ROWS} more", "#ffffff00"))
    width = round(max((font.getlength(text) for text, _ in rows), default=0)) + BOX + 3 * GAP
    picture = Image.new("RGBA", (max(width, BOX + 2 * GAP), max(len(rows), 1) * ROW), (255, 255, 255, 255))
    pen = ImageDraw.Draw(picture, "RGBA")
    for number, (text, color) in enumerate(rows):
        top = number * ROW + (ROW - BOX) // 2
        frame = (120, 120, 120, 255) if rgba(color)[3] else None
        pen.rectangle((GAP, top, GAP + BOX, top + BOX), fill=rgba(color), outline=frame)
        pen.text((BOX + 2 * GAP, number * ROW + ROW // 2), text, fill=(0, 0, 0, 255), font=font, anchor="lm")
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
