import { describe, expect, it } from "vitest";
import { assembled, restored, SpeedMeter } from "./desk";

describe("the desk of uploads", () => {
  it("shows a file with its companions as one, which has arrived when all have", () => {
    const facts = { platformId: "ddh", folder: "f", uploadId: "u", speed: null, problem: null };
    const main = { ...facts, key: "a", name: "a.tif", size: 10, sent: 10, status: "arrived" as const, mainKey: null };
    const world = { ...facts, key: "w", name: "a.tfw", size: 2, sent: 1, status: "paused" as const, mainKey: "a" };
    const other = { ...main, key: "b", name: "b.tif" };
    const [first, second, ...more] = assembled([main, world, other]);
    expect(first).toMatchObject({ key: "a", name: "a.tif", status: "paused", size: 12, sent: 11 });
    expect(second).toMatchObject({ key: "b", status: "arrived", size: 10 });
    expect(more).toEqual([]);
    expect(assembled([main, { ...world, status: "arrived" }])[0]?.status).toBe("arrived");
  });

  it("tells the speed of the last seconds", () => {
    const speed = new SpeedMeter();
    expect(speed.at(0, 0)).toBeNull();
    expect(speed.at(1000, 1000)).toBe(1000);
    expect(speed.at(9000, 3000)).toBe(3000);
    expect(speed.at(9000, 7500)).toBeNull();
  });

  it("knows after a reload what arrived, and asks for the bytes of the rest", () => {
    const file = { key: "a", name: "a.tif", size: 10, platformId: "ddh", uploadId: "u", sent: 4, speed: null };
    const text = JSON.stringify([
      { ...file, status: "arrived", problem: null },
      { ...file, key: "b", status: "sending", problem: null },
    ]);
    expect(restored(text).map((entry) => entry.status)).toEqual(["arrived", "missing"]);
    expect(restored(text)[0]).toMatchObject({ folder: null, mainKey: null });
    expect(restored("not JSON")).toEqual([]);
    expect(restored(null)).toEqual([]);
  });
});
