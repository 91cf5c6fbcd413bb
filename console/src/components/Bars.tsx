/** Stacked bars over time, drawn as SVG. Colours are those of the states; a failed job is at least two pixels high, so
 * that one among thousands is seen. */

import { useId } from "react";

export interface Bar {
  /** The moment at which it begins. */
  at: string;
  counts: Record<string, number>;
}

const ORDER = ["completed", "cancelled", "running", "pending", "queued", "failed"];
const SMALLEST = 2;

export interface Piece {
  state: string;
  y: number;
  height: number;
}

/** The pieces of one bar, from below; those that are too small to see are made larger at the cost of the largest. */
export function piecesOf(counts: Record<string, number>, most: number, height: number): Piece[] {
  const sizes = ORDER.filter((state) => (counts[state] ?? 0) > 0).map((state) => ({
    state,
    size: Math.max(SMALLEST, ((counts[state] ?? 0) / Math.max(1, most)) * height),
  }));
  const excess = sizes.reduce((sum, piece) => sum + piece.size, 0) - height;
  const largest = sizes.reduce<(typeof sizes)[number] | null>(
    (one, other) => (one && one.size >= other.size ? one : other),
    null,
  );
  if (excess > 0 && largest) largest.size = Math.max(SMALLEST, largest.size - excess);
  let top = height;
  return sizes.map(({ state, size }) => {
    top -= size;
    return { state, y: top, height: size };
  });
}

export function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, value) => sum + value, 0);
}

const WIDTH = 1000;

/** The chart fills its parent. `label` says in a sentence what it shows. */
export function Bars({ bars, height = 120, label }: { bars: readonly Bar[]; height?: number; label: string }) {
  const id = useId();
  const most = Math.max(1, ...bars.map((bar) => total(bar.counts)));
  const width = WIDTH / Math.max(1, bars.length);
  return (
    <svg className="bars" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" role="img" aria-labelledby={id}>
      <title id={id}>{label}</title>
      {bars.map((bar, place) => (
        <g key={bar.at}>
          {piecesOf(bar.counts, most, height).map((piece) => (
            <rect
              key={piece.state}
              className={`st-${piece.state}`}
              x={place * width + 0.5}
              y={piece.y}
              width={Math.max(1, width - 1)}
              height={piece.height}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}
