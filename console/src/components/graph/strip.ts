/** The heat strip of a fan-out: at most a hundred buckets of neighbours, each a stack of its states. */

export interface Bucket {
  first: number;
  last: number;
  states: Record<string, number>;
}

export interface Bar {
  state: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** From the bottom to the top. What failed hangs from the top, and what has not begun stays empty. */
const STACK = ["completed", "running", "dispatched"] as const;
export const LEAST_FAILED = 6;
const GAP = 0.5;

export function bars(buckets: readonly Bucket[], width: number, height: number): Bar[] {
  const step = width / Math.max(buckets.length, 1);
  const gap = buckets.length > 1 ? Math.min(GAP, step / 4) : 0;
  return buckets.flatMap((bucket, place) => {
    const size = bucket.last - bucket.first + 1;
    const x = place * step;
    let bottom = height;
    const stack = STACK.flatMap((state) => {
      const share = ((bucket.states[state] ?? 0) / size) * height;
      if (share === 0) return [];
      bottom -= share;
      return [{ state, x, y: bottom, width: step - gap, height: share }];
    });
    const failed = bucket.states.failed ?? 0;
    if (failed > 0) {
      const share = Math.max(LEAST_FAILED, (failed / size) * height);
      stack.push({ state: "failed" as never, x, y: 0, width: step, height: Math.min(height, share) });
    }
    return stack;
  });
}

const ORDER = ["completed", "running", "dispatched", "ready", "pending", "skipped", "cancelled", "failed"];

/** The states with their counts, in the order in which an item goes through them; those without items are left out. */
export function ordered(states: Record<string, number>): [state: string, items: number][] {
  return ORDER.flatMap((state) => (states[state] ? [[state, states[state]] as [string, number]] : []));
}

export interface Pace {
  perMinute: number;
  secondsLeft: number | null;
}

/** How fast items end, and how long the rest takes at this pace. */
export function pace(ended: number, total: number, seconds: number): Pace | null {
  if (ended <= 0 || seconds <= 0) return null;
  return { perMinute: (ended / seconds) * 60, secondsLeft: ended < total ? ((total - ended) * seconds) / ended : null };
}
