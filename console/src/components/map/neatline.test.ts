import { describe, expect, it } from "vitest";
import { degrees, stepFor, ticks } from "./neatline";

describe("the frame of a map", () => {
  it("puts degrees at least 110 pixels apart", () => {
    for (const perPixel of [0.5, 0.01, 0.00003]) expect(stepFor(perPixel) / perPixel).toBeGreaterThanOrEqual(110);
    expect(stepFor(10)).toBe(90);
  });

  it("writes degrees with the digits of the step, also across the antimeridian", () => {
    expect(degrees(106.81, 0.01, "EW")).toBe("106.81° E");
    expect(degrees(-6.1, 0.1, "NS")).toBe("6.1° S");
    expect(degrees(190, 10, "EW")).toBe("170° W");
    expect(degrees(0, 1, "EW")).toBe("0°");
  });

  it("labels every fifth tick", () => {
    const found = ticks(0, 1, 0.5, "EW", (value) => value * 100);
    expect(found.filter((tick) => tick.label).map((tick) => tick.label)).toEqual(["0.0°", "0.5° E", "1.0° E"]);
    expect(found).toHaveLength(11);
  });
});
