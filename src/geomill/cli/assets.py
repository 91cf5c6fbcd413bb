"""`geomill assets`: publish data and decide about it, through the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from geomill.cli.client import gateway
from geomill.cli.following import follow, submit_upload
from geomill.cli.options import json_pairs, text_pairs
from geomill.domain.assets.asset import DataType
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus
from geomill.store.reports import ReportName

app = typer.Typer(no_args_is_help=True, help="Publish data, see how it stands, decide about it.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Given = Annotated[str, typer.Argument(metavar="ID", help="Of the asset, a request or a job.")]
Seen = Annotated[int | None, typer.Option("--expected-revision", min=1, help="Refuse if it is at another revision.")]
Reason = Annotated[str, typer.Option("--reason", help="Why.")]
MaybeReason = Annotated[str | None, typer.Option("--reason", help="Why.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show progress until the work has ended.")]


@app.command()
def submit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A local file; with --container, a path in bronze.")],
    data_type: Annotated[DataType, typer.Option("--data-type", help="raster or vector.")],
    refs: Annotated[
        list[str], typer.Option("--ref", metavar="NAME=VALUE", help="An identifier; NAME:=JSON for a number.")
    ],
    platform: Annotated[str, typer.Option("--platform", help="The partner application.")] = "ddh",
    container: Annotated[str | None, typer.Option("--container", help="The file is there already.")] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Chosen by the data type if absent.")] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An input of the workflow.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make a new revision.")] = False,
    clearance: Annotated[ClearanceState | None, typer.Option("--clearance", help="A proposal to the reviewer.")] = None,
    priority: Annotated[int, typer.Option(min=1, max=10, help="1 is first.")] = 5,
    callback_url: Annotated[str | None, typer.Option(help="Told when the job has ended.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="An id of yours.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="Submitting it again gives the same request.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would happen.")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Upload a file to bronze and submit it. A dry run, or a refusal, leaves no upload behind."""
    body: dict[str, Any] = {
        "platform_id": platform,
        "platform_refs": text_pairs(refs, "--ref"),
        "data_type": data_type.value,
        "workflow_id": workflow_id,
        "processing_options": json_pairs(options or [], "--option"),
        "overwrite": overwrite,
        "clearance_level": clearance.value if clearance else None,
        "priority": priority,
        "callback_url": callback_url,
        "correlation_id": correlation_id,
        "idempotency_key": idempotency_key,
    }
    with gateway() as client:
        if container:
            place = {"container_name": container, "file_name": file}
            accepted = client.post("/api/platform/submit", {**body, **place}, dry_run=dry_run)
        else:
            accepted = submit_upload(client, Path(file), body, quiet=as_json, dry_run=dry_run)
        if wait and not dry_run:
            status = follow(client, accepted["request_id"], quiet=as_json)
            _print_status(status, as_json=as_json)
            raise typer.Exit(0 if status["status"] == "completed" else 1)
    if as_json:
        _print_json(accepted)
    else:
        would = "would be " if dry_run else ""
        typer.echo(
            f"asset {accepted['asset_id']} {would}{accepted['operation']}, revision {accepted['revision']}\n"
            f"request {accepted['request_id']}"
        )


@app.command()
def status(given: Given, wait: Wait = False, as_json: Json = False) -> None:
    """How it stands with an asset."""
    with gateway() as client:
        found = follow(client, given, quiet=as_json) if wait else client.get(f"/api/platform/status/{given}")
    _print_status(found, as_json=as_json)


