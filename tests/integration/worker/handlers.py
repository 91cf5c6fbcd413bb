"""Handlers that misbehave in every way that a worker must survive."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psycopg

from geomill.sdk import HandlerContext, HandlerError, ObjectName, Zone, register_handler

Context = HandlerContext[dict[str, Any]]


@register_handler("pid")
def pid(ctx: Context) -> dict[str, Any]:
    return {"pid": os.getpid(), "parent": os.getppid(), "checkpoint": ctx.checkpoint and ctx.checkpoint.phase}


@register_handler("inline_pid")
async def inline_pid(ctx: Context) -> dict[str, Any]:
    return {"pid": os.getpid()}


@register_handler("call")
def call(ctx: Context) -> dict[str, Any]:
    """How a connection to this machine ends, and whether the database answers."""
    try:
        socket.create_connection(("127.0.0.1", ctx.params["port"]), timeout=5).close()
    except OSError as error:
        ended = type(error).__name__ + " " + str(error)
    else:
        ended = "connected"
    with psycopg.connect(ctx.database.url) as conn:
        answer = conn.execute("SELECT 1").fetchone()
    return {"ended": ended, "answer": answer[0] if answer else None, "uid": os.getuid()}


@register_handler("look_around")
def look_around(ctx: Context) -> dict[str, Any]:
    """Return the variables, the rights of new files and the folders that Python imports from."""
    with tempfile.NamedTemporaryFile() as file:
        place = Path(file.name).parent
        plain = place / "plain"
        plain.write_text("x", encoding="ascii")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (place, plain)]
        plain.unlink()
    return {"environ": dict(os.environ), "place": str(place), "modes": modes, "path": sys.path, "cwd": str(Path.cwd())}


@register_handler("impatient")
def impatient(ctx: Context) -> dict[str, Any]:
    with ctx.time_limit(60, "this is quick"):
        pass
    with ctx.time_limit(0.3, "the file takes too long"):
        time.sleep(60)
    return {}


@register_handler("impatient_inline")
async def impatient_inline(ctx: Context) -> dict[str, Any]:
    with ctx.time_limit(0.3, "the file takes too long"):
        await asyncio.sleep(60)
    return {}


@register_handler("patient")
def patient(ctx: Context) -> dict[str, Any]:
    """End a time limit in time and work on after it."""
    with ctx.time_limit(0.3, "this is quick"):
        pass
    time.sleep(1)
    return {}


@register_handler("isolated_async", isolated=True)
async def isolated_async(ctx: Context) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"pid": os.getpid()}


@register_handler("own_loop")
def own_loop(ctx: Context) -> dict[str, Any]:
    return {"slept": asyncio.run(asyncio.sleep(0, result=True))}


@register_handler("die")
def die(ctx: Context) -> None:
    ctx.logger.info("about to go")
    print("printed before the end", flush=True)
    how = ctx.params["how"]
    if how == "exit":
        os._exit(7)
    if how == "leave":
        sys.exit(3)
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(30)


@register_handler("die_once")
def die_once(ctx: Context) -> dict[str, Any]:
    """Saves a checkpoint and is gone; the next attempt goes on from there."""
    if ctx.checkpoint:
        return {"resumed_from": ctx.checkpoint.phase, "data": dict(ctx.checkpoint.data)}
    ctx.save_checkpoint("half", {"done": 5})
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@register_handler("eat")
def eat(ctx: Context) -> dict[str, Any]:
    eaten = []
    for _ in range(ctx.params["megabytes"] // 10):
        eaten.append(bytearray(os.urandom(1024) * 10 * 1024))
        time.sleep(0.005)
    return {"eaten": len(eaten)}


@register_handler("gulp")
def gulp(ctx: Context) -> dict[str, Any]:
    """Reserves more at once than the limit allows."""
    return {"eaten": len(bytearray(ctx.params["megabytes"] * 1024 * 1024))}


@register_handler("reserve")
def reserve(ctx: Context) -> dict[str, Any]:
    """Address space that is never touched, as numpy and GDAL take it."""
    import mmap

    with mmap.mmap(-1, ctx.params["megabytes"] * 1024 * 1024, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as region:
        time.sleep(0.5)
        return {"reserved": len(region)}


@register_handler("hang")
def hang(ctx: Context) -> None:
    """Deaf: it never looks at `cancelled`. With a child of its own."""
    if place := ctx.params.get("place"):
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        Path(place).write_text(f"{os.getpid()} {helper.pid}")
    ctx.progress(0.5, message="half way")
    time.sleep(60)


@register_handler("hang_inline")
async def hang_inline(ctx: Context) -> None:
    ctx.progress(0.5, message="half way")
    await asyncio.sleep(60)


@register_handler("stubborn")
async def stubborn(ctx: Context) -> None:
    """Swallows its cancellation."""
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            ctx.logger.info("no")


@register_handler("polite")
def polite(ctx: Context) -> dict[str, Any]:
    """Check for a cancellation after each step, and save a checkpoint then."""
    done = ctx.checkpoint.data["done"] if ctx.checkpoint else 0
    while done < ctx.params["steps"]:
        time.sleep(0.05)
        done += 1
        ctx.progress(done, ctx.params["steps"], f"step {done}")
        if ctx.cancelled:
            ctx.save_checkpoint("interrupted", {"done": done})
            raise HandlerError("stopping", code="cancelled")
    return {"done": done, "resumed": ctx.checkpoint is not None}


@register_handler("finish_when_asked")
def finish_when_asked(ctx: Context) -> dict[str, Any]:
    while not ctx.cancelled:
        time.sleep(0.02)
    return {"finished": True}


@register_handler("nap")
async def nap(ctx: Context) -> dict[str, Any]:
    """Long, but alive."""
    until = time.monotonic() + ctx.params["seconds"]
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        ctx.progress(0.5)
    return {}


@register_handler("talk")
def talk(ctx: Context) -> dict[str, Any]:
    _talk(ctx)
    return {}


@register_handler("talk_inline")
async def talk_inline(ctx: Context) -> dict[str, Any]:
    _talk(ctx)
    return {}


def _talk(ctx: Context) -> None:
    ctx.logger.debug("not this")
    for number in range(ctx.params["lines"]):
        ctx.logger.info("line %d", number)
    ctx.logger.warning("%s\x00\ud800", "w" * ctx.params.get("width", 1))


@register_handler("fast_talker")
def fast_talker(ctx: Context) -> dict[str, Any]:
    for number in range(20_000):
        ctx.progress(number, 20_000, f"step {number}")
    return {}


@register_handler("raise_inside")
def raise_inside(ctx: Context) -> None:
    raise KeyError("the place where it broke")


@register_handler("poison")
async def poison(ctx: Context) -> dict[str, Any]:
    """Returns what a test makes unstorable."""
    return {"poison": True}


@register_handler("saves_inline")
async def saves_inline(ctx: Context) -> dict[str, Any]:
    ctx.save_checkpoint("one", {})
    await asyncio.sleep(0.1)
    return {}


@register_handler("save_twice")
async def save_twice(ctx: Context) -> dict[str, Any]:
    ctx.save_checkpoint("first", {})
    await asyncio.sleep(0.1)
    ctx.save_checkpoint("second", {})
    return {}


@register_handler("cancel_yourself")
async def cancel_yourself(ctx: Context) -> None:
    raise asyncio.CancelledError


TARGET = ObjectName(Zone.SILVER, "results", "from-a-handler.txt")


@register_handler("stores")
def stores(ctx: Context) -> dict[str, Any]:
    return {"sha256": ctx.storage.sync.put_bytes(TARGET, ctx.params["text"].encode()).sha256, "pid": os.getpid()}


@register_handler("stores_async")
async def stores_async(ctx: Context) -> dict[str, Any]:
    return {"text": (await ctx.storage.read(TARGET)).decode(), "pid": os.getpid()}


@register_handler("misses")
def misses(ctx: Context) -> dict[str, Any]:
    return {"size": ctx.storage.sync.stat(TARGET).size}


@register_handler("prints")
def prints(ctx: Context) -> dict[str, Any]:
    print("begun")
    thread = threading.Thread(target=print, args=("from a thread",))
    thread.start()
    thread.join()
    print("no end of line", end="")
    return {}


@register_handler("prints_inline")
async def prints_inline(ctx: Context) -> dict[str, Any]:
    print("begun")
    await asyncio.to_thread(print, "from a thread")
    print("no end of line", end="")
    return {}
