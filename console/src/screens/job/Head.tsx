import { type ReactNode, useEffect, useState } from "react";
import { Link } from "wouter";
import { Id } from "@/components/Id";
import { Badge, stateWord } from "@/components/states";
import { Span } from "@/components/Time";
import { count, percent, plural } from "@/format/number";
import { shortClock, utc } from "@/format/time";
import { useAssetName } from "./About";
import { hasEnded, type JobDetails } from "./data";
import { shareOf } from "./share";

export function Heading({ job }: { job: JobDetails }) {
  return (
    <div className="line job-heading">
      <Link className="crumb desk" href="/jobs">
        Jobs
      </Link>
      <span className="crumb desk">/</span>
      <h1 className="cut">{job.workflow_id}</h1>
      <Id id={job.job_id} copy />
      <Badge state={job.parked_at ? "parked" : job.paused ? "paused" : job.status} />
    </div>
  );
}

/** How far the job is, since when, and for what. */
export function Beside({ job }: { job: JobDetails }) {
  const name = useAssetName(job.asset_id);
  const open = !hasEnded(job.status);
  return (
    <div className="line desk job-beside cut">
      {open && job.status !== "queued" && (
        <span className="line">
          <span className="progress job-progress">
            <i style={{ width: `${shareOf(job.progress) * 100}%` }} />
          </span>
          <span className="small">{percent(shareOf(job.progress))}</span>
        </span>
      )}
      {job.started_at && (
        <span className="small soft nowrap">
          <span title={utc(job.started_at)}>since {shortClock(job.started_at)}</span> ·{" "}
          <Span from={job.started_at} to={job.completed_at} />
        </span>
      )}
      {job.asset_id && (
        <span className="small cut">
          for <Link href={`/assets/${job.asset_id}`}>{name}</Link> {job.asset_revision ? `r${job.asset_revision}` : ""}
        </span>
      )}
    </div>
  );
}

export function statusFacts(job: JobDetails): ReactNode[] {
  const { progress } = job;
  const facts: ReactNode[] = [];
  if (progress.nodes_total)
    facts.push(`${count(progress.nodes_ended)} of ${plural(progress.nodes_total, "node")} ended`);
  if (progress.items_total) facts.push(`${count(progress.items_ended)} of ${plural(progress.items_total, "item")}`);
  if (job.owner_id && !hasEnded(job.status)) facts.push(<span className="desk">owner {job.owner_id}</span>);
  return facts;
}

const SAY_MILLISECONDS = 5_000;

/** Says the state of the job to screen readers, at most once in five seconds. */
export function Announcement({ job }: { job: JobDetails }) {
  const failed = (job.nodes ?? []).reduce((sum, node) => sum + (node.items?.failed ?? 0), 0);
  const text = `${stateWord(job.status)}, ${percent(shareOf(job.progress))}${failed ? `, ${count(failed)} items failed` : ""}`;
  const said = useSlowly(text);
  return (
    <div className="hidden" role="status" aria-live="polite">
      {said}
    </div>
  );
}

function useSlowly(text: string): string {
  const [said, setSaid] = useState(text);
  useEffect(() => {
    if (said === text) return;
    const timer = setTimeout(() => setSaid(text), SAY_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text, said]);
  return said;
}
