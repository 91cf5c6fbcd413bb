/** Live events in the list of jobs: rows change in place; new rows are counted, and come when somebody asks. */

import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import type { JobPage, JobSummary } from "@/api/schema";
import type { LiveEvent } from "@/live";

type Pages = InfiniteData<JobPage>;

/** Puts changed jobs into the pages, where they are already. Returns the pages, and the ids that were not there. */
export function applyJobs(pages: Pages, events: readonly LiveEvent[]): { pages: Pages; unknown: string[] } {
  const changed = new Map<string, JobSummary>();
  for (const event of events) {
    if (event.name === "job" || event.name === "left") {
      const job = event.data as JobSummary;
      changed.set(job.job_id, job);
    }
  }
  if (changed.size === 0) return { pages, unknown: [] };
  const known = new Set<string>();
  const next = pages.pages.map((page) => ({
    ...page,
    jobs: page.jobs.map((job) => {
      const update = changed.get(job.job_id);
      if (!update) return job;
      known.add(job.job_id);
      // The list has the names of assets, the stream has not.
      return { ...update, asset_name: update.asset_name ?? job.asset_name };
    }),
  }));
  return { pages: { ...pages, pages: next }, unknown: [...changed.keys()].filter((id) => !known.has(id)) };
}

/** Changes the cached list, and returns the ids of jobs that it does not have. */
export function patchJobs(client: QueryClient, key: QueryKey, events: readonly LiveEvent[]): string[] {
  const pages = client.getQueryData<Pages>(key);
  if (!pages) return [];
  const result = applyJobs(pages, events);
  if (result.pages !== pages) client.setQueryData<Pages>(key, result.pages);
  return result.unknown;
}