@app.command("list")
def list_assets(
    platform: Annotated[str | None, typer.Option("--platform", help="Only of this partner application.")] = None,
    refs: Annotated[list[str] | None, typer.Option("--ref", metavar="NAME=VALUE", help="An identifier it has.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="A part of an identifier.")] = None,
    data_type: Annotated[DataType | None, typer.Option("--data-type", help="raster or vector.")] = None,
    processing: Annotated[ProcessingStatus | None, typer.Option("--processing", help="Only in this state.")] = None,
    approval: Annotated[ApprovalState | None, typer.Option("--approval", help="Only in this state.")] = None,
    clearance: Annotated[ClearanceState | None, typer.Option("--clearance", help="Only in this state.")] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Only of this workflow.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also unpublished ones.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """Assets, the newest first."""
    with gateway() as client:
        page = client.get(
            "/api/assets",
            platform_id=platform,
            refs=json.dumps(text_pairs(refs, "--ref")) if refs else None,
            text=text,
            data_type=data_type.value if data_type else None,
            processing_status=processing.value if processing else None,
            approval_state=approval.value if approval else None,
            clearance_state=clearance.value if clearance else None,
            workflow_id=workflow_id,
            deleted=deleted,
            limit=limit,
        )
    if as_json:
        _print_json(page["assets"])
    elif page["assets"]:
        Console().print(_table(page["assets"]))
    else:
        typer.echo("no assets; submit one with 'geomill assets submit FILE …'")


@app.command()
def show(given: Given, as_json: Json = False) -> None:
    """One asset, with its revisions, requests, jobs and decisions."""
    with gateway() as client:
        asset_id = client.get(f"/api/platform/status/{given}")["asset_id"]
        found = client.get(f"/api/assets/{asset_id}")
    if as_json:
        _print_json(found)
    else:
        typer.echo(_readable(found))


@app.command()
def approve(
    given: Given,
    clearance: Annotated[ClearanceState, typer.Option("--clearance", help="ouo or public.")],
    expected_revision: Seen = None,
    as_json: Json = False,
) -> None:
    """Approve a revision; of an approved asset, change its clearance."""
    _decide("approve", given, {"clearance_level": clearance.value, "expected_revision": expected_revision}, as_json)


@app.command()
def reject(given: Given, reason: Reason, expected_revision: Seen = None, as_json: Json = False) -> None:
    """Reject a revision: it takes an overwrite to go on."""
    _decide("reject", given, {"reason": reason, "expected_revision": expected_revision}, as_json)


@app.command()
def revoke(given: Given, reason: Reason, expected_revision: Seen = None, as_json: Json = False) -> None:
    """Take an approval back: the asset leaves every service."""
    _decide("revoke", given, {"reason": reason, "expected_revision": expected_revision}, as_json)


@app.command()
def unpublish(
    given: Given,
    delete_data: Annotated[bool, typer.Option("--delete-data", help="Delete the outputs too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would happen.")] = False,
    reason: MaybeReason = None,
    expected_revision: Seen = None,
    as_json: Json = False,
) -> None:
    """Take an asset out of service."""
    body = {"delete_data": delete_data, "dry_run": dry_run, "reason": reason, "expected_revision": expected_revision}
    _decide("unpublish", given, body, as_json)


@app.command()
def rollback(
    given: Given,
    revision: Annotated[int, typer.Option("--to", min=1, help="The revision to go back to.")],
    reason: MaybeReason = None,
    expected_revision: Seen = None,
    as_json: Json = False,
) -> None:
    """Make a new revision of the outputs of an earlier one."""
    _decide(
        "rollback", given, {"revision": revision, "reason": reason, "expected_revision": expected_revision}, as_json
    )


@app.command()
def retry(given: Given, wait: Wait = False, as_json: Json = False) -> None:
    """Run a failed request again."""
    with gateway() as client:
        accepted = client.post("/api/platform/retry", _named(client, given))
        found = follow(client, accepted["request_id"], quiet=as_json) if wait else None
    if found:
        _print_status(found, as_json=as_json)
    elif as_json:
        _print_json(accepted)
    else:
        typer.echo(f"request {accepted['request_id']} runs again as job {accepted['job_id']}")


@app.command("retry-export")
def retry_export(given: Given, as_json: Json = False) -> None:
    """Run a failed export or withdrawal again."""
    _decide("export/retry", given, {}, as_json)


@app.command()
def report(
    name: Annotated[ReportName, typer.Argument(metavar="REPORT", help="stuck, failed, sla, retried or load.")],
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, help="stuck: for how long; sla: how far back.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What operators ask about assets."""
    with gateway() as client:
        rows = client.get(f"/api/assets/reports/{name.value}", seconds=seconds)["rows"]
    if as_json:
        _print_json(rows)
    elif rows:
        table = Table(*rows[0], box=None)
        for row in rows:
            table.add_row(*("" if value is None else str(value) for value in row.values()))
        Console().print(table)
    else:
        typer.echo("nothing to report")


def _decide(action: str, given: str, body: dict[str, Any], as_json: bool) -> None:
    with gateway() as client:
        made = client.post(f"/api/platform/{action}", {**_named(client, given), **body})
    if as_json:
        _print_json(made)
        return
    would = "would be " if made["dry_run"] else ""
    state = f"{made['approval_state']}, {made['clearance_state']}" + (", unpublished" if made["deleted"] else "")
    typer.echo(f"asset {made['asset_id']} revision {made['revision']} {would}{made['decision']}: {state}")
    if made["warning"]:
        typer.echo(f"warning: {made['warning']}", err=True)
    for job in (made["export_job_id"], made["delete_job_id"]):
        if job and not made["dry_run"]:
            typer.echo(f"job {job}")


def _named(client: Any, given: str) -> dict[str, str]:
    found = client.get(f"/api/platform/status/{given}")
    return {next(name for name in ("asset_id", "request_id", "job_id") if found[name] == given): given}


_STATES = (
    ("revision", "revision"),
    ("served", "served_revision"),
    ("processing", "processing_status"),
    ("approval", "approval_state"),
    ("clearance", "clearance_state"),
)


def _print_json(found: Any) -> None:
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _print_status(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(found)
        return
    asset = found["asset"]
    lines = [
        f"{found['status']}  asset {found['asset_id']}  revision {found['revision']}",
        f"  processing {found['processing_status']}, approval {found['approval_state']},"
        f" clearance {found['clearance_state']}" + (", unpublished" if asset["deleted_at"] else ""),
        f"  progress {found['progress']['fraction']:.0%}" + (f", ready about {found['eta']}" if found["eta"] else ""),
    ]
    lines += [f"  {name} {asset[name]}" for name in ("blob_path", "table_name") if asset[name]]
    if found["error"]:
        lines += [f"  error: {found['error']['message']}", f"  remedy: {found['error']['remedy']}"]
    lines += [f"  warning: {warning}" for warning in found["warnings"]]
    if found["export"]["job_id"]:
        outside = found["export"]["external_revision"]
        lines.append(
            f"  export {found['export']['status']}, outside: {f'revision {outside}' if outside else 'nothing'}"
        )
    typer.echo("\n".join(lines))


def _table(found: list[dict[str, Any]]) -> Table:
    table = Table(
        Column("asset", no_wrap=True), "platform", "identifiers", "rev", "processing", "approval", "clearance", box=None
    )
    for asset in found:
        refs = ", ".join(str(value) for value in asset["platform_refs"].values())
        states = (asset["processing_status"], asset["approval_state"], asset["clearance_state"])
        table.add_row(asset["asset_id"], asset["platform_id"], refs, str(asset["revision"]), *states)
    return table


def _readable(found: dict[str, Any]) -> str:
    refs = ", ".join(f"{name}={value}" for name, value in found["platform_refs"].items())
    states = ", ".join(f"{name} {found[field]}" for name, field in _STATES)
    lines = [f"{found['asset_id']}  {found['platform_id']}  {refs}", f"  {states}"]
    lines += [
        f"  {name} {found[name]}" for name in ("blob_path", "table_name", "last_error", "deleted_by") if found[name]
    ]
    lines += [
        f"  revision {one['revision']} until {one['superseded_at']}: {one['approval_state_at_supersession']},"
        f" {one['clearance_state_at_supersession']}"
        for one in found["revisions"]
    ]
    lines += [f"  request {one['request_id']}  {one['status']}  by {one['submitted_by']}" for one in found["requests"]]
    lines += [f"  job {one['job_id']}  {one['purpose']}  {one['status']}" for one in found["jobs"]]
    lines += [
        f"  {one['at']}  {one['decision']} by {one['actor']}" + (f": {one['reason']}" if one["reason"] else "")
        for one in found["audit"]
    ]
    return "\n".join(lines)
