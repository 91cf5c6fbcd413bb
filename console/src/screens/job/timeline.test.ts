import { describe, expect, it } from "vitest";
import { axis, expected, seconds, segments, share } from "./timeline";

const zero = Date.parse("2026-11-18T09:00:00Z");
const time = (offset: number) => new Date(zero + offset * 1000).toISOString();
const now = zero + 100_000;

describe("segments of a node", () => {
  it("tells waiting and running apart", () => {
    const node = {
      status: "completed",
      attempt: 1,
      dispatched_at: time(1),
      started_at: time(3),
      completed_at: time(10),
    };
    const drawn = segments(node, [], now);
    expect(drawn.map((segment) => [segment.kind, segment.state])).toEqual([
      ["wait", "dispatched"],
      ["run", "completed"],
    ]);
    expect([seconds(drawn, "wait"), seconds(drawn, "run")]).toEqual([2, 7]);
  });

  it("draws each attempt as a pair", () => {
    const attempts = [
      { attempt: 2, status: "failed", started_at: time(8), ended_at: time(9) },
      { attempt: 1, status: "failed", started_at: time(2), ended_at: time(5) },
      { attempt: 3, status: "failed", started_at: time(20), ended_at: time(22) },
    ];
    const node = { status: "failed", attempt: 3, dispatched_at: time(9), started_at: time(20), completed_at: time(22) };
    const drawn = segments(node, attempts, now);
    expect(drawn.map((segment) => [segment.kind, segment.attempt, (segment.from - zero) / 1000])).toEqual([
      ["run", 1, 2],
      ["wait", 2, 5],
      ["run", 2, 8],
      ["wait", 3, 9],
      ["run", 3, 20],
    ]);
    expect(seconds(drawn, "run")).toBe(3 + 1 + 2);
  });

  it("goes on until now while the node runs or waits", () => {
    expect(segments({ status: "running", attempt: 1, started_at: time(90) }, [], now)).toMatchObject([
      { kind: "run", to: now },
    ]);
    expect(segments({ status: "dispatched", attempt: 1, dispatched_at: time(90) }, [], now)).toMatchObject([
      { kind: "wait", to: now },
    ]);
  });

  it("has nothing to draw before a node begins, and after it was skipped", () => {
    expect(segments({ status: "pending", attempt: 0 }, [], now)).toEqual([]);
    expect(segments({ status: "skipped", attempt: 0, completed_at: time(3) }, [], now)).toEqual([]);
  });
});

describe("the axis", () => {
  it.each([
    [4, "seconds", ["0", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4"]],
    [70 * 60, "minutes", ["0", "10", "20", "30", "40", "50", "60", "70"]],
    [30 * 3600, "hours", ["0", "6", "12", "18", "24", "30"]],
  ])("has round steps for %s seconds", (span, unit, labels) => {
    const scale = axis(zero, zero + span * 1000);
    expect([scale.unit, scale.ticks.map((tick) => tick.label)]).toEqual([unit, labels]);
  });

  it("never has more than a few steps, and none for a year is outside", () => {
    const scale = axis(zero, zero + 365 * 86_400_000);
    expect(scale.ticks.length).toBeLessThanOrEqual(10);
    for (const tick of scale.ticks) expect(share(scale, tick.at)).toBeLessThanOrEqual(1);
  });

  it("has a width even if nothing has happened yet", () => expect(share(axis(zero, zero), zero)).toBe(0));
});

describe("what is expected", () => {
  it("follows from the part that is done", () => {
    const node = { status: "running", attempt: 1, started_at: time(0), progress: 0.5 };
    expect(expected(node, now)).toBe(zero + 200_000);
  });
  it("is unknown at the beginning and after the end", () => {
    expect(expected({ status: "running", attempt: 1, started_at: time(0), progress: 0.001 }, now)).toBeNull();
    expect(expected({ status: "completed", attempt: 1, started_at: time(0), progress: 0.5 }, now)).toBeNull();
  });
});
