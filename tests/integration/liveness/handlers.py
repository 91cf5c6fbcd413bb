"""Handlers that write what they do to a file, so that the tests need not believe the database."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from geomill.sdk import HandlerContext, register_handler

MORNING = "morning"
"""A file beside the ledger that ends all naps."""


class NapParams(BaseModel):
    ledger: Path
    key: str
    seconds: Annotated[float, Field(ge=0)] = 1.0


def note(params: NapParams, word: str) -> None:
    """One line: `word key time pid`. Short lines that are appended do not mix."""
    with params.ledger.open("a") as ledger:
        ledger.write(f"{word} {params.key} {time.monotonic():.3f} {os.getpid()}\n")


def is_over(params: NapParams, ends: float) -> bool:
    return time.monotonic() >= ends or params.ledger.with_name(MORNING).exists()


@register_handler("liveness.nap", timeout_seconds=600, params=NapParams)
async def nap(ctx: HandlerContext[NapParams]) -> dict[str, str]:
    """In the worker's event loop."""
    params = ctx.params
    note(params, "begun")
    ends = time.monotonic() + params.seconds
    while not is_over(params, ends):
        await asyncio.sleep(0.1)
        note(params, "lives")
    note(params, "ended")
    return {"key": params.key}


@register_handler("liveness.nap_aside", timeout_seconds=600, params=NapParams)
def nap_aside(ctx: HandlerContext[NapParams]) -> dict[str, str]:
    """In a child process."""
    params = ctx.params
    note(params, "begun")
    ends = time.monotonic() + params.seconds
    while not is_over(params, ends):
        time.sleep(0.1)
        note(params, "lives")
    note(params, "ended")
    return {"key": params.key}


@register_handler("liveness.deadly", timeout_seconds=600, params=NapParams)
async def deadly(ctx: HandlerContext[NapParams]) -> dict[str, str]:
    """Takes its worker down."""
    note(ctx.params, "begun")
    await asyncio.sleep(ctx.params.seconds)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
