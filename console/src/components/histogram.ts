import type { JobHistogram } from "@/api/schema";
import type { Bar } from "./Bars";

export interface Counted {
  /** A bar for each part of the time; none for parts of which not all jobs were counted. */
  bars: Bar[];
  /** The share of the time, from 0 to 1, of which not all jobs were counted. */
  uncounted: number;
  /** Where the rest begins. */
  since: string;
  /** The length of the rest, in minutes. */
  minutes: number;
}

/** What a histogram says for sure. Of very many jobs only the newest are counted, of each state as many: an early part
 * may then have all of its failed jobs and none of its completed ones. */
export function counted(histogram: JobHistogram): Counted {
  const begin = Date.parse(histogram.created_from);
  const end = Date.parse(histogram.created_to);
  const sure = histogram.complete_from ? Date.parse(histogram.complete_from) : begin;
  const bars = histogram.parts.map((part) => ({
    at: part.begins_at,
    counts: Date.parse(part.begins_at) >= sure ? part.counts : {},
  }));
  const first = bars.find((bar) => Date.parse(bar.at) >= sure);
  const from = first ? Date.parse(first.at) : end;
  return {
    bars,
    since: new Date(from).toISOString(),
    uncounted: (from - begin) / (end - begin),
    minutes: (end - from) / 60_000,
  };
}
