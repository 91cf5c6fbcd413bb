"""`geomill up`: runs PostgreSQL, orchestrators, workers and gateway on one machine, and supervises them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geomill.cli import admin_key, context, private
from geomill.cli.environment import Databases, environment
from geomill.cli.folder import published_address
from geomill.cli.gateway import Host, Port, listen
from geomill.cli.occupation import Occupation, occupied
from geomill.cli.supervisor import Program, Supervisor
from geomill.domain.access.database_role import DatabaseRole
from geomill.domain.objectname import Zone
from geomill.embedded import Cluster
from geomill.errors import ConflictError, EmbeddedError
from geomill.settings import Settings
from geomill.telemetry.logging import resolve

if TYPE_CHECKING:
    import httpx  # imported at run time where it is used

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
READY_SECONDS = 0.2
PATIENCE_SECONDS = 30.0
"""After this time the reasons why the platform is not ready are printed. It may become ready later."""
EXTRA_GRACE_SECONDS = 10.0
RELOADED = ("orchestrator", "worker", "gateway")
"""The kinds of processes that load workflows and handlers."""
_COLOURS = ("\x1b[36m", "\x1b[32m", "\x1b[35m", "\x1b[33m", "\x1b[34m")
_RESET = "\x1b[0m"


def up(
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Folder for all local data.")] = None,
    workflow_folders: Annotated[
        list[Path] | None, typer.Option("--workflows", metavar="DIR", help="Folder of workflow files; may be repeated.")
    ] = None,
    host: Host = None,
    port: Port = None,
    orchestrators: Annotated[int, typer.Option(min=1, max=100, help="Number of orchestrators to run.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=100, help="Number of workers to run.")] = 1,
    concurrency: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of tasks that each worker runs at once.")
    ] = 16,
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when workflow files or your handlers change. For development.")
    ] = False,
) -> None:
    """Run everything on this machine: database, orchestrators, workers and gateway, until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an orderly exit also during the start
    context.data_option.set(data or context.data_option.get())
    context.workflows_option.set(tuple(workflow_folders or context.workflows_option.get()))
    settings = context.settings()
    with occupied(settings.database.data) as occupation:
        _run(settings, occupation, (host, port), (orchestrators, workers, concurrency), reload=reload)


def _run(
    settings: Settings,
    occupation: Occupation,
    place: tuple[str | None, int | None],
    counts: tuple[int, int, int],
    *,
    reload: bool,
) -> None:
    """Start everything and supervise it. `counts` are orchestrators, workers, and tasks of each worker."""
    (host, port), (orchestrators, workers, concurrency) = place, counts
    address = host or settings.gateway.gateway_host
    gateway_port = settings.gateway.gateway_port if port is None else port
    context.role_logging()
    context.workflow_registry(context.handlers())  # reports invalid workflows before anything is started
    context.storage().sync.prepare()
    with listen(address, gateway_port) as listener:
        gateway_port = listener.getsockname()[1]
        external_port = _free_port(address, gateway_port + 1)
    programs = [
        *_numbered("orchestrator", orchestrators),
        *_numbered("worker", workers, "--concurrency", str(concurrency)),
        Program("gateway", ("gateway", "--host", address, "--port", str(gateway_port)), "gateway"),
    ]
    if serves_external := settings.database.database_url is None or settings.database.external_database_url is not None:
        where = ("--host", address, "--port", str(external_port))
        programs.append(Program("external", ("serve", "--zone", "external", *where), "external"))
    with _database(settings) as (cluster, url):
        asyncio.run(context.make_ready(url(), private=True))
        context.make_external_ready()
        asyncio.run(admin_key.ensure(url(), settings.database.data, shared=cluster is None))
        gateway_url = _reachable_url(address, gateway_port)
        external_url = _reachable_url(address, external_port) if serves_external else None
        occupation.tell(gateway_url)
        with published_address(settings.database.data, gateway_url):
            killed = asyncio.run(_supervise(settings, programs, cluster, (gateway_url, external_url), reload=reload))
    if killed:
        raise typer.Exit(1)


def _numbered(role: str, count: int, *options: str) -> Iterator[Program]:
    for number in range(1, count + 1):
        yield Program(role if count == 1 else f"{role}-{number}", (role, *options), role)


def _free_port(host: str, preferred: int) -> int:
    """Return the preferred port if it is free, or any free port."""
    for number in (preferred, 0):
        try:
            with listen(host, min(number, 65_535)) as listener:
                return int(listener.getsockname()[1])
        except ConflictError:
            continue
    raise ConflictError(f"there is no free port on {host}", remedy="choose another address with --host")


def _reachable_url(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{name}:{port}"


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[Cluster | None, Callable[[], str]]]:
    """Yield the private server, if any, and the owner's URL. The private server is stopped at the end if it was started
    here, or if no other process uses it."""
    configured_url = settings.database.database_url
    if configured_url:
        yield None, lambda: configured_url
        return
    cluster = Cluster(settings.database.data)
    started, prepared = cluster.start(), False
    try:
        private.prepare(cluster)
        prepared = True
        yield cluster, lambda: cluster.url(role=DatabaseRole.OWNER)
    finally:
        if started or (prepared and asyncio.run(context.is_only_connection(cluster.url(role=DatabaseRole.OWNER)))):
            cluster.stop()


