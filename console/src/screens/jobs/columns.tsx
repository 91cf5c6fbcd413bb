import { Link } from "wouter";
import type { JobSummary } from "@/api/schema";
import { State } from "@/components/states";
import type { Column } from "@/components/Table";
import { Span, Time } from "@/components/Time";
import { shortId } from "@/format/number";
import { duration } from "@/format/time";
import { personOf } from "@/shell/session";

/** The state that a row shows: a paused job says so instead of running. */
export function shownState(job: JobSummary): string {
  return job.paused && !job.completed_at ? "paused" : job.status;
}

function remark(job: JobSummary): string {
  if (job.parked_at) return `parked: ${job.parked_reason ?? "nothing has happened to it"}`;
  if (job.error) return job.error;
  return (job.run_number ?? 1) > 1 ? `run ${job.run_number}` : "";
}

export const COLUMNS: readonly Column<JobSummary>[] = [
  { name: "state", head: "State", width: 110, cell: (job) => <State state={shownState(job)} /> },
  {
    name: "job",
    head: "Job",
    width: 120,
    cell: (job) => (
      <Link className="mono" href={`/jobs/${job.job_id}`} title={job.job_id}>
        {shortId(job.job_id)}
      </Link>
    ),
  },
  { name: "workflow", head: "Workflow", width: 180, cell: (job) => job.workflow_id },
  {
    name: "asset",
    head: "Asset",
    width: 210,
    cut: true,
    desk: true,
    cell: (job) =>
      job.asset_id ? (
        <>
          <Link href={`/assets/${job.asset_id}`} title={job.asset_id}>
            {job.asset_name ?? shortId(job.asset_id)}
          </Link>{" "}
          <span className="dim">r{job.asset_revision}</span>
        </>
      ) : (
        <span className="dim">–</span>
      ),
  },
  {
    name: "by",
    head: "By",
    width: 120,
    desk: true,
    cell: (job) => job.on_behalf_of ?? personOf(job.submitted_by ?? "–"),
  },
  { name: "created", head: "Created", num: true, width: 110, cell: (job) => <Time at={job.created_at} /> },
  {
    name: "waited",
    head: "Waited",
    num: true,
    width: 80,
    desk: true,
    cell: (job) => <span className="dim">{job.wait_seconds == null ? "–" : duration(job.wait_seconds)}</span>,
  },
  {
    name: "ran",
    head: "Ran",
    num: true,
    width: 90,
    desk: true,
    cell: (job) =>
      job.run_seconds != null ? duration(job.run_seconds) : <Span from={job.started_at} to={job.completed_at} />,
  },
  {
    name: "remark",
    head: "Remark",
    cut: true,
    desk: true,
    cell: (job) => (
      <span className="soft" title={remark(job)}>
        {remark(job)}
      </span>
    ),
  },
];
