import { describe, expect, it } from "vitest";
import { piecesOf, total } from "./Bars";

describe("piecesOf", () => {
  it("stacks from below, failures on top, and never leaves the chart", () => {
    const pieces = piecesOf({ completed: 9_999, failed: 1 }, 10_000, 100);
    expect(pieces.map((piece) => piece.state)).toEqual(["completed", "failed"]);
    expect(pieces[1]?.height).toBe(2);
    expect(pieces[1]?.y).toBeGreaterThanOrEqual(-1e-9);
    expect(pieces[0]?.y).toBeCloseTo(2, 5);
  });

  it("draws nothing for nothing", () => {
    expect(piecesOf({}, 0, 100)).toEqual([]);
    expect(total({ a: 2, b: 3 })).toBe(5);
  });
});
