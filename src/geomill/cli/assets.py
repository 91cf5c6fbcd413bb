"""`geomill assets`: publish data and review it, through the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from geomill.cli import asset_links
from geomill.cli.client import gateway
from geomill.cli.following import follow, submit_upload
from geomill.cli.inspect import print_inspection
from geomill.cli.metadata import (
    Attribution,
    Description,
    Keywords,
    License,
    MetadataFile,
    Title,
    metadata_of,
)
from geomill.cli.options import ChosenWorkflow, PlatformOption, ProcessingOptions, json_pairs, text_pairs
from geomill.cli.printing import Json, print_table
from geomill.client import Client
from geomill.contract.assets import AssetDetails, AssetStatus, AssetView
from geomill.contract.submissions import DecisionMade
from geomill.domain.assets.asset import DataType
from geomill.domain.states import ApprovalState, ClearanceState, ProcessingStatus
from geomill.remedies import Channel, worded
from geomill.store.reports import ReportName

app = typer.Typer(no_args_is_help=True, help="Publish data, follow its progress and review it.")
COLUMNS = ("asset", "platform", "identifiers", "revision", "processing", "approval", "clearance")
NO_ASSETS = "There are no such assets. Submit one with 'geomill assets submit FILE …'."

app.command()(asset_links.links)
app.command("open")(asset_links.open_viewer)
app.command()(asset_links.download)

AnyId = asset_links.AnyId
ExpectedRevision = Annotated[
    int | None, typer.Option("--expected-revision", min=1, help="Fail if the asset has another revision.")
]
Reason = Annotated[str, typer.Option("--reason", help="Reason for the decision; stored in the audit.")]
MaybeReason = Annotated[str | None, typer.Option("--reason", help="Reason for the decision; stored in the audit.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show progress until the job has ended.")]


@app.command()
def submit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A local file, or with --container a path in bronze.")],
    data_type: Annotated[DataType, typer.Option("--data-type", help="raster or vector.")],
    refs: Annotated[
        list[str],
        typer.Option("--ref", metavar="NAME=VALUE", help="An identifier of the data; NAME:=JSON for a number."),
    ],
    platform: PlatformOption = "ddh",
    container: Annotated[
        str | None, typer.Option("--container", help="Container in bronze that already holds FILE.")
    ] = None,
    workflow_id: ChosenWorkflow = None,
    options: ProcessingOptions = None,
    title: Title = None,
    description: Description = None,
    license_id: License = None,
    keywords: Keywords = None,
    attribution: Attribution = None,
    metadata: MetadataFile = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Create a new revision of an existing asset.")] = False,
    clearance: Annotated[
        ClearanceState | None, typer.Option("--clearance", help="Clearance to propose to the reviewer.")
    ] = None,
    priority: Annotated[int, typer.Option(min=1, max=10, help="Priority; 1 runs first.")] = 5,
    callback_url: Annotated[str | None, typer.Option(help="URL to call when the job has ended.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Your own id for this submission.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A repeated submission with this key returns the same request.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would happen and change nothing.")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Upload a file to bronze and submit it. A dry run or a refused submission leaves no upload behind."""
    body: dict[str, Any] = {
        "platform_id": platform,
        "platform_refs": text_pairs(refs, "--ref"),
        "data_type": data_type.value,
        "workflow_id": workflow_id,
        "processing_options": json_pairs(options or [], "--option"),
        "metadata": metadata_of(
            metadata,
            title=title,
            description=description,
            license=license_id,
            keywords=keywords,
            attribution=attribution,
        ),
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
            accepted = client.assets.submit({**body, **place}, dry_run=dry_run)
        else:
            accepted = submit_upload(client, Path(file), body, quiet=as_json, dry_run=dry_run)
        if wait and not dry_run:
            status = follow(client, accepted.request_id, quiet=as_json)
            _print_status(status, as_json=as_json)
            raise typer.Exit(0 if status.status == "completed" else 1)
    if as_json:
        _print_json(accepted)
    else:
        would = "would be " if dry_run else ""
        typer.echo(
            f"asset {accepted.asset_id} {would}{accepted.operation}, revision {accepted.revision}\n"
            f"request {accepted.request_id}"
        )
        for inspection in accepted.inspections:
            print_inspection(inspection)


@app.command()
def status(any_id: AnyId, wait: Wait = False, as_json: Json = False) -> None:
    """Show the state of an asset."""
    with gateway() as client:
        state = follow(client, any_id, quiet=as_json) if wait else client.assets.status(any_id)
    _print_status(state, as_json=as_json)


@app.command("list")
def list_assets(
    platform: Annotated[str | None, typer.Option("--platform", help="Only assets of this partner application.")] = None,
    refs: Annotated[
        list[str] | None,
        typer.Option("--ref", metavar="NAME=VALUE", help="Only assets with this identifier; may be repeated."),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Only assets with this text in an identifier.")] = None,
    data_type: Annotated[DataType | None, typer.Option("--data-type", help="raster or vector.")] = None,
    processing: Annotated[
        ProcessingStatus | None, typer.Option("--processing", help="Only assets in this state.")
    ] = None,
    approval: Annotated[ApprovalState | None, typer.Option("--approval", help="Only assets in this state.")] = None,
    clearance: Annotated[ClearanceState | None, typer.Option("--clearance", help="Only assets in this state.")] = None,
    workflow_id: Annotated[str | None, typer.Option("--workflow", help="Only assets of this workflow.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include unpublished assets.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of assets to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List assets, the newest first."""
    with gateway() as client:
        page = client.assets.page(
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
        _print_json(page.assets)
    else:
        print_table(COLUMNS, map(_row, page.assets), empty=NO_ASSETS)


@app.command()
def show(any_id: AnyId, as_json: Json = False) -> None:
    """Show one asset with its revisions, requests, jobs and decisions."""
    with gateway() as client:
        asset = client.assets.get(client.assets.status(any_id).asset_id)
    if as_json:
        _print_json(asset)
    else:
        typer.echo(_readable(asset))


@app.command()
def approve(
    any_id: AnyId,
    clearance: Annotated[ClearanceState, typer.Option("--clearance", help="Who may see it: ouo or public.")],
    expected_revision: ExpectedRevision = None,
    as_json: Json = False,
) -> None:
    """Approve a revision, or change the clearance of an approved asset."""
    _decide(
        lambda client: client.assets.approve(any_id, clearance, expected_revision=expected_revision), as_json=as_json
    )


@app.command()
def reject(any_id: AnyId, reason: Reason, expected_revision: ExpectedRevision = None, as_json: Json = False) -> None:
    """Reject a revision. The partner can then submit a new one with --overwrite."""
    _decide(lambda client: client.assets.reject(any_id, reason, expected_revision=expected_revision), as_json=as_json)


@app.command()
def revoke(any_id: AnyId, reason: Reason, expected_revision: ExpectedRevision = None, as_json: Json = False) -> None:
    """Revoke an approval. The asset is no longer served anywhere."""
    _decide(lambda client: client.assets.revoke(any_id, reason, expected_revision=expected_revision), as_json=as_json)


@app.command()
def unpublish(
    any_id: AnyId,
    delete_data: Annotated[bool, typer.Option("--delete-data", help="Also delete the outputs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would happen and change nothing.")] = False,
    reason: MaybeReason = None,
    expected_revision: ExpectedRevision = None,
    as_json: Json = False,
) -> None:
    """Stop serving an asset."""
    options = {"delete_data": delete_data, "dry_run": dry_run, "reason": reason, "expected_revision": expected_revision}
    _decide(lambda client: client.assets.unpublish(any_id, **options), as_json=as_json)


@app.command()
def rollback(
    any_id: AnyId,
    revision: Annotated[int, typer.Option("--to", min=1, help="Revision whose outputs to publish again.")],
    reason: MaybeReason = None,
    expected_revision: ExpectedRevision = None,
    as_json: Json = False,
) -> None:
    """Create a new revision from the outputs of an earlier one."""
    options = {"reason": reason, "expected_revision": expected_revision}
    _decide(lambda client: client.assets.rollback(any_id, revision, **options), as_json=as_json)


@app.command()
def retry(
    any_id: AnyId,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An input of the workflow to change; null removes it."),
    ] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Run the failed job of a request again."""
    with gateway() as client:
        accepted = client.assets.retry(any_id, processing_options=json_pairs(options or [], "--option"))
        state = follow(client, accepted.request_id, quiet=as_json) if wait else None
    if state:
        _print_status(state, as_json=as_json)
    elif as_json:
        _print_json(accepted)
    else:
        typer.echo(f"request {accepted.request_id} runs again as job {accepted.job_id}")


@app.command("retry-export")
def retry_export(any_id: AnyId, as_json: Json = False) -> None:
    """Run a failed export or withdrawal again."""
    _decide(lambda client: client.assets.retry_export(any_id), as_json=as_json)


@app.command()
def report(
    name: Annotated[
        ReportName, typer.Argument(metavar="REPORT", help="One of stuck, failed, exports, sla, retried, load.")
    ],
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1, help="For stuck: how long without progress. For sla: how far back."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a report about assets for operators."""
    with gateway() as client:
        rows = client.assets.report(name.value, seconds=seconds).rows
    if as_json:
        _print_json(rows)
    else:
        print_table(list(rows[0]) if rows else (), (list(row.values()) for row in rows), empty="The report is empty.")


def _decide(decide: Callable[[Client], DecisionMade], *, as_json: bool) -> None:
    with gateway() as client:
        decision = decide(client)
    if as_json:
        _print_json(decision)
        return
    would = "would be " if decision.dry_run else ""
    state = f"{decision.approval_state}, {decision.clearance_state}" + (", unpublished" if decision.deleted else "")
    typer.echo(f"asset {decision.asset_id} revision {decision.revision} {would}{decision.decision}: {state}")
    if decision.warning:
        typer.echo(f"warning: {decision.warning}", err=True)
    for job in (decision.export_job_id, decision.delete_job_id):
        if job and not decision.dry_run:
            typer.echo(f"job {job}")


_STATES = (
    ("revision", "revision"),
    ("served", "served_revision"),
    ("processing", "processing_status"),
    ("approval", "approval_state"),
    ("clearance", "clearance_state"),
)


def _print_json(document: BaseModel | Sequence[Any]) -> None:
    plain = to_jsonable_python(document)
    typer.echo(json.dumps(plain, indent=2, ensure_ascii=False))


def _print_status(state: AssetStatus, *, as_json: bool) -> None:
    if as_json:
        _print_json(state)
        return
    asset = state.asset
    lines = [
        f"{state.status}  asset {state.asset_id}  revision {state.revision}",
        f"  processing {state.processing_status}, approval {state.approval_state},"
        f" clearance {state.clearance_state}" + (", unpublished" if asset.deleted_at else ""),
        f"  progress {state.progress.fraction:.0%}" + (f", ready about {state.eta}" if state.eta else ""),
    ]
    lines += [f"  {name} {value}" for name in ("blob_path", "table_name") if (value := getattr(asset, name))]
    if state.error:
        failure = {"error": state.error.message, "remedy": state.error.remedy}
        lines += [worded(f"  {name}: {text}", Channel.SHELL) for name, text in failure.items()]
    lines += [f"  warning: {warning}" for warning in state.warnings]
    lines += [f"  {name} {link}" for name, link in state.links.items() if link.startswith("http")]
    if state.export.job_id:
        outside = state.export.external_revision
        lines.append(f"  export {state.export.status}, outside: {f'revision {outside}' if outside else 'nothing'}")
    typer.echo("\n".join(lines))


def _row(asset: AssetView) -> tuple[object, ...]:
    refs = list(asset.platform_refs.values())
    states = (asset.processing_status, asset.approval_state, asset.clearance_state)
    return asset.asset_id, asset.platform_id, refs, asset.revision, *states


def _readable(asset: AssetDetails) -> str:
    refs = ", ".join(f"{name}={value}" for name, value in asset.platform_refs.items())
    states = ", ".join(f"{name} {getattr(asset, field)}" for name, field in _STATES)
    lines = [f"{asset.asset_id}  {asset.platform_id}  {refs}", f"  {states}"]
    lines += [
        f"  {name} {value}"
        for name in ("blob_path", "table_name", "last_error", "deleted_by")
        if (value := getattr(asset, name))
    ]
    lines += [
        f"  revision {past.revision} until {past.superseded_at}: {past.approval_state_at_supersession},"
        f" {past.clearance_state_at_supersession}"
        for past in asset.revisions
    ]
    lines += [
        f"  request {request.request_id}  {request.status}  by {request.submitted_by}" for request in asset.requests
    ]
    lines += [f"  job {job.job_id}  {job.purpose}  {job.status}" for job in asset.jobs]
    lines += [
        f"  {entry.at}  {entry.decision} by {entry.actor}" + (f": {entry.reason}" if entry.reason else "")
        for entry in asset.audit
    ]
    return "\n".join(lines)
