import { describe, expect, it } from "vitest";
import { nextFailed } from "./selection";

const nodes = [
  { node_id: "a", status: "completed" },
  { node_id: "tiles", status: "completed" },
  { node_id: "z", status: "failed" },
];
const summaries = new Map([["tiles", { failed: [{ index: 3 }, { index: 7 }] }]]);

describe("the next failure", () => {
  it("goes through items and nodes in their order, and round", () => {
    const first = nextFailed(nodes, summaries, null, null);
    expect(first).toEqual({ nodeId: "tiles", index: 3 });
    const second = nextFailed(nodes, summaries, "tiles", 3);
    expect(second).toEqual({ nodeId: "tiles", index: 7 });
    expect(nextFailed(nodes, summaries, "tiles", 7)).toEqual({ nodeId: "z", index: null });
    expect(nextFailed(nodes, summaries, "z", null)).toEqual(first);
  });
  it("is nowhere if nothing failed", () => expect(nextFailed(nodes.slice(0, 1), new Map(), null, null)).toBeNull());
});
