/** Warnings, differences to the public revision, and where the data comes from: what a reviewer reads. */

import { Fragment, useMemo } from "react";
import { Link } from "wouter";
import { Facts } from "@/components/Facts";
import { Icon } from "@/components/Icon";
import { Time } from "@/components/Time";
import { count } from "@/format/number";
import { duration, secondsBetween } from "@/format/time";
import { columnsOf, factsOf } from "@/map/outputs";
import { personOf, useMay } from "@/shell/session";
import { columnChanges, differencesOf, type Tone } from "./differences";
import { type AssetDetails, publicRevision } from "./queries";

export function Warnings({ asset }: { asset: AssetDetails }) {
  const repairs = repairsOf(asset.outputs);
  return (
    <section className="stack" aria-label="Warnings and repairs">
      <div className="line">
        <h2 className="grow">Warnings and repairs</h2>
        <span className="small dim">of r{asset.revision}</span>
      </div>
      {asset.warnings.map((warning) => (
        <div key={warning} className="note warn read" tabIndex={-1} data-warning>
          <Icon name="warning" />
          <span>{capital(warning)}</span>
        </div>
      ))}
      {repairs.map(([name, number]) => (
        <div key={name} className="note warn read" tabIndex={-1} data-warning>
          <Icon name="warning" />
          <span>
            {count(number)} {name.replaceAll("_", " ")}.
          </span>
        </div>
      ))}
      {asset.warnings.length + repairs.length === 0 && <p className="small dim">None. Nothing was repaired.</p>}
    </section>
  );
}

function capital(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

/** Repairs by name, with how often each was made. */
export function repairsOf(outputs: unknown): [string, number][] {
  const repairs = (outputs as { repairs?: unknown } | null)?.repairs;
  if (typeof repairs !== "object" || repairs === null) return [];
  return Object.entries(repairs).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number" && entry[1] > 0,
  );
}

const TONES: Record<Tone, string> = { same: "soft", more: "plus", less: "gone", changed: "chg" };

export function DifferenceTable({ asset }: { asset: AssetDetails }) {
  const before = publicRevision(asset);
  const rows = useMemo(() => (before ? differencesOf(before.outputs, asset.outputs) : []), [before, asset]);
  if (!before) return <FirstFacts asset={asset} />;
  const columns = columnChanges(columnsOf(before.outputs), columnsOf(asset.outputs));
  return (
    <section className="stack" aria-label={`Differences to r${before.revision}`}>
      <div className="line">
        <h2 className="grow">Differences to r{before.revision}</h2>
        <span className="small dim">
          r{before.revision} of <Time at={before.created_at} />
        </span>
      </div>
      <table className="diff">
        <thead>
          <tr>
            <th>
              <span className="hidden">Fact</span>
            </th>
            <th className="num">r{before.revision} public</th>
            <th className="num">r{asset.revision} new</th>
            <th className="num">change</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td>{row.name}</td>
              <td className="num">{row.before}</td>
              <td className="num">{row.after}</td>
              <td className={`num ${TONES[row.tone]}`}>{row.change}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {columns.length > 0 && (
        <div className="small mono columns">
          {columns.map((column) => (
            <span key={`${column.sign}${column.text}`} className={TONES[column.tone]}>
              {column.sign} {column.text}
            </span>
          ))}
        </div>
      )}
    </section>
  );
}

/** The facts of data that replaces nothing. */
function FirstFacts({ asset }: { asset: AssetDetails }) {
  const facts = factsOf(asset.outputs);
  return (
    <section className="stack" aria-label="The data">
      <h2>The data</h2>
      <p className="small dim">No revision is public now, so there is nothing to compare it with.</p>
      <Facts
        facts={[
          ["Features", facts.rows === null ? null : count(facts.rows)],
          ["Pixels", facts.shape && `${count(facts.shape[1])} × ${count(facts.shape[0])}`],
          ["Type", facts.rasterType?.replaceAll("_", " ")],
          ["CRS", facts.crs],
          [
            "Columns",
            columnsOf(asset.outputs)
              .map((column) => column.name)
              .join(", ") || null,
          ],
        ]}
      />
    </section>
  );
}

export function Origin({ asset }: { asset: AssetDetails }) {
  const may = useMay();
  const request = asset.requests.find((entry) => entry.request_id === asset.last_request_id) ?? asset.requests[0];
  const job = asset.jobs.find((entry) => entry.job_id === asset.current_job_id);
  const metadata = metadataOf(asset.outputs);
  const took = job?.completed_at ? duration(secondsBetween(job.created_at, job.completed_at)) : null;
  return (
    <section className="stack" aria-label="Where it comes from">
      <h2>Where it comes from</h2>
      <Facts
        facts={[
          ["Title", asset.title],
          ["Description", metadata.description],
          ["Licence", metadata.license],
          [
            "Submitted",
            request && (
              <Fragment key="by">
                <Time at={request.created_at} /> by {request.on_behalf_of ?? personOf(request.submitted_by)} (
                {asset.platform_id})
              </Fragment>
            ),
          ],
          [
            "Source",
            request && <code key="source">{request.file_names.map((name) => name.split("/").at(-1)).join(", ")}</code>,
          ],
          ["Identifiers", <code key="refs">{identifiersOf(asset)}</code>],
          ["Table", asset.table_name && <code key="table">geo.{asset.table_name}</code>],
          ["CRS", factsOf(asset.outputs).crs],
          [
            "Job",
            job && may("GET /api/v1/jobs/{job_id}") && (
              <Fragment key="job">
                <Link className="mono" href={`/jobs/${job.job_id}`}>
                  {job.job_id.slice(0, 13)}
                </Link>
                {took && ` took ${took}`}
              </Fragment>
            ),
          ],
          ["Proposed", asset.proposed_clearance && `${clearanceWord(asset.proposed_clearance)}, by the partner`],
        ]}
      />
    </section>
  );
}

function identifiersOf(asset: AssetDetails): string {
  const refs = Object.entries(asset.platform_refs).sort(([one], [other]) => one.localeCompare(other));
  return refs.map(([, value]) => String(value)).join(" / ");
}

export function clearanceWord(clearance: string): string {
  return clearance === "ouo" ? "official use only" : clearance;
}

function metadataOf(outputs: unknown): { description: string | null; license: string | null } {
  const metadata = ((outputs as Record<string, unknown> | null)?.dataset_metadata ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  return { description: text(metadata.description), license: text(metadata.license) };
}
