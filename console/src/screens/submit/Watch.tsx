/** A submission becomes a map: its job's progress, then the result with links to asset and job. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { ButtonLink } from "@/components/Button";
import { ErrorNote } from "@/components/ErrorNote";
import { Facts } from "@/components/Facts";
import { Id } from "@/components/Id";
import { Loading } from "@/components/Loading";
import { MapFrame } from "@/components/map/MapFrame";
import { Note } from "@/components/Note";
import { Badge } from "@/components/states";
import { percent } from "@/format/number";
import { duration } from "@/format/time";
import { useLive } from "@/live";
import { usePictures } from "@/map/layers";
import { useRevisionPicture } from "@/map/picture";
import { useMay } from "@/shell/session";
import { ended, useJobLink, useStanding } from "./queries";

type AssetStanding = Extract<NonNullable<ReturnType<typeof useStanding>["data"]>, { asset: unknown }>;

export function Watch({ requestId, name, again }: { requestId: string; name: string; again: ReactNode }) {
  const standing = useStanding(requestId);
  const may = useMay();
  const jobId = standing.data?.job_id ?? null;
  const follows = jobId !== null && !ended(standing.data?.status) && may("GET /api/v1/jobs/{job_id}/stream");
  useLive(follows ? `job:${jobId}` : null, {
    refresh: [],
    patch: (client) => void client.invalidateQueries({ queryKey: ["status", requestId] }),
  });
  if (standing.error && !standing.data)
    return <ErrorNote error={standing.error} onRetry={() => void standing.refetch()} />;
  if (!standing.data || !("asset" in standing.data)) return <Loading lines={6} />;
  return <Progressed standing={standing.data} name={name} again={again} />;
}

function Progressed({ standing, name, again }: { standing: AssetStanding; name: string; again: ReactNode }) {
  const { asset, progress, status } = standing;
  const jobLink = useJobLink()(standing.job_id);
  const done = status === "completed";
  return (
    <>
      <div className="line wrap">
        <h2 className="file-title">{asset.stac_item_id}</h2>
        <span className="tag">r{standing.revision}</span>
        <Badge state={status} />
        {done && <Badge state={asset.approval_state} />}
      </div>
      {!ended(status) && (
        <div className="card watch" role="status" aria-label="Progress of the job">
          <span className="progress">
            <i style={{ width: `${progress.fraction * 100}%` }} />
          </span>
          <span className="line small soft">
            <span className="grow">
              {percent(progress.fraction)}, {progress.nodes_ended ?? 0} of {progress.nodes_total ?? 0} steps
              {progress.remaining_seconds ? `, ${duration(progress.remaining_seconds)} left` : ""}
            </span>
            {jobLink && <Link href={jobLink}>Open the job</Link>}
          </span>
          {progress.waits?.map((reason) => (
            <Note key={reason} kind="warn">
              {reason}
            </Note>
          ))}
        </div>
      )}
      {standing.error && (
        <Note kind="bad" more={standing.error.remedy}>
          {standing.error.message}
        </Note>
      )}
      {done && <Result standing={standing} />}
      <div className="line wrap">
        {done && (
          <ButtonLink kind="primary" href={`/assets/${standing.asset_id}`}>
            Open the asset
          </ButtonLink>
        )}
        {jobLink && <ButtonLink href={jobLink}>Open the job</ButtonLink>}
        {again}
      </div>
      <div className="card watch">
        <Facts
          facts={[
            ["File", name],
            ["Asset", <Id key="asset" id={standing.asset_id} copy />],
            ["Request", standing.request_id && <Id key="request" id={standing.request_id} copy />],
            ["Job", standing.job_id && <Id key="job" id={standing.job_id} copy />],
          ]}
        />
      </div>
      {standing.warnings?.map((warning) => (
        <Note key={warning} kind="warn">
          {warning}
        </Note>
      ))}
    </>
  );
}

/** The result as tiles draw it. Only its submitter and staff see it until it is approved. */
function Result({ standing }: { standing: AssetStanding }) {
  const { asset, asset_id, revision, outputs } = standing;
  const { data_type, table_name } = asset;
  const { pictures, bounds } = useRevisionPicture({ asset_id, revision, data_type, table_name, outputs });
  const { onReady } = usePictures(pictures);
  if (!bounds) return <Loading lines={6} />;
  return <MapFrame className="result" label={`Map of ${asset.stac_item_id}`} bounds={bounds} onReady={onReady} />;
}
