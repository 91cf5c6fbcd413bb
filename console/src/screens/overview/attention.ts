/** What needs attention, most urgent first: each with its reason and the place where it is dealt with. */

import type { Health } from "@/api/schema";
import { count, plural, shortId } from "@/format/number";
import { duration } from "@/format/time";

export interface Concern {
  id: string;
  /** The state whose sign it has, or a warning. */
  state: string | null;
  title: string;
  reason: string;
  action: { text: string; href: string };
}

/** A queue whose oldest message waits for longer is named. */
const SLOW_SECONDS = 60;

/** How many failed submissions are read. */
export const MOST_FAILED = 100;

/** A submission whose newest revision failed, and that nobody has repeated. */
export interface FailedAsset {
  workflow_id?: string | null;
  last_error?: string | null;
}

/** An export or a withdrawal that failed, and that nobody has repeated: the copy outside is not as it was decided. */
export interface FailedExport {
  asset_id: string;
  asset_name?: string | null;
  purpose: string;
  error?: string | null;
}

interface Waiting {
  asset_id: string;
  processing_completed_at?: string | null;
}

export function concernsOf(
  health: Health,
  reviews: readonly Waiting[],
  failed: readonly FailedAsset[],
  exports: readonly FailedExport[],
  now: number,
): Concern[] {
  return [
    ...outside(exports),
    ...reviewsOf(reviews, now),
    ...failedOf(failed),
    ...letters(health),
    ...processes(health),
    ...queues(health),
    ...paused(health),
    ...parked(health),
    ...space(health),
  ];
}

function reviewsOf(reviews: readonly Waiting[], now: number): Concern[] {
  if (reviews.length === 0) return [];
  const oldest = [...reviews].sort((one, other) =>
    (one.processing_completed_at ?? "").localeCompare(other.processing_completed_at ?? ""),
  )[0];
  const since = oldest?.processing_completed_at;
  return [
    {
      id: "reviews",
      state: "pending_review",
      title: `${plural(reviews.length, "revision")} ${reviews.length === 1 ? "waits" : "wait"} for review`,
      reason: since ? `oldest ${duration((now - Date.parse(since)) / 1000)}` : "new",
      action: { text: "Review", href: "/review" },
    },
  ];
}

function failedOf(assets: readonly FailedAsset[]): Concern[] {
  const [latest] = assets;
  if (!latest) return [];
  const many =
    assets.length >= MOST_FAILED ? `${MOST_FAILED} or more submissions` : plural(assets.length, "submission");
  return [
    {
      id: "failed-assets",
      state: "failed",
      title: `${many} failed`,
      reason: `${latest.workflow_id ?? "the latest"}: ${latest.last_error ?? "no reason is known"}`,
      action: { text: "Look at them", href: "/assets?processing_status=failed" },
    },
  ];
}

function outside(exports: readonly FailedExport[]): Concern[] {
  return [
    ["withdraw", "withdrawal", "is still outside"] as const,
    ["export", "export", "is not outside"] as const,
  ].flatMap(([purpose, word, meaning]) => {
    const rows = exports.filter((failure) => failure.purpose === purpose);
    const [latest] = rows;
    if (!latest) return [];
    return [
      {
        id: `failed-${purpose}`,
        state: "failed",
        title: `${plural(rows.length, word)} failed`,
        reason: `${latest.asset_name ?? latest.asset_id} ${meaning}: ${latest.error ?? "no reason is known"}`,
        action: { text: "Open asset", href: `/assets/${latest.asset_id}` },
      },
    ];
  });
}

function letters(health: Health): Concern[] {
  const byQueue = new Map<string, { letters: number; reasons: string[] }>();
  for (const entry of health.dead_letters ?? []) {
    const known = byQueue.get(entry.queue_name) ?? { letters: 0, reasons: [] };
    known.letters += entry.letters;
    known.reasons.push(entry.reason);
    byQueue.set(entry.queue_name, known);
  }
  return [...byQueue].map(([queue, entry]) => ({
    id: `letters-${queue}`,
    state: "failed",
    title: `${plural(entry.letters, "dead letter")} on ${queue}`,
    reason: entry.reasons.join(", "),
    action: { text: "Look at them", href: `/operations?tab=dead-letters` },
  }));
}

function processes(health: Health): Concern[] {
  return health.instances
    .filter((instance) => !instance.alive)
    .map((instance) => ({
      id: instance.instance_id,
      state: "failed",
      title: `${instance.role} ${shortId(instance.instance_id)} is lost`,
      reason: `no heartbeat for ${duration(instance.heartbeat_seconds)}; others take its work over`,
      action: { text: "Show", href: "/operations?tab=processes" },
    }));
}

function queues(health: Health): Concern[] {
  return health.queues
    .filter(
      (queue) => queue.waiting > 0 && ((queue.oldest_seconds ?? 0) > SLOW_SECONDS || (queue.consumers ?? 0) === 0),
    )
    .map((queue) => ({
      id: `queue-${queue.queue_name}`,
      state: null,
      title: (queue.consumers ?? 0) === 0 ? `Nobody serves ${queue.queue_name}` : `Work waits on ${queue.queue_name}`,
      reason: `${count(queue.waiting)} wait, oldest ${duration(queue.oldest_seconds ?? 0)}; ${plural(queue.consumers ?? 0, "process", "processes")} take from it`,
      action: { text: "Show", href: "/operations?tab=queues" },
    }));
}

function paused(health: Health): Concern[] {
  const jobs = health.jobs.paused ?? 0;
  if (jobs === 0) return [];
  return [
    {
      id: "paused",
      state: "paused",
      title: `${plural(jobs, "job")} ${jobs === 1 ? "is" : "are"} paused`,
      reason: "nothing new begins until somebody resumes them",
      action: { text: "Look at them", href: "/jobs?paused=true" },
    },
  ];
}

function parked(health: Health): Concern[] {
  const parkedJobs = health.parked ?? [];
  if (parkedJobs.length === 0) return [];
  return [
    {
      id: "parked",
      state: "paused",
      title: `${plural(parkedJobs.length, "job")} ${parkedJobs.length === 1 ? "is" : "are"} parked`,
      reason: parkedJobs[0]?.parked_reason ?? "",
      action: { text: "Look at them", href: "/operations?tab=parked" },
    },
  ];
}

function space(health: Health): Concern[] {
  return (health.space ?? [])
    .filter((place) => place.low)
    .map((place) => ({
      id: `space-${place.place}`,
      state: null,
      title: `Little space in ${place.place}`,
      reason: "delete what is old, or give it more room",
      action: { text: "Show", href: "/operations?tab=storage" },
    }));
}
