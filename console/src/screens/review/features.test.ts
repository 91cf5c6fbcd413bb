import type { Feature } from "geojson";
import { describe, expect, it } from "vitest";
import { compareFeatures } from "./features";

function point(x: number, properties: Record<string, unknown>): Feature {
  return { type: "Feature", geometry: { type: "Point", coordinates: [x, 0] }, properties };
}

const ids = (features: Feature[]) => features.map((feature) => feature.properties?.id);

describe("differences of features", () => {
  it("are found by a column that identifies them; numbers of rows and new columns do not count", () => {
    const before = [
      point(1, { gid: 1, id: "a", use: "x" }),
      point(2, { gid: 2, id: "b", use: "x" }),
      point(3, { gid: 3, id: "c", use: "x" }),
    ];
    const after = [
      point(1, { gid: 7, id: "a", use: "x", more: 1 }),
      point(2, { gid: 8, id: "b", use: "y", more: 1 }),
      point(4, { gid: 9, id: "d", use: "x", more: 1 }),
    ];
    const differences = compareFeatures(before, after);
    expect(ids(differences.added)).toEqual(["d"]);
    expect(ids(differences.removed)).toEqual(["c"]);
    expect(ids(differences.changed)).toEqual(["b"]);
    expect(differences.changedFrom[0]?.properties?.use).toBe("x");
  });

  it("pair features that share a value with those that are equal", () => {
    const before = [point(1, { id: "a" }), point(2, { id: "a" })];
    const after = [point(2, { id: "a" }), point(3, { id: "a" })];
    const differences = compareFeatures(before, after, "id");
    expect(differences.changed).toHaveLength(1);
    expect([differences.added, differences.removed]).toEqual([[], []]);
  });

  it("go by the place where no column identifies", () => {
    const differences = compareFeatures([point(1, { use: "x" }), point(2, { use: "x" })], [point(1, { use: "y" })]);
    expect(differences.changed).toHaveLength(1);
    expect(differences.removed).toHaveLength(1);
  });
});
