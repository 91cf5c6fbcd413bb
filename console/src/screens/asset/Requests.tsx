import { Link } from "wouter";
import type { AssetDetails } from "@/api/schema";
import { Id } from "@/components/Id";
import { State } from "@/components/states";
import { Span, Time } from "@/components/Time";
import { personOf, useMay } from "@/shell/session";

export function Requests({ asset }: { asset: AssetDetails }) {
  const may = useMay();
  const job = (id: string) =>
    may("GET /api/v1/jobs/{job_id}") ? (
      <Link href={`/jobs/${id}`}>
        <Id id={id} />
      </Link>
    ) : (
      <Id id={id} />
    );
  return (
    <>
      <table>
        <thead>
          <tr>
            <th>Request</th>
            <th />
            <th>State</th>
            <th>Submitted</th>
            <th className="desk">By</th>
            <th className="desk">Files</th>
            <th>Job</th>
          </tr>
        </thead>
        <tbody>
          {asset.requests.map((request) => (
            <tr key={request.request_id}>
              <td>
                <Id id={request.request_id} copy />
              </td>
              <td>r{request.revision}</td>
              <td title={request.last_error ?? undefined}>
                <State state={request.status} />
              </td>
              <td>
                <Time at={request.created_at} />
              </td>
              <td className="desk">{request.on_behalf_of ?? personOf(request.submitted_by)}</td>
              <td className="desk cut" title={request.file_names.join("\n")}>
                {request.file_names.map((name) => name.replace(/^[0-9a-f]{32}\//, "")).join(", ")}
              </td>
              <td>{job(request.job_id)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <table>
        <thead>
          <tr>
            <th>Job</th>
            <th />
            <th>State</th>
            <th>Began</th>
            <th className="num">Took</th>
            <th>Workflow</th>
            <th className="desk">Purpose</th>
          </tr>
        </thead>
        <tbody>
          {asset.jobs.map((entry) => (
            <tr key={entry.job_id}>
              <td>{job(entry.job_id)}</td>
              <td>{entry.asset_revision ? `r${entry.asset_revision}` : ""}</td>
              <td title={entry.error_message ?? undefined}>
                <State state={entry.status} />
              </td>
              <td>
                <Time at={entry.created_at} />
              </td>
              <td className="num">
                <Span from={entry.created_at} to={entry.completed_at} />
              </td>
              <td>
                <code>{entry.workflow_id}</code>
              </td>
              <td className="desk">{entry.purpose}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
