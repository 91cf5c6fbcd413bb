/** What can be done with many jobs at once, and how: each job is asked for by itself, a few at a time. */

import { api, ok, type Rule } from "@/api/client";
import { asProblem, wording } from "@/api/problem";
import type { JobPage, JobSummary } from "@/api/schema";
import type { JobFilters, JobState } from "./filters";

const AT_ONCE = 6;
const PAGE = 500;

export interface BulkAction {
  name: "Retry" | "Pause" | "Resume" | "Cancel";
  doing: string;
  rule: Rule;
  /** The states of jobs that it may fit. */
  states: readonly JobState[];
  fits: (job: JobSummary) => boolean;
  run: (jobId: string, reason: string) => Promise<unknown>;
}

const path = (jobId: string) => ({ params: { path: { job_id: jobId } } });
const ended = (job: JobSummary) => ["completed", "failed", "cancelled"].includes(job.status);
const REASON = "cancelled in the console";

export const ACTIONS: readonly BulkAction[] = [
  {
    name: "Retry",
    doing: "Retrying",
    rule: "POST /api/v1/jobs/{job_id}/retry",
    states: ["failed", "cancelled"],
    fits: (job) => (job.status === "failed" || job.status === "cancelled") && !job.details_deleted_at,
    run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/retry", path(jobId))),
  },
  {
    name: "Resume",
    doing: "Resuming",
    rule: "POST /api/v1/jobs/{job_id}/resume",
    states: ["pending", "running"],
    fits: (job) => !ended(job) && job.paused === true,
    run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/resume", path(jobId))),
  },
  {
    name: "Pause",
    doing: "Pausing",
    rule: "POST /api/v1/jobs/{job_id}/pause",
    states: ["pending", "running"],
    fits: (job) => !ended(job) && !job.paused && job.status !== "queued",
    run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/pause", path(jobId))),
  },
  {
    name: "Cancel",
    doing: "Cancelling",
    rule: "POST /api/v1/jobs/{job_id}/cancel",
    states: ["queued", "pending", "running"],
    fits: (job) => !ended(job),
    run: (jobId, reason) =>
      ok(api.POST("/api/v1/jobs/{job_id}/cancel", { ...path(jobId), body: { reason: reason.trim() || REASON } })),
  },
];

export interface Tally {
  asked: number;
  refused: number;
  /** Why the first one was refused. */
  refusal: string | null;
}

interface BulkRun {
  run: (jobId: string) => Promise<unknown>;
  signal: AbortSignal;
  onProgress?: (tally: Tally) => void;
}

/** Runs an action for all of the pages' jobs, a few at a time, until it is stopped. A job on two pages is asked for once. */
export async function runAll(pages: AsyncIterable<readonly string[]>, options: BulkRun): Promise<Tally> {
  const tally: Tally = { asked: 0, refused: 0, refusal: null };
  const known = new Set<string>();
  const ask = async (id: string) => {
    await options.run(id).catch((error: unknown) => {
      tally.refused += 1;
      tally.refusal ??= wording(asProblem(error)).happened;
    });
    tally.asked += 1;
    options.onProgress?.({ ...tally });
  };
  for await (const page of pages) {
    const waiting = page.filter((id) => !known.has(id));
    for (const id of waiting) known.add(id);
    const work = async () => {
      while (!options.signal.aborted) {
        const id = waiting.shift();
        if (id === undefined) return;
        await ask(id);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (options.signal.aborted) break;
  }
  return tally;
}

/** The jobs of the filters that fit an action, page by page. Jobs that come after the beginning are left alone. */
export async function* matching(
  filters: JobFilters,
  action: BulkAction,
  read: (query: JobFilters & { limit: number; cursor?: string }) => Promise<JobPage> = readPage,
  now = new Date(),
): AsyncGenerator<string[]> {
  const status = statesOf(filters, action);
  if (status.length === 0) return;
  const end = now.toISOString();
  const query = { ...filters, status, limit: PAGE, created_to: filters.created_to ?? end };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: JobPage = await read(cursor ? { ...query, cursor } : query);
    yield page.jobs.filter(action.fits).map((job) => job.job_id);
    cursor = page.next_cursor ?? null;
  }
}

function readPage(query: JobFilters & { limit: number; cursor?: string }): Promise<JobPage> {
  return ok(api.GET("/api/v1/jobs", { params: { query } }));
}

/** The states that the filters let through and that the action may fit. */
export function statesOf(filters: JobFilters, action: BulkAction): JobState[] {
  return action.states.filter((state) => !filters.status || filters.status.includes(state));
}

/** How many jobs of the filters an action may fit, from the counts of the states. */
export function fitting(filters: JobFilters, action: BulkAction, counts: Record<string, number>): number {
  // The counts do not tell how many are paused: the filter must.
  if (action.name === "Resume" && !filters.paused) return 0;
  if (action.name === "Pause" && filters.paused) return 0;
  return statesOf(filters, action).reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

/** How many jobs pass the filters, and whether there may be more. */
export function totalOf(filters: JobFilters, counts: Record<string, number>, atLeast: readonly string[]) {
  const states = Object.keys(counts).filter((state) => !filters.status || filters.status.includes(state as JobState));
  return {
    jobs: states.reduce((sum, state) => sum + (counts[state] ?? 0), 0),
    more: states.some((state) => atLeast.includes(state)),
  };
}
