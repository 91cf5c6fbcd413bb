/** The range of values that gets all colours, from the histogram of a band. */

import type { Band, Histogram } from "./outputs";
import type { Stretch } from "./style";

export const PRESETS = {
  percent: "2 to 98 %",
  whole: "min to max",
  deviation: "mean ± 2σ",
} as const;

export type Preset = keyof typeof PRESETS;

const OUTERMOST = 0.02;

/** The value below which a share of the counts lies. */
export function quantile(histogram: Histogram, share: number): number {
  const total = histogram.buckets.reduce((sum, count) => sum + count, 0);
  const width = (histogram.max - histogram.min) / histogram.buckets.length;
  let before = 0;
  for (const [place, count] of histogram.buckets.entries()) {
    if (count > 0 && before + count >= total * share)
      return histogram.min + width * (place + Math.max(0, total * share - before) / count);
    before += count;
  }
  return histogram.max;
}

/** The stretch of a preset, or null if the band lacks what it needs. */
export function presetStretch(band: Band, preset: Preset): Stretch | null {
  const { minimum, maximum, mean, deviation, histogram } = band;
  if (preset === "percent" && histogram) {
    const clamp = (value: number) => Math.min(maximum ?? value, Math.max(minimum ?? value, value));
    return rising(clamp(quantile(histogram, OUTERMOST)), clamp(quantile(histogram, 1 - OUTERMOST)));
  }
  if (preset === "deviation" && mean !== null && deviation !== null)
    return rising(mean - 2 * deviation, mean + 2 * deviation);
  return minimum === null || maximum === null ? null : rising(minimum, maximum);
}

/** Which preset a stretch is of, or null if it was set by hand. */
export function presetOf(band: Band, stretch: Stretch): Preset | null {
  const names = Object.keys(PRESETS) as Preset[];
  return (
    names.find((name) => {
      const preset = presetStretch(band, name);
      const tolerance = Math.abs((preset?.[1] ?? 0) - (preset?.[0] ?? 0)) * 1e-3;
      return preset?.every((value, place) => Math.abs(value - (stretch[place] ?? 0)) <= tolerance) ?? false;
    }) ?? null
  );
}

function rising(low: number, high: number): Stretch {
  return high > low ? [neat(low, high - low), neat(high, high - low)] : [low, low + 1];
}

/** A number with as many digits as matter in a range. */
export function neat(value: number, range: number): number {
  const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(Math.abs(range) || 1))));
  return Number(value.toFixed(digits));
}

const grouped = (digits: number) => new Intl.NumberFormat("en-GB", { maximumFractionDigits: digits });

/** A value of the data for people: `2,235`, `0.184`, `1.2e-7`. */
export function valueText(value: number | null | undefined, range = Math.abs(value ?? 0)): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toPrecision(3);
  return grouped(Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(range || 1))))).format(value);
}

/** At most `most` bars: neighbouring buckets are added up. Each has its range and its count. */
export function bars(histogram: Histogram, most: number): { from: number; to: number; count: number }[] {
  const size = Math.max(1, Math.ceil(histogram.buckets.length / most));
  const width = (histogram.max - histogram.min) / histogram.buckets.length;
  const result: { from: number; to: number; count: number }[] = [];
  for (let start = 0; start < histogram.buckets.length; start += size) {
    const part = histogram.buckets.slice(start, start + size);
    result.push({
      from: histogram.min + width * start,
      to: histogram.min + width * (start + part.length),
      count: part.reduce((sum, count) => sum + count, 0),
    });
  }
  return result;
}

/** The part of a histogram that has counts, so that a few bars are not lost in an empty range. */
export function trimmed(histogram: Histogram): Histogram {
  const first = histogram.buckets.findIndex((count) => count > 0);
  const last = histogram.buckets.findLastIndex((count) => count > 0);
  if (first < 0) return histogram;
  const width = (histogram.max - histogram.min) / histogram.buckets.length;
  return {
    min: histogram.min + width * first,
    max: histogram.min + width * (last + 1),
    buckets: histogram.buckets.slice(first, last + 1),
  };
}
