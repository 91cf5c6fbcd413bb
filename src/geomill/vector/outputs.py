"""Where files of layers lie."""

from __future__ import annotations

OUTPUT_CONTAINER = "vectors"
