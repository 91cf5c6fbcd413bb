import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Polygon, Position } from "geojson";
import { describe, expect, it } from "vitest";
import { bordersOf, filledRing, landOf, unwrapped, type World } from "./world";

const world = JSON.parse(
  readFileSync(createRequire(import.meta.url).resolve("world-atlas/countries-50m.json"), "utf8"),
) as World;

type Place = [longitude: number, latitude: number];

function longestStep(positions: readonly Position[]): number {
  const longitudes = (positions as Place[]).map(([longitude]) => longitude);
  return Math.max(...longitudes.slice(1).map((longitude, index) => Math.abs(longitude - (longitudes[index] ?? 0))));
}

/** Whether a place is inside of a ring, by the crossings of a line to the east. */
function inside(ring: readonly Position[], x: number, y: number): boolean {
  const places = ring as Place[];
  const crossings = places.slice(1).filter(([endX, endY], index) => {
    const [startX, startY] = places[index] as Place;
    if (startY > y === endY > y) return false;
    return startX + ((y - startY) / (endY - startY)) * (endX - startX) > x;
  });
  return crossings.length % 2 === 1;
}

const polygons = landOf(world).features.flatMap((part) =>
  part.geometry.type === "MultiPolygon" ? part.geometry.coordinates : [(part.geometry as Polygon).coordinates],
);

function isLand(longitude: number, latitude: number): boolean {
  return polygons.some((rings) =>
    [-360, 0, 360].some((turn) => rings.filter((ring) => inside(ring, longitude + turn, latitude)).length % 2 === 1),
  );
}

describe("the outline of the world", () => {
  it("goes on past 180° instead of jumping across the map", () => {
    const path = unwrapped([
      [179, 66],
      [-179, 67],
      [-178, 68],
      [179, 69],
    ]);
    expect(path.map(([longitude]) => longitude)).toEqual([179, 181, 182, 179]);
    for (const rings of polygons) {
      const outer = (rings[0] as Place[]).filter(([, latitude]) => Math.abs(latitude) < 90);
      expect(longestStep(outer.slice(0, -1))).toBeLessThan(180);
    }
    for (const line of bordersOf(world).geometry.coordinates) expect(longestStep(line)).toBeLessThan(180);
  });

  it("closes a ring around the pole along the pole", () => {
    const ring = [-180, -90, 0, 90, 180].map((longitude) => [longitude, -70]);
    expect(filledRing(ring).slice(-3)).toEqual([
      [180, -90],
      [-180, -90],
      [-180, -70],
    ]);
  });

  it.each([
    ["the Atlantic", -30, 45, false],
    ["the North Sea", -1, 58, false],
    ["the Arctic Sea", 0, 80, false],
    ["the Barents Sea", 35, 72, false],
    ["the Pacific", -150, 20, false],
    ["Chukotka", 178, 67, true],
    ["Chukotka east of 180°", -176, 67, true],
    ["Fiji's largest island", 178, -17.8, true],
    ["Java", 110, -7.3, true],
    ["Antarctica", 20, -80, true],
    ["the pole", -100, -89, true],
  ])("knows %s", (_, longitude, latitude, land) => {
    expect(isLand(longitude, latitude)).toBe(land);
  });
});
