import { expect, it } from "vitest";
import type { AssetDetails } from "@/api/schema";
import { decisionsOf, outsideFailed } from "./decisions";

const all = () => true;
const asset = (more: Partial<AssetDetails>) =>
  ({
    approval_state: "approved",
    clearance_state: "ouo",
    processing_status: "completed",
    public_revision: null,
    deleted_at: null,
    jobs: [],
    ...more,
  }) as unknown as AssetDetails;
const job = (purpose: string, status: string, created_at: string) =>
  ({ purpose, status, created_at }) as AssetDetails["jobs"][number];

it("offers what the state allows", () => {
  expect(decisionsOf(asset({}), all)).toEqual(["public", "revoke", "unpublish"]);
  expect(decisionsOf(asset({ clearance_state: "public", public_revision: 1 }), all)).toEqual([
    "ouo",
    "revoke",
    "unpublish",
  ]);
  expect(decisionsOf(asset({ approval_state: "pending_review" }), all)).toEqual(["unpublish"]);
  expect(decisionsOf(asset({ approval_state: "pending_review", public_revision: 1 }), all)).toEqual([
    "revoke",
    "unpublish",
  ]);
  expect(decisionsOf(asset({ deleted_at: "2026-11-19T00:00:00Z" }), all)).toEqual([]);
});

it("offers nothing that the role does not open", () => {
  expect(decisionsOf(asset({}), (rule) => rule === "POST /api/platform/unpublish")).toEqual(["unpublish"]);
});

it("knows that the latest change outside has failed", () => {
  const failed = job("export", "failed", "2026-11-19T01:00:00Z");
  expect(outsideFailed({ jobs: [failed, job("process", "completed", "2026-11-19T02:00:00Z")] })).toBe(true);
  expect(outsideFailed({ jobs: [failed, job("export", "completed", "2026-11-19T02:00:00Z")] })).toBe(false);
  expect(decisionsOf(asset({ jobs: [failed] }), all)[0]).toBe("export");
});
