/** The frame of a map: ticks and degrees along the upper and the left edge. */

export interface Tick {
  /** Pixels from the left or from the top. */
  at: number;
  /** The degrees, at the larger ticks. */
  label: string | null;
}

const STEPS = [
  90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001,
];
const APART = 110;

/** The distance in degrees between larger ticks, so that they are at least 110 pixels apart. */
export function stepFor(degreesPerPixel: number): number {
  const fitting = STEPS.filter((step) => step / degreesPerPixel >= APART);
  return fitting.at(-1) ?? 90;
}

/** `106.81° E`, with as many digits as the step needs. */
export function degrees(value: number, step: number, signs: "EW" | "NS"): string {
  const digits = step >= 1 ? 0 : Math.min(4, Math.ceil(-Math.log10(step) - 1e-9));
  const wrapped = signs === "EW" ? ((((value + 180) % 360) + 360) % 360) - 180 : value;
  const sign = wrapped < 0 ? signs[1] : signs[0];
  return `${Math.abs(wrapped).toFixed(digits)}° ${Math.abs(wrapped) < 1e-9 ? "" : sign}`.trim();
}

/** The ticks between two values. `project` turns degrees into pixels. */
export function ticks(
  from: number,
  to: number,
  step: number,
  signs: "EW" | "NS",
  project: (value: number) => number,
): Tick[] {
  const small = step / 5;
  const result: Tick[] = [];
  for (let number = Math.ceil(from / small - 1e-9); number * small <= to; number += 1) {
    const value = number * small;
    result.push({ at: project(value), label: number % 5 === 0 ? degrees(value, step, signs) : null });
  }
  return result;
}
