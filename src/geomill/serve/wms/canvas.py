"""Pictures as arrays of red, green, blue and opacity, stacked and encoded."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

OPTIONS: dict[str, dict[str, Any]] = {"PNG": {"compress_level": 3}, "JPEG": {"quality": 90}}
Canvas = NDArray[np.uint8]
"""Four bands, each with height and width."""


def blank(width: int, height: int) -> Canvas:
    return np.zeros((4, height, width), dtype=np.uint8)


def stacked(layers: Iterable[Canvas], width: int, height: int) -> Canvas:
    """Return the layers on top of each other, the first one lowest."""
    result = blank(width, height)
    for layer in layers:
        result = layer if not result[3].any() else _over(layer, result)
    return result


def _over(top: Canvas, below: Canvas) -> Canvas:
    upper, lower = top[3] / 255.0, below[3] / 255.0
    opacity = upper + lower * (1 - upper)
    shares = np.divide(upper, opacity, out=np.zeros_like(opacity), where=opacity > 0)
    colors = top[:3] * shares + below[:3] * (1 - shares)
    mixed: Canvas = np.rint(np.concatenate([colors, opacity[np.newaxis] * 255])).astype(np.uint8)
    return mixed


def encoded(canvas: Canvas, driver: str, background: tuple[int, int, int], *, transparent: bool) -> bytes:
    """Return the picture as a PNG or JPEG. JPEG is never transparent."""
    if driver == "JPEG" or not transparent:
        paper = np.empty_like(canvas)
        paper[:3], paper[3] = np.array(background, dtype=np.uint8).reshape(3, 1, 1), 255
        canvas = _over(canvas, paper)[:3]
    file = io.BytesIO()
    Image.fromarray(np.moveaxis(canvas, 0, -1).copy()).save(file, driver, **OPTIONS[driver])
    return file.getvalue()


def decoded(picture: bytes) -> Canvas:
    """Return a picture of TiTiler."""
    with Image.open(io.BytesIO(picture)) as source:
        pixels = np.asarray(source.convert("RGBA"), dtype=np.uint8)
    return np.moveaxis(pixels, -1, 0)
