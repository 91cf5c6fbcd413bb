import { expect, it } from "vitest";
import { type Publication, publications } from "./publications";

const decided = (asset_id: string, decision: Publication["decision"], revision = 1): Publication => ({
  asset_id,
  decision,
  revision,
  stac_item_id: asset_id,
  title: null,
  clearance_state: "public",
  at: "2026-11-19T00:00:00Z",
});

it("lists each published asset once, and none that was taken back", () => {
  const decisions = [
    decided("a", "rejected", 3),
    decided("b", "revoked"),
    decided("a", "approved", 2),
    decided("b", "approved"),
    decided("a", "approved", 1),
    decided("c", "clearance_changed"),
  ];
  expect(publications(decisions).map((entry) => [entry.asset_id, entry.revision])).toEqual([
    ["a", 2],
    ["c", 1],
  ]);
});