async def _supervise(
    settings: Settings,
    programs: list[Program],
    cluster: Cluster | None,
    addresses: tuple[str, str | None],
    *,
    reload: bool,
) -> int:
    """Supervise the programs and return how many had to be killed. `addresses` are the gateway's and the public one."""
    stop = asyncio.Event()
    text = resolve(settings.log.log_format, sys.stderr) == "text"
    overrides = _overrides(settings, text=text)
    supervisor = Supervisor(
        programs,
        lambda program: environment(program.kind, os.environ, _databases(settings, cluster), overrides),
        _prefixed(programs) if text else _verbatim,
        settings.worker.drain_seconds + EXTRA_GRACE_SECONDS,
    )

    def request_stop() -> None:
        if stop.is_set():
            supervisor.hurry()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, request_stop)
    async with asyncio.TaskGroup() as group:
        group.create_task(_announce(*addresses, stop))
        if cluster:
            group.create_task(_keep_server(cluster, supervisor, stop))
        if reload:
            from geomill.cli.reloading import reload_on_change

            restart = partial(supervisor.restart, RELOADED)
            group.create_task(reload_on_change(settings, overrides, restart, stop))
        await supervisor.run(stop)
    log.info("stopped", extra={"action": "stop"})
    return supervisor.killed


def _databases(settings: Settings, cluster: Cluster | None) -> Databases:
    """Return the database URLs. Called at each start of a process, since a private server may have changed its port."""
    if cluster:
        outside = private.EXTERNAL_DATABASE
        return Databases(
            engine=cluster.url(role=DatabaseRole.ENGINE),
            gateway=cluster.url(role=DatabaseRole.GATEWAY),
            loader=cluster.url(role=DatabaseRole.LOADER),
            reader=cluster.url(role=DatabaseRole.READER),
            exporter=cluster.url(outside, role=DatabaseRole.ENGINE),
            external=cluster.url(outside, role=DatabaseRole.EXTERNAL),
            hider=cluster.url(outside, role=DatabaseRole.GATEWAY),
        )
    options = settings.database
    assert options.database_url is not None
    return Databases(
        engine=options.database_url,
        gateway=options.database_url,
        loader=options.loader_database_url,
        reader=options.reader_database_url,
        exporter=options.external_database_url,
        external=options.external_database_url,
        hider=options.external_database_url,
    )


def _overrides(settings: Settings, *, text: bool) -> dict[str, str]:
    """Return settings for the processes that come from options or from the data folder."""
    return {
        "GEOMILL_DATA": str(settings.database.data),
        "GEOMILL_WORKFLOWS": ",".join(str(folder) for folder in settings.workflow.workflows),
        "GEOMILL_EXTERNAL": context.storage().recipe.zones[Zone.EXTERNAL],
        "GEOMILL_LOG_FORMAT": "text" if text else "json",
    }


def _verbatim(_name: str, line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _prefixed(programs: list[Program]) -> Callable[[str, str], None]:
    """Return a function that prints a line after its process's name, in the process's colour on a terminal."""
    width = max(len(program.name) for program in programs)
    colours = {program.name: _COLOURS[place % len(_COLOURS)] for place, program in enumerate(programs)}
    begin, end = (colours, _RESET) if sys.stderr.isatty() else (dict.fromkeys(colours, ""), "")

    def say(name: str, line: str) -> None:
        _verbatim(name, f"{begin[name]}{name:<{width}} │{end} {line}")

    return say


async def _announce(address: str, public: str | None, stop: asyncio.Event) -> None:
    import httpx

    begun, warned = time.monotonic(), False
    async with httpx.AsyncClient(trust_env=False, timeout=2.0) as client:
        while not stop.is_set():
            try:
                answer = await client.get(f"{address}/health/ready")
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.status_code == 200:
                typer.echo(f"geomill is ready: {address} (API: {address}/docs, maps: {address}/viewer/)")
                if public:
                    typer.echo(f"public maps, open to everybody: {public}/viewer/")
                return
            if answer is not None and not warned and time.monotonic() - begun > PATIENCE_SECONDS:
                typer.echo(f"geomill runs at {address}, but is not ready: {'; '.join(_reasons(answer))}")
                warned = True
            await asyncio.sleep(READY_SECONDS)


def _reasons(answer: httpx.Response) -> list[str]:
    try:
        return [str(reason) for reason in answer.json()["reasons"]]
    except (ValueError, KeyError, TypeError):
        return [f"it answers {answer.status_code}"]


async def _keep_server(cluster: Cluster, supervisor: Supervisor, stop: asyncio.Event) -> None:
    """Restart the private server if it dies. If its port changed, restart all processes."""
    last_url = cluster.url()
    while not stop.is_set():
        await asyncio.sleep(LOOK_SECONDS)
        if stop.is_set() or not await _revived(cluster):
            continue
        log.warning("the private database had died and was started again", extra={"action": "restart"})
        if cluster.url() != last_url:
            last_url = cluster.url()
            supervisor.restart()


async def _revived(cluster: Cluster) -> bool:
    try:
        return await asyncio.to_thread(cluster.start)
    except EmbeddedError as error:
        log.error("the private database does not start: %s", error, extra={"action": "restart"})  # noqa: TRY400
        return False
