import { describe, expect, it } from "vitest";
import { isoDay, latestDay, secondsUntilEndOf } from "./lastDay";

const now = new Date(2026, 10, 18, 22, 30);

describe("the last day of a link", () => {
  it("ends at midnight of the viewer's zone", () => {
    expect(secondsUntilEndOf("2026-11-18", now)).toBe(90 * 60);
    expect(secondsUntilEndOf("2026-11-19", now)).toBe(90 * 60 + 86_400);
  });

  it("is neither in the past nor further than the gateway signs", () => {
    expect(secondsUntilEndOf("2026-11-17", now)).toBeNull();
    expect(isoDay(latestDay(now))).toBe("2026-12-17");
    expect(secondsUntilEndOf(isoDay(latestDay(now)), now)).toBeLessThanOrEqual(30 * 86_400);
    expect(secondsUntilEndOf("2026-12-18", now)).toBeNull();
    for (const text of ["", "soon", "2026-1-1"]) expect(secondsUntilEndOf(text, now)).toBeNull();
  });
});
