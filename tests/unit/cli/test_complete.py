"""Every operation of the client has a command, or a reason why not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import geomill.cli
from geomill.client import Client

WITHOUT = {
    "assets.order_features": "`assets download` orders what is too large",
    "assets.order_clip": "`assets download --bbox`",
    "assets.extract": "`assets download` waits",
    "assets.save_extract": "`assets download` waits",
    "assets.decisions": "for the console; the audit of an asset is in `assets show`",
    "assets.follow_reviews": "for programs: the list of assets has a filter",
    "jobs.run": "`jobs submit --wait`",
    "jobs.follow": "`jobs watch` looks more often than a stream tells",
    "jobs.follow_all": "for programs",
    "jobs.parked": "`jobs list --parked`",
    "operations.follow_instances": "for programs",
    "operations.ddl": "`db ddl` needs no database",
    "operations.migrate": "`db migrate` works before there is a gateway",
    "operations.health": "`doctor`",
    "operations.live": "the first request tells",
    "jobs.histogram": "for charts",
    "session.get": "for programs",
    "queues.message": "`queues peek --json`",
    "queues.dead_letter": "`queues dead-letters --json`",
    "stage_jobs.tasks": "for programs: `stages status` counts them",
    "stage_jobs.task": "for programs",
    "stage_jobs.wait": "`stages submit --wait`",
    "uploads.begin": "`uploads send`",
    "uploads.send": "`uploads send`",
    "uploads.send_file": "`uploads send`, as `client.upload`",
    "workflows.all": "`workflows list` reads the files of this machine",
    "workflows.schema": "`workflows schema` needs no gateway",
    "workflows.validate": "`workflows validate` reads the files of this machine",
}


def used() -> set[str]:
    """The operations that commands call: `jobs.page` for `client.jobs.page(…)`."""
    text = "\n".join(file.read_text() for file in Path(geomill.cli.__path__[0]).glob("*.py"))
    return {f"{group}.{operation}" for group, operation in re.findall(r"\bclient\.(\w+)\.(\w+)\(", text)}


def existing() -> set[str]:
    with Client("http://127.0.0.1:1", "key") as client:
        groups = {
            name: group for name, group in vars(client).items() if not name.startswith("_") and name != "connection"
        }
        return {
            f"{name}.{operation}"
            for name, group in groups.items()
            for operation, _ in inspect.getmembers(group, inspect.ismethod)
            if not operation.startswith("_")
        }


def test_every_operation_has_a_command_or_a_reason() -> None:
    lacking = {name for name in existing() - used() if name not in WITHOUT and name.partition(".")[0] not in WITHOUT}
    assert sorted(lacking) == []


def test_every_reason_is_still_needed() -> None:
    assert sorted(set(WITHOUT) & used()) == []
    assert all(reason in existing() or "." not in reason for reason in WITHOUT)
