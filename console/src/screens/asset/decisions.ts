/** What can be decided about an asset outside of the review: other eyes, none, or the outside copy again. */

import type { Rule } from "@/api/client";
import type { AssetDetails } from "@/api/schema";

export type DecisionName = "public" | "ouo" | "revoke" | "unpublish" | "export";

const RULES: Record<DecisionName, Rule> = {
  public: "POST /api/platform/approve",
  ouo: "POST /api/platform/approve",
  revoke: "POST /api/platform/revoke",
  unpublish: "POST /api/platform/unpublish",
  export: "POST /api/platform/export/retry",
};

type Standing = Pick<
  AssetDetails,
  "approval_state" | "clearance_state" | "deleted_at" | "jobs" | "processing_status" | "public_revision"
>;

/** The decisions that the state of the asset and the caller's role allow, in the order of the menu. */
export function decisionsOf(asset: Standing, may: (rule: Rule) => boolean): DecisionName[] {
  const active = !asset.deleted_at;
  const approved = active && asset.approval_state === "approved" && asset.processing_status === "completed";
  const fits: Record<DecisionName, boolean> = {
    export: outsideFailed(asset),
    public: approved && asset.clearance_state === "ouo",
    ouo: approved && asset.clearance_state === "public",
    revoke: active && (asset.approval_state === "approved" || asset.public_revision !== null),
    unpublish: active,
  };
  return (Object.keys(fits) as DecisionName[]).filter((name) => fits[name] && may(RULES[name]));
}

/** Whether the latest job that changes the outside copy did not succeed. */
export function outsideFailed(asset: Pick<AssetDetails, "jobs">): boolean {
  const latest = asset.jobs
    .filter((job) => job.purpose === "export" || job.purpose === "withdraw")
    .sort((one, other) => other.created_at.localeCompare(one.created_at))[0];
  return latest?.status === "failed" || latest?.status === "cancelled";
}

/** What a decision does, told before the click. */
export function consequenceOf(decision: DecisionName, revision: number): string {
  switch (decision) {
    case "public":
      return `Everybody will see r${revision}. A job copies it to the external zone.`;
    case "ouo":
      return `r${revision} is taken away from outside. Those who are signed in still see it.`;
    case "revoke":
      return "The approval is taken back, and nothing serves the asset any more, inside or outside. To submit it again makes a new revision.";
    case "unpublish":
      return "The asset leaves every list and service, inside and outside. To submit it again brings it back as a new revision.";
    case "export":
      return "The job that failed runs again.";
  }
}
