import { describe, expect, it } from "vitest";
import { startOfDay, summary } from "./decisions";

describe("what was decided today", () => {
  it("is counted by decision, approvals first", () => {
    const decisions = (["rejected", "approved", "approved", "rolled_back"] as const).map((decision) => ({ decision }));
    expect(summary(decisions)).toBe("2 approved, 1 rejected, 1 gone back");
    expect(summary(decisions, true)).toBe("2 approved, 1 rejected, 1 gone back and more");
    expect(summary([])).toBeNull();
  });

  it("begins at midnight of the viewer's zone", () => {
    const start = new Date(startOfDay(new Date(2026, 10, 18, 22, 40)));
    expect([start.getDate(), start.getHours(), start.getMinutes()]).toEqual([18, 0, 0]);
  });
});
