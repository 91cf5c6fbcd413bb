/** The outline of the world as polygons and lines that a flat map can fill and draw.
 *
 * The file has no cut along 180°: the ring of Chukotka goes from 180° straight to -180°, and that of Antarctica goes once
 * around the pole. Drawn as they are, they are stripes across the whole map. */

import type { Feature, FeatureCollection, Geometry, MultiLineString, MultiPolygon, Polygon, Position } from "geojson";
import { feature, mesh } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";

export type World = Topology<{ countries: GeometryCollection; land: GeometryCollection }>;

const HALF = 180;
const TURN = 360;
const POLE = 90;

/** The positions with longitudes that go on past 180° rather than jump to the other side. */
export function unwrapped(positions: readonly Position[]): Position[] {
  let turns = 0;
  let before: number | null = null;
  return positions.map(([longitude = 0, latitude = 0]) => {
    if (before !== null && longitude - before > HALF) turns -= TURN;
    if (before !== null && before - longitude > HALF) turns += TURN;
    before = longitude;
    return [longitude + turns, latitude];
  });
}

/** A ring that can be filled. One that goes around a pole is closed along that pole. */
export function filledRing(ring: readonly Position[]): Position[] {
  const path = unwrapped(ring);
  const [first, last] = [path[0], path.at(-1)];
  if (!first || !last || Math.abs((last[0] ?? 0) - (first[0] ?? 0)) < HALF) return path;
  const south = path.reduce((sum, position) => sum + (position[1] ?? 0), 0) < 0;
  const pole = south ? -POLE : POLE;
  return [...path, [last[0] ?? 0, pole], [first[0] ?? 0, pole], first];
}

function filled<Shape extends Geometry>(geometry: Shape): Shape | Polygon | MultiPolygon {
  if (geometry.type === "Polygon") return { ...geometry, coordinates: geometry.coordinates.map(filledRing) };
  if (geometry.type !== "MultiPolygon") return geometry;
  return { ...geometry, coordinates: geometry.coordinates.map((rings) => rings.map(filledRing)) };
}

export function landOf(world: World): FeatureCollection {
  const land = feature(world, world.objects.land);
  return { ...land, features: land.features.map((part) => ({ ...part, geometry: filled(part.geometry) })) };
}

export function bordersOf(world: World): Feature<MultiLineString> {
  const lines = mesh(world, world.objects.countries, (one, other) => one !== other);
  return {
    type: "Feature",
    properties: {},
    geometry: { ...lines, coordinates: lines.coordinates.map((line) => unwrapped(line)) },
  };
}
