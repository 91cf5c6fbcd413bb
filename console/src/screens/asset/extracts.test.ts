import { expect, test } from "vitest";
import { needsExtract } from "./extracts";

const vector = (rows: number) => ({ stac_item: { properties: { "table:row_count": rows } } });
const raster = (height: number, width: number, bands: number) => ({
  stac_item: { properties: { "proj:shape": [height, width] } },
  statistics: Array.from({ length: bands }, () => ({})),
});

test("what one answer cannot have is ordered", () => {
  expect(needsExtract(vector(1_000_000))).toBe(false);
  expect(needsExtract(vector(1_000_001))).toBe(true);
  expect(needsExtract(raster(20_000, 20_000, 1))).toBe(false);
  expect(needsExtract(raster(20_000, 20_000, 2))).toBe(true);
  expect(needsExtract(null)).toBe(false);
});
