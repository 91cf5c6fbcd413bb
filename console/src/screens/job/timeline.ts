/** The timeline of a job: for each node its waits and runs, each attempt as a pair of them. */

import type { AttemptView } from "@/api/schema";

export interface Timed {
  status: string;
  attempt: number;
  dispatched_at?: string | null;
  started_at?: string | null;
  completed_at?: string | null;
}

export interface Segment {
  kind: "wait" | "run";
  /** The state whose colour the segment has. */
  state: string;
  from: number;
  to: number;
  attempt: number;
}

type Attempt = Pick<AttemptView, "attempt" | "status" | "started_at" | "ended_at">;

const at = (text: string | null | undefined) => (text ? new Date(text).getTime() : null);
const UNDER_WAY = new Set(["running", "dispatched", "ready"]);

/** The segments of a node or an item. `attempts` are those that ended; without them only the latest one is known. */
export function segments(node: Timed, attempts: readonly Attempt[], now: number): Segment[] {
  const earlier = attempts
    .filter((attempt) => attempt.attempt < node.attempt)
    .sort((one, other) => one.attempt - other.attempt);
  const drawn: Segment[] = [];
  let free: number | null = null; // since when the node waits for the next attempt
  for (const attempt of earlier) {
    const [from, to] = [at(attempt.started_at), at(attempt.ended_at)];
    if (from === null || to === null) continue;
    if (free !== null) drawn.push(wait(free, from, attempt.attempt));
    drawn.push({ kind: "run", state: attempt.status, from, to, attempt: attempt.attempt });
    free = to;
  }
  return [...drawn, ...latest(node, free, now)].filter((segment) => segment.to >= segment.from);
}

function latest(node: Timed, free: number | null, now: number): Segment[] {
  const sent = free ?? at(node.dispatched_at);
  const begun = at(node.started_at);
  const open = UNDER_WAY.has(node.status);
  const ended = at(node.completed_at) ?? (open ? now : null);
  const drawn: Segment[] = [];
  if (sent !== null && (begun !== null || ended !== null))
    drawn.push(wait(sent, Math.max(sent, begun ?? ended ?? sent), node.attempt));
  if (begun !== null && ended !== null)
    drawn.push({ kind: "run", state: node.status, from: begun, to: ended, attempt: node.attempt });
  return drawn;
}

function wait(from: number, to: number, attempt: number): Segment {
  return { kind: "wait", state: "dispatched", from, to, attempt };
}

export function seconds(drawn: readonly Segment[], kind: Segment["kind"]): number {
  return drawn.reduce((sum, segment) => sum + (segment.kind === kind ? segment.to - segment.from : 0), 0) / 1000;
}

export interface Axis {
  from: number;
  to: number;
  ticks: { at: number; label: string }[];
  unit: string;
}

const STEPS: readonly [seconds: number, unit: string, divisor: number][] = [
  [0.1, "seconds", 1],
  [0.2, "seconds", 1],
  [0.5, "seconds", 1],
  [1, "seconds", 1],
  [2, "seconds", 1],
  [5, "seconds", 1],
  [10, "seconds", 1],
  [20, "seconds", 1],
  [60, "minutes", 60],
  [120, "minutes", 60],
  [300, "minutes", 60],
  [600, "minutes", 60],
  [1800, "minutes", 60],
  [3600, "hours", 3600],
  [7200, "hours", 3600],
  [21_600, "hours", 3600],
  [43_200, "hours", 3600],
  [86_400, "days", 86_400],
  [604_800, "days", 86_400],
];
const MOST_TICKS = 8;

/** A scale from the job's beginning to what is expected last, with round steps. */
export function axis(from: number, to: number): Axis {
  const span = Math.max((to - from) / 1000, 0.5);
  const last = STEPS.at(-1) as (typeof STEPS)[number];
  const [step, unit, divisor] = STEPS.find(([length]) => span / length <= MOST_TICKS) ?? last;
  const width = Math.max(step, span / step > MOST_TICKS ? Math.ceil(span / MOST_TICKS / step) * step : step);
  const ticks = Array.from({ length: Math.floor(span / width + 1e-9) + 1 }, (_, place) => ({
    at: from + place * width * 1000,
    label: String(Math.round(((place * width) / divisor) * 10) / 10),
  }));
  return { from, to: from + span * 1000, ticks, unit };
}

export function share(scale: Axis, moment: number): number {
  return Math.min(1, Math.max(0, (moment - scale.from) / (scale.to - scale.from)));
}

/** When a node that runs is expected to end, by the part of it that is done. */
export function expected(node: Timed & { progress?: number | null }, now: number): number | null {
  const begun = at(node.started_at);
  if (node.status !== "running" || begun === null || !node.progress || node.progress < 0.02 || node.progress >= 1)
    return null;
  return begun + (now - begun) / node.progress;
}
