import { describe, expect, it } from "vitest";
import { viewOf, viewText } from "./address";
import { type Band, bandsOf, boundsOf, collectionsOf, columnsOf, factsOf, filesOf, sizeOf, unionOf } from "./outputs";
import { metresPerPixel, scaleBar, scaleNumber } from "./scale";
import { bars, neat, presetOf, presetStretch, quantile, trimmed, valueText } from "./stretch";

const histogram = { min: 0, max: 100, buckets: [0, 0, 50, 50, 0, 0, 0, 0, 0, 0] };
const band: Band = {
  number: 1,
  name: "elevation",
  unit: "m",
  minimum: 20,
  maximum: 40,
  mean: 30,
  deviation: 3,
  valid: 100,
  histogram,
};

describe("outputs", () => {
  it("reads bands with names of the STAC item, whichever file has them", () => {
    const outputs = {
      statistics: [{ minimum: 1, maximum: 2, mean: 1.5, stddev: 0.1, valid_percent: 99, histogram }],
      stac_item: { assets: { thumbnail: {}, mosaic: { bands: [{ name: "elevation", unit: "m" }] } } },
    };
    expect(bandsOf(outputs)).toEqual([
      { ...band, minimum: 1, maximum: 2, mean: 1.5, deviation: 0.1, valid: 99, name: "elevation" },
    ]);
  });

  it("survives whatever a workflow has written", () => {
    for (const odd of [null, 3, "x", [], { statistics: "x", files: [3, { path: 4 }], stac_item: [] }]) {
      expect([bandsOf(odd), columnsOf(odd), filesOf(odd), sizeOf(odd)]).toEqual([[], [], [], null]);
      expect(factsOf(odd).crs).toBeNull();
    }
    expect(bandsOf({ statistics: [{ histogram: { min: 0, max: 0, buckets: [1] } }] })[0]).toMatchObject({
      name: "band 1",
      minimum: null,
      histogram: null,
    });
  });

  it("continues across the antimeridian and stays inside of Web Mercator", () => {
    expect(boundsOf([170, -90, -170, 90])).toEqual([170, -85, 190, 85]);
    expect(boundsOf([1, 2, 3])).toBeUndefined();
    expect(boundsOf([1, 2, 3, null])).toBeUndefined();
    expect(
      unionOf([
        [0, 0, 1, 1],
        [-2, 0.5, 0, 3],
      ]),
    ).toEqual([-2, 0, 1, 3]);
  });

  it("names a collection for each table of a layer that was split", () => {
    const tables = [{ table_name: "a_r1_points" }, { table_name: "a_r1" }, { table_name: "a_r1_lines" }];
    expect(collectionsOf("id", "a_r1", { tables })).toEqual(["id", "id.lines", "id.points"]);
    expect(collectionsOf("id", "a_r1", {})).toEqual(["id"]);
  });
});

describe("stretches", () => {
  it("finds quantiles inside of buckets", () => {
    expect(quantile(histogram, 0.5)).toBe(30);
    expect(quantile(histogram, 0.25)).toBe(25);
    expect(quantile(histogram, 0)).toBe(20);
    expect(quantile(histogram, 1)).toBe(40);
  });

  it("knows its presets again", () => {
    expect(presetStretch(band, "percent")).toEqual([20.4, 39.6]);
    expect(presetStretch(band, "deviation")).toEqual([24, 36]);
    expect(presetOf(band, [20.4, 39.6])).toBe("percent");
    expect(presetOf(band, [20, 40])).toBe("whole");
    expect(presetOf(band, [0, 1])).toBeNull();
    expect(presetStretch({ ...band, minimum: 7, maximum: 7 }, "whole")).toEqual([7, 8]);
    expect(presetStretch({ ...band, minimum: null }, "whole")).toBeNull();
  });

  it("adds buckets up to few bars and leaves empty ends out", () => {
    expect(trimmed(histogram)).toEqual({ min: 20, max: 40, buckets: [50, 50] });
    const few = bars(histogram, 4);
    expect(few).toHaveLength(4);
    expect(few.map((bar) => bar.count)).toEqual([50, 50, 0, 0]);
    expect(few.at(-1)).toEqual({ from: 90, to: 100, count: 0 });
  });

  it("writes values with the digits that matter", () => {
    expect([valueText(2235.4), valueText(0.1837), valueText(null), valueText(0), valueText(1.2e-7)]).toEqual([
      "2,235",
      "0.184",
      "–",
      "0",
      "1.20e-7",
    ]);
    expect([neat(0.123456, 1), neat(1234.56, 3000)]).toEqual([0.123, 1235]);
  });
});

describe("the view of a map", () => {
  it("comes back from its address", () => {
    const view = { longitude: 116.52141, latitude: -8.4418, zoom: 9.6 };
    expect(viewOf(viewText(view))).toEqual({ longitude: 116.52141, latitude: -8.4418, zoom: 9.6 });
    for (const odd of [null, "", "1,2", "a,b,c", "1,99,3", "1,2,3,4", "1,2,-1"]) expect(viewOf(odd)).toBeNull();
  });

  it("has a scale by latitude", () => {
    expect(Math.round(metresPerPixel(0, 0))).toBe(78272);
    expect(scaleNumber(9.6, -8.5)).toBe("1 : 360,000");
    expect(scaleBar(9.6, -8.5)).toEqual({ width: 100, text: "10 km" });
    expect(scaleBar(22, 0).text).toBe("2 m");
  });
});
