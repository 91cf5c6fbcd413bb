import { describe, expect, it } from "vitest";
import { areaOf, columnChanges, differencesOf, sidesOf } from "./differences";

const table = (rows: number, columns: [string, string][], bbox = [106, -7, 107, -6]) => ({
  bbox,
  stac_item: {
    properties: { "table:row_count": rows, "table:columns": columns.map(([name, type]) => ({ name, type })) },
  },
});

describe("differences of revisions", () => {
  it("tell features, extent and columns of a vector", () => {
    const before = table(100, [
      ["a", "text"],
      ["b", "integer"],
      ["old", "text"],
    ]);
    const after = table(
      103,
      [
        ["a", "text"],
        ["b", "double"],
        ["new", "text"],
      ],
      [106, -7, 107, -5.9],
    );
    const rows = Object.fromEntries(differencesOf(before, after).map((row) => [row.name, row]));
    expect(rows.Features).toMatchObject({ before: "100", after: "103", change: "+3", tone: "more" });
    expect(rows.Extent).toMatchObject({ change: "+ at N", tone: "more" });
    expect(rows.Columns).toMatchObject({ change: "+1 −1 ~1", tone: "changed" });
  });

  it("tell the statistics of a raster's bands", () => {
    const raster = (mean: number) => ({ statistics: [{ minimum: 0, maximum: 9, mean, valid_percent: 100 }] });
    const rows = differencesOf(raster(4), raster(5.5));
    expect(rows.find((row) => row.name === "Mean")).toMatchObject({ before: "4", after: "5.5", change: "+1.5" });
    expect(rows.find((row) => row.name === "Minimum")).toMatchObject({ change: "–", tone: "same" });
    expect(rows.some((row) => row.name === "Features")).toBe(false);
  });

  it("say nothing about outputs that have nothing to compare", () => {
    expect(differencesOf(null, { anything: 1 })).toEqual([]);
  });

  it("list each column that came, went or changed", () => {
    const changes = columnChanges([{ name: "a", type: "integer" }], [{ name: "a", type: "text" }]);
    expect(changes).toEqual([{ sign: "~", text: "a integer → text", tone: "changed" }]);
  });

  it("measure boxes", () => {
    expect(areaOf([0, 0, 1, 1])).toBeCloseTo(12392, -1);
    expect(sidesOf([0, 0, 10, 10], [0, 0, 10, 10.001])).toBe("");
    expect(sidesOf([0, 0, 10, 10], [-1, 0, 11, 10])).toBe("W E");
  });
});
