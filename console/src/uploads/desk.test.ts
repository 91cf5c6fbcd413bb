import { describe, expect, it } from "vitest";
import { restored, SpeedMeter } from "./desk";

describe("the desk of uploads", () => {
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
    expect(restored("not JSON")).toEqual([]);
    expect(restored(null)).toEqual([]);
  });
});
