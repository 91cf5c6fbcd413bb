/** Differences between the public revision and the new one, from their outputs. */

import { bytes, count, percent } from "@/format/number";
import { type Band, bandsOf, boundsOf, columnsOf, type DataColumn, factsOf, sizeOf } from "@/map/outputs";

export type Tone = "same" | "more" | "less" | "changed";

export interface Difference {
  name: string;
  before: string;
  after: string;
  change: string;
  tone: Tone;
}

export interface ColumnChange {
  sign: "+" | "−" | "~";
  text: string;
  tone: Tone;
}

export function differencesOf(before: unknown, after: unknown): Difference[] {
  const [old, now] = [factsOf(before), factsOf(after)];
  const rows = [
    counted("Features", old.rows, now.rows),
    areas(before, after),
    words("CRS", old.crs, now.crs),
    words("Pixels", shapeText(old.shape), shapeText(now.shape)),
    words("Type", old.rasterType, now.rasterType),
    columnCounts(columnsOf(before), columnsOf(after)),
    ...bandRows(bandsOf(before), bandsOf(after)),
    now.rows === null ? sized(sizeOf(before), sizeOf(after)) : null,
  ];
  return rows.filter((row) => row !== null);
}

function toneOf(delta: number): Tone {
  return delta === 0 ? "same" : delta > 0 ? "more" : "less";
}

function signed(delta: number, text: string): string {
  return delta === 0 ? "–" : `${delta > 0 ? "+" : "−"}${text}`;
}

function counted(name: string, before: number | null, after: number | null): Difference | null {
  if (before === null || after === null) return null;
  const delta = after - before;
  return {
    name,
    before: count(before),
    after: count(after),
    change: signed(delta, count(Math.abs(delta))),
    tone: toneOf(delta),
  };
}

function sized(before: number | null, after: number | null): Difference | null {
  if (before === null || after === null) return null;
  const delta = after - before;
  const change = before > 0 ? percent(Math.abs(delta) / before) : bytes(Math.abs(delta));
  return {
    name: "Files",
    before: bytes(before),
    after: bytes(after),
    change: signed(delta, change),
    tone: delta === 0 ? "same" : "changed",
  };
}

function words(name: string, before: string | null, after: string | null): Difference | null {
  if (before === null && after === null) return null;
  const same = before === after;
  return {
    name,
    before: before ?? "–",
    after: after ?? "–",
    change: same ? "–" : "changed",
    tone: same ? "same" : "changed",
  };
}

function shapeText(shape: [number, number] | null): string | null {
  return shape && `${count(shape[1])} × ${count(shape[0])}`;
}

const KILOMETRES_PER_DEGREE = 111.32;

/** The area of a box in square kilometres. */
export function areaOf([west, south, east, north]: readonly [number, number, number, number]): number {
  const middle = ((south + north) / 2) * (Math.PI / 180);
  return (east - west) * (north - south) * KILOMETRES_PER_DEGREE ** 2 * Math.cos(middle);
}

function areaText(area: number): string {
  return `${area < 100 ? Number(area.toPrecision(3)) : count(Math.round(area))} km²`;
}

/** The extent, and towards which sides it has grown or shrunk. */
function areas(before: unknown, after: unknown): Difference | null {
  const [old, now] = [before, after].map((outputs) => boundsOf((outputs as { bbox?: unknown } | null)?.bbox));
  if (!old || !now) return null;
  const delta = areaOf(now) - areaOf(old);
  const sides = sidesOf(old, now);
  return {
    name: "Extent",
    before: areaText(areaOf(old)),
    after: areaText(areaOf(now)),
    change: sides === "" ? "–" : `${delta >= 0 ? "+" : "−"} at ${sides}`,
    tone: sides === "" ? "same" : toneOf(delta),
  };
}

/** The sides at which two boxes differ by more than a thousandth of their width. */
export function sidesOf(
  old: readonly [number, number, number, number],
  now: readonly [number, number, number, number],
): string {
  const tolerance = Math.max(old[2] - old[0], old[3] - old[1]) / 1000;
  const names = ["W", "S", "E", "N"];
  return names.filter((_, side) => Math.abs((now[side] ?? 0) - (old[side] ?? 0)) > tolerance).join(" ");
}

function columnCounts(before: DataColumn[], after: DataColumn[]): Difference | null {
  if (before.length === 0 && after.length === 0) return null;
  const changes = columnChanges(before, after);
  const signs = (["+", "−", "~"] as const).flatMap((sign) => {
    const number = changes.filter((change) => change.sign === sign).length;
    return number > 0 ? [`${sign}${number}`] : [];
  });
  return {
    name: "Columns",
    before: count(before.length),
    after: count(after.length),
    change: signs.join(" ") || "–",
    tone: signs.length > 0 ? "changed" : "same",
  };
}

export function columnChanges(before: DataColumn[], after: DataColumn[]): ColumnChange[] {
  const types = new Map(before.map((column) => [column.name, column.type]));
  const names = new Set(after.map((column) => column.name));
  const added: ColumnChange[] = after
    .filter((column) => !types.has(column.name))
    .map((column) => ({ sign: "+", text: `${column.name} ${column.type}`, tone: "more" }));
  const removed: ColumnChange[] = before
    .filter((column) => !names.has(column.name))
    .map((column) => ({ sign: "−", text: `${column.name} ${column.type}`, tone: "less" }));
  const changed: ColumnChange[] = after
    .filter((column) => types.has(column.name) && types.get(column.name) !== column.type)
    .map((column) => ({
      sign: "~",
      text: `${column.name} ${types.get(column.name)} → ${column.type}`,
      tone: "changed",
    }));
  return [...added, ...removed, ...changed];
}

const BANDS_MOST = 4;

function bandRows(before: Band[], after: Band[]): (Difference | null)[] {
  if (before.length === 0 && after.length === 0) return [];
  const pairs = after.slice(0, BANDS_MOST).map((band, place) => [before[place], band] as const);
  return [
    before.length === after.length ? null : counted("Bands", before.length, after.length),
    ...pairs.flatMap(([old, band]) => {
      const name = after.length > 1 ? `, ${band.name}` : "";
      return [
        measured(`Minimum${name}`, old?.minimum, band.minimum),
        measured(`Maximum${name}`, old?.maximum, band.maximum),
        measured(`Mean${name}`, old?.mean, band.mean),
        measured(`Valid pixels${name}`, old?.valid, band.valid, " %"),
      ];
    }),
  ];
}

function measured(name: string, before: number | null | undefined, after: number | null, unit = ""): Difference | null {
  if (before === null || before === undefined || after === null) return null;
  const text = (value: number) => `${Number(value.toPrecision(4)).toLocaleString("en-GB")}${unit}`;
  const delta = after - before;
  const same = text(before) === text(after);
  return {
    name,
    before: text(before),
    after: text(after),
    change: same ? "–" : signed(delta, text(Number(Math.abs(delta).toPrecision(2)))),
    tone: same ? "same" : "changed",
  };
}
