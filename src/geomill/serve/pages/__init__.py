"""HTML pages, and XML documents made from templates. All values are escaped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, FunctionLoader, select_autoescape
from pydantic import BaseModel
from starlette.templating import Jinja2Templates

_FOLDER = Path(__file__).parent


def _any_page(name: str) -> str | None:
    """Return one page for all documents. The libraries' own pages load scripts from other hosts."""
    return (_FOLDER / "document.html").read_text(encoding="utf-8") if name.endswith(".html") else None


def _shown(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """Return a document as JSON values."""
    return value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value


ENVIRONMENT = Environment(
    autoescape=select_autoescape(["html", "xml"]),
    loader=ChoiceLoader([FileSystemLoader(_FOLDER), FunctionLoader(_any_page)]),
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {"shown": _shown, "plain": _plain}
TEMPLATES = Jinja2Templates(env=ENVIRONMENT)
