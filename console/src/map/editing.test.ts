import { describe, expect, it } from "vitest";
import type { RasterStyle } from "@/api/schema";
import {
  inMode,
  modeOf,
  stretchAt,
  withBand,
  withChannel,
  withColormap,
  withOpacity,
  withStretch,
  writtenOut,
} from "./editing";
import type { Band } from "./outputs";

const band = (number: number, minimum: number, maximum: number): Band => ({
  number,
  name: `band ${number}`,
  unit: null,
  minimum,
  maximum,
  mean: null,
  deviation: null,
  valid: null,
  histogram: null,
});
const bands = [band(1, 0, 10), band(2, 5, 50), band(3, -1, 1)];
const none = { bidx: [], rescale: [], legend: [] };
const legend = [
  { text: "0", color: "#000000" },
  { text: "10", color: "#ffffff" },
];
const ramp: RasterStyle = writtenOut(null, { ...none, legend }, bands) ?? { kind: "raster" };

describe("styles of a raster, changed by hand", () => {
  it("writes out what the data is drawn with", () => {
    expect(ramp).toEqual({
      kind: "raster",
      bidx: [1],
      ramp: [
        { value: 0, color: "#000000" },
        { value: 10, color: "#ffffff" },
      ],
    });
    expect(writtenOut(null, { ...none, bidx: [3, 2, 1] }, bands)).toEqual({ kind: "raster", bidx: [3, 2, 1] });
    expect(writtenOut(null, none, bands)).toBeNull();
    const same = [...legend].map((entry) => ({ ...entry, text: "1" }));
    expect(writtenOut(null, { ...none, legend: same }, bands)).toBeNull();
  });

  it("writes out what is drawn before it fades it, and fades a palette as it is", () => {
    expect(withOpacity(null, 0.5, { ...none, legend }, bands)).toEqual({ ...ramp, opacity: 0.5 });
    expect(withOpacity(null, 0.5, none, [])).toEqual({ kind: "raster", opacity: 0.5 });
    expect(withOpacity({ kind: "raster", bidx: [2], opacity: 0.5 }, 1, none, bands)).toEqual({
      kind: "raster",
      bidx: [2],
      opacity: 1,
    });
  });

  it("knows the mode, and begins each with a stretch of the data", () => {
    expect(modeOf(null, { ...none, bidx: [1, 2, 3] })).toBe("three");
    expect(modeOf({ kind: "raster", colormap_name: "magma" }, { ...none, bidx: [1, 2, 3] })).toBe("one");
    expect(inMode("three", bands).rescale).toEqual([
      [0, 10],
      [5, 50],
      [-1, 1],
    ]);
    expect(inMode("three", bands.slice(0, 1)).bidx).toEqual([1, 1, 1]);
    expect(modeOf(inMode("expression", bands), none)).toBe("expression");
  });

  it("moves a ramp to the values of another band or stretch", () => {
    expect(withBand(ramp, 2, bands).ramp?.map((stop) => stop.value)).toEqual([5, 50]);
    expect(withStretch(ramp, 0, [2, 4], bands).ramp?.map((stop) => stop.value)).toEqual([2, 4]);
    expect(withStretch(ramp, 0, [4, 4], bands)).toBe(ramp);
    expect(stretchAt(ramp, 0, bands)).toEqual([0, 10]);
  });

  it("gives each channel its own stretch", () => {
    const style: RasterStyle = { kind: "raster", bidx: [1, 2, 3], rescale: [[0, 255]] };
    expect(withStretch(style, 1, [7, 9], bands).rescale).toEqual([
      [0, 255],
      [7, 9],
      [0, 255],
    ]);
    expect(withChannel(style, 2, 1, bands)).toEqual({
      kind: "raster",
      bidx: [1, 2, 1],
      rescale: [
        [0, 255],
        [0, 255],
        [0, 10],
      ],
    });
  });

  it("replaces a ramp by a colour map over the same values", () => {
    expect(withColormap(ramp, "magma", bands)).toMatchObject({ bidx: [1], rescale: [[0, 10]], colormap_name: "magma" });
    expect(withColormap(ramp, "magma", bands)).not.toHaveProperty("ramp");
    expect(withColormap(inMode("expression", bands), "magma", bands).expression).toBe("(b2-b1)/(b2+b1)");
  });
});
