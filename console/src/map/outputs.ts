/** What a revision of an asset has, read from its outputs. A workflow may have written anything there, so everything is
 * checked before it is used. */

import type { Bounds } from "@/components/map/MapFrame";

export interface Histogram {
  min: number;
  max: number;
  buckets: number[];
}

export interface Band {
  /** Counted from 1. */
  number: number;
  name: string;
  unit: string | null;
  minimum: number | null;
  maximum: number | null;
  mean: number | null;
  deviation: number | null;
  /** The share of pixels that are valid, in percent. */
  valid: number | null;
  histogram: Histogram | null;
}

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

const FARTHEST = 85;

/** The extent as a map takes it: west of east, also across the antimeridian, and within what Web Mercator can show. */
export function boundsOf(bbox: unknown): Bounds | undefined {
  const numbers = list(bbox).map(number);
  if (numbers.length !== 4 || numbers.some((value) => value === null)) return undefined;
  const [west, south, east, north] = numbers as Bounds;
  const inside = (latitude: number) => Math.max(-FARTHEST, Math.min(FARTHEST, latitude));
  return [west, inside(south), east < west ? east + 360 : east, inside(north)];
}

/** The extent that holds all of them. */
export function unionOf(all: readonly Bounds[]): Bounds | undefined {
  if (all.length === 0) return undefined;
  return [
    Math.min(...all.map((box) => box[0])),
    Math.min(...all.map((box) => box[1])),
    Math.max(...all.map((box) => box[2])),
    Math.max(...all.map((box) => box[3])),
  ];
}

function histogramOf(value: unknown): Histogram | null {
  const { min, max, buckets } = fields(value);
  const [low, high] = [number(min), number(max)];
  const counts = list(buckets).map((count) => number(count) ?? 0);
  if (low === null || high === null || high <= low || counts.every((count) => count <= 0)) return null;
  return { min: low, max: high, buckets: counts };
}

function itemOf(outputs: unknown): Fields {
  return fields(fields(outputs).stac_item);
}

/** The bands with their statistics. Names and units come from the STAC item, if it has them. */
export function bandsOf(outputs: unknown): Band[] {
  const files = Object.values(fields(itemOf(outputs).assets)).map(fields);
  const described = list(files.find((file) => Array.isArray(file.bands))?.bands).map(fields);
  return list(fields(outputs).statistics).map((entry, place) => {
    const band = fields(entry);
    return {
      number: place + 1,
      name: text(described[place]?.name) ?? `band ${place + 1}`,
      unit: text(described[place]?.unit),
      minimum: number(band.minimum),
      maximum: number(band.maximum),
      mean: number(band.mean),
      deviation: number(band.stddev),
      valid: number(band.valid_percent),
      histogram: histogramOf(band.histogram),
    };
  });
}

export interface DataColumn {
  name: string;
  type: string;
}

/** The columns of a vector, without its geometry. */
export function columnsOf(outputs: unknown): DataColumn[] {
  const { properties } = itemOf(outputs);
  return list(fields(properties)["table:columns"])
    .map(fields)
    .filter((column) => column.name !== fields(properties)["table:primary_geometry"])
    .flatMap((column) => {
      const name = text(column.name);
      return name ? [{ name, type: text(column.type) ?? "" }] : [];
    });
}

/** The names under which the layers of a vector are served. A layer that was split by kind of geometry has several. */
export function collectionsOf(assetId: string, tableName: string | null, outputs: unknown): string[] {
  const main = tableName ?? "";
  const others = list(fields(outputs).tables)
    .map((table) => text(fields(table).table_name))
    .filter((name): name is string => name !== null && name !== main);
  return [assetId, ...[...new Set(others)].sort().map((name) => `${assetId}.${name.replace(`${main}_`, "")}`)];
}

export interface OutputFile {
  path: string;
  role: string;
  size: number | null;
  sha256: string | null;
}

export function filesOf(outputs: unknown): OutputFile[] {
  return list(fields(outputs).files)
    .map(fields)
    .flatMap((file) => {
      const path = text(file.path);
      return path ? [{ path, role: text(file.role) ?? "", size: number(file.size), sha256: text(file.sha256) }] : [];
    });
}

/** The bytes of all files, or null if none is known. */
export function sizeOf(outputs: unknown): number | null {
  const sizes = filesOf(outputs).flatMap((file) => (file.size === null ? [] : [file.size]));
  return sizes.length > 0 ? sizes.reduce((sum, size) => sum + size, 0) : number(fields(outputs).size_bytes);
}

export interface DataFacts {
  crs: string | null;
  /** Height and width in pixels. */
  shape: [number, number] | null;
  rows: number | null;
  rasterType: string | null;
  series: boolean;
}

export function factsOf(outputs: unknown): DataFacts {
  const properties = fields(itemOf(outputs).properties);
  const [height, width] = list(properties["proj:shape"]).map(number);
  return {
    crs: text(properties["proj:code"]),
    shape: height && width ? [height, width] : null,
    rows: number(properties["table:row_count"]) ?? number(fields(outputs).rows),
    rasterType: text(fields(outputs).raster_type),
    series: fields(outputs).scenes !== undefined,
  };
}
