import { describe, expect, it } from "vitest";
import { type Bucket, bars, LEAST_FAILED, ordered, pace } from "./strip";

const bucket = (first: number, last: number, states: Record<string, number>): Bucket => ({ first, last, states });

describe("the strip of a fan-out", () => {
  it("shows one failure among ten thousand", () => {
    const buckets = Array.from({ length: 100 }, (_, place) =>
      bucket(place * 100, place * 100 + 99, place === 24 ? { completed: 99, failed: 1 } : { completed: 100 }),
    );
    const failed = bars(buckets, 334, 34).filter((bar) => bar.state === "failed");
    expect(failed).toHaveLength(1);
    expect(failed[0]).toMatchObject({ y: 0, height: LEAST_FAILED });
    expect(failed[0]?.x).toBeCloseTo(24 * 3.34);
  });

  it("stacks completed at the bottom, then running, then dispatched", () => {
    const stack = bars([bucket(0, 9, { dispatched: 2, completed: 5, running: 1, pending: 2 })], 100, 40);
    expect(stack.map((bar) => [bar.state, bar.y, bar.height])).toEqual([
      ["completed", 20, 20],
      ["running", 16, 4],
      ["dispatched", 8, 8],
    ]);
  });

  it("never leaves its frame", () => {
    for (const bar of bars([bucket(0, 0, { failed: 1 }), bucket(1, 1, { completed: 1 })], 334, 34)) {
      expect(bar.y).toBeGreaterThanOrEqual(0);
      expect(bar.y + bar.height).toBeLessThanOrEqual(34);
      expect(bar.x + bar.width).toBeLessThanOrEqual(334);
    }
  });

  it("is empty without buckets", () => expect(bars([], 334, 34)).toEqual([]));
});

describe("counts and pace", () => {
  it("orders the states as an item goes through them", () =>
    expect(ordered({ failed: 2, completed: 5, pending: 0, running: 1 })).toEqual([
      ["completed", 5],
      ["running", 1],
      ["failed", 2],
    ]));

  it("says how long the rest takes", () => {
    expect(pace(50, 100, 60)).toEqual({ perMinute: 50, secondsLeft: 60 });
    expect(pace(100, 100, 60)?.secondsLeft).toBeNull();
    expect(pace(0, 100, 60)).toBeNull();
  });
});
