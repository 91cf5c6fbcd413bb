import { describe, expect, it } from "vitest";
import { applySnapshot } from ".";

const id = (row: { id: string }) => row.id;

describe("applySnapshot", () => {
  it("keeps the order, changes in place, adds at the end and removes", () => {
    const rows = applySnapshot<{ id: string; n?: number }>(
      [{ id: "old" }],
      [
        { name: "snapshot", data: { rows: [{ id: "a" }, { id: "b" }] } },
        { name: "changed", data: { id: "a", n: 2 } },
        { name: "changed", data: { id: "c" } },
        { name: "left", data: { id: "b" } },
      ],
      id,
    );
    expect(rows).toEqual([{ id: "a", n: 2 }, { id: "c" }]);
  });
});
