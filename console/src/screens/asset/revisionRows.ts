/** The revisions of an asset in one list: the newest is the asset itself, the others are kept beside it. */

import type { AssetDetails } from "@/api/schema";

export interface RevisionRow {
  revision: number;
  at: string;
  processing: string;
  approval: string;
  clearance: string;
  outputs: unknown;
  hash: string | null;
  job: string | null;
  /** What is special about it. */
  note: string;
  /** Whether a new revision can be made of it. */
  canReturn: boolean;
}

export function revisionRows(asset: AssetDetails): RevisionRow[] {
  const newest = asset.requests.find((request) => request.revision === asset.revision);
  const current: RevisionRow = {
    revision: asset.revision,
    at: newest?.created_at ?? asset.updated_at,
    processing: asset.processing_status,
    approval: asset.approval_state,
    clearance: asset.clearance_state,
    outputs: asset.served_revision === asset.revision ? asset.outputs : null,
    hash: asset.output_file_hash,
    job: asset.current_job_id,
    note: noteOf(asset, asset.revision),
    canReturn: false,
  };
  const earlier = asset.revisions.map((revision) => ({
    revision: revision.revision,
    at: revision.created_at,
    processing: revision.processing_status_at_supersession,
    approval: revision.approval_state_at_supersession,
    clearance: revision.clearance_state_at_supersession,
    outputs: revision.outputs,
    hash: revision.output_file_hash ?? null,
    job: revision.job_id ?? null,
    note: noteOf(asset, revision.revision),
    canReturn: Boolean(revision.outputs) && !revision.deleted_at,
  }));
  return [current, ...earlier];
}

function noteOf(asset: AssetDetails, revision: number): string {
  if (asset.deleted_at) return "";
  const served = revision === asset.served_revision;
  const outside = revision === asset.external_revision;
  if (served && outside) return "served, also outside";
  if (served) return revision === asset.public_revision ? "served, public" : "served";
  if (outside) return "served outside";
  return revision === asset.public_revision ? "public" : "";
}
