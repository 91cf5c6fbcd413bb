import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import { Facts } from "@/components/Facts";
import { Id } from "@/components/Id";
import { Time } from "@/components/Time";
import { duration } from "@/format/time";
import { useMay } from "@/shell/session";
import type { JobDetails } from "./data";
import { Value } from "./Value";

/** The job itself: who sent it and why, its inputs and its result. */
export function About({ job }: { job: JobDetails }) {
  return (
    <section className="about-job" aria-label="Job" tabIndex={-1}>
      <Facts
        facts={[
          ["Id", <Id key="id" id={job.job_id} copy />],
          ["Purpose", job.purpose !== "process" && job.purpose],
          ["Asset", job.asset_id && <AssetLink assetId={job.asset_id} revision={job.asset_revision} />],
          ["Request", job.request_id && <Id id={job.request_id} copy />],
          ["Repeats", job.retry_of && <Link href={`/jobs/${job.retry_of}`}>{job.retry_of.slice(0, 13)}</Link>],
          ["Run", (job.run_number ?? 1) > 1 && `number ${job.run_number}`],
          ["Sent by", job.submitted_by],
          ["On behalf of", job.on_behalf_of],
          ["Sent", job.submitted_at && <Time at={job.submitted_at} />],
          ["Began", job.started_at && <Time at={job.started_at} />],
          ["Ended", job.completed_at && <Time at={job.completed_at} />],
          ["Waited", job.wait_seconds !== null && job.wait_seconds !== undefined && duration(job.wait_seconds)],
          ["Deadline", job.deadline_at && <Time at={job.deadline_at} />],
          ["Priority", job.priority],
          ["Correlation id", job.correlation_id],
          ["Owner", job.owner_id],
          [
            "Definition",
            job.definition_hash && <code title={job.definition_hash}>{job.definition_hash.slice(0, 13)}</code>,
          ],
          ...(job.mixed_versions ?? []).map(
            (mixed) => [`Code of ${mixed.handler}`, `changed while it ran: ${mixed.versions.join(", ")}`] as const,
          ),
        ]}
      />
      <h3>Inputs</h3>
      <Value value={job.input_params ?? {}} name="Inputs" />
      {job.result !== undefined && job.result !== null && (
        <>
          <h3>Result</h3>
          <Value value={job.result} name="Result" />
        </>
      )}
    </section>
  );
}

function AssetLink({ assetId, revision }: { assetId: string; revision: number | null | undefined }) {
  return (
    <Link href={`/assets/${assetId}`}>
      {assetId.slice(0, 13)} {revision ? `r${revision}` : ""}
    </Link>
  );
}

/** The identifier of the asset that a job works for, for the title. */
export function useAssetName(assetId: string | null | undefined): string | null {
  const may = useMay();
  const asset = useQuery({
    queryKey: ["asset-name", assetId],
    queryFn: () => ok(api.GET("/api/assets/{asset_id}", { params: { path: { asset_id: assetId ?? "" } } })),
    enabled: Boolean(assetId) && may("GET /api/assets/{asset_id}"),
    staleTime: 300_000,
    retry: false,
  });
  if (!assetId) return null;
  return asset.data?.stac_item_id ?? assetId.slice(0, 13);
}
