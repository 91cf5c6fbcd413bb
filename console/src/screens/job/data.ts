/** What the screen of a job reads, and how it stays live. */

import { keepPreviousData, type QueryClient, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, ok } from "@/api/client";
import type { ItemSummary, JobDetails, NodeDetails } from "@/api/schema";
import { type LiveEvent, useLive } from "@/live";

export type ItemView = ItemSummary["slowest"][number];
export type NodeView = NonNullable<JobDetails["nodes"]>[number];
export type { ItemSummary, JobDetails, NodeDetails };

const ENDED = new Set(["completed", "failed", "cancelled"]);

export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

const jobKey = (jobId: string) => ["job", jobId] as const;

export function useJob(jobId: string) {
  return useQuery({
    queryKey: [...jobKey(jobId), "details"],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: jobId }, query: { outputs: false } }, signal })),
  });
}

export function summaryQuery(jobId: string, nodeId: string) {
  return {
    queryKey: [...jobKey(jobId), "summary", nodeId],
    queryFn: ({ signal }: { signal: AbortSignal }): Promise<ItemSummary> =>
      ok(
        api.GET("/api/v1/jobs/{job_id}/nodes/{node_id}/items/summary", {
          params: { path: { job_id: jobId, node_id: nodeId } },
          signal,
        }),
      ),
  };
}

/** A node, or with `index` an item of a fan-out in the form of a node. */
export function detailsQuery(jobId: string, nodeId: string, index: number | null) {
  return {
    queryKey: [...jobKey(jobId), "node", nodeId, index],
    queryFn: ({ signal }: { signal: AbortSignal }): Promise<NodeDetails> =>
      index === null
        ? ok(
            api.GET("/api/v1/jobs/{job_id}/nodes/{node_id}", {
              params: { path: { job_id: jobId, node_id: nodeId } },
              signal,
            }),
          )
        : ok(
            api.GET("/api/v1/jobs/{job_id}/nodes/{node_id}/items/{index}", {
              params: { path: { job_id: jobId, node_id: nodeId, index } },
              signal,
            }),
          ),
  };
}

export function useDetails(jobId: string, nodeId: string, index: number | null) {
  return useQuery({ ...detailsQuery(jobId, nodeId, index), placeholderData: keepPreviousData });
}

export type ItemShow = "first" | "slowest" | "all" | "failed" | "running" | "dispatched" | "completed";

const PAGE = 200;
const FEW = 7;

/** The items of a fan-out, page by page: by state, the slowest first, or all in their order. */
export function useItems(jobId: string, nodeId: string, show: Exclude<ItemShow, "first">, limit = PAGE) {
  return useInfiniteQuery({
    queryKey: [...jobKey(jobId), "items", nodeId, show, limit],
    queryFn: ({ signal, pageParam }) =>
      ok(
        api.GET("/api/v1/jobs/{job_id}/nodes/{node_id}/items", {
          params: {
            path: { job_id: jobId, node_id: nodeId },
            query: {
              ...(show === "slowest" ? { order: show } : show === "all" ? {} : { state: show }),
              limit,
              cursor: pageParam,
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    maxPages: 100,
  });
}

export { FEW as FEW_FAILED };

export function useEvents(jobId: string) {
  return useInfiniteQuery({
    queryKey: [...jobKey(jobId), "events"],
    queryFn: ({ signal, pageParam }) =>
      ok(
        api.GET("/api/v1/jobs/{job_id}/events", {
          params: { path: { job_id: jobId }, query: { after: pageParam, limit: PAGE } },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.events.length === PAGE ? page.next_after : null),
  });
}

const BETWEEN_MILLISECONDS = 1_000;
/** A list of which more was loaded is read again only when asked: all its pages would be read each second. */
export const MOST_LIVE_PAGES = 3;

function pages(data: unknown): number {
  return (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0;
}

/** Keeps the answers about a job fresh: at most once a second they are read again, when the job has told something.
 * The list of jobs tells when an ended job begins anew. */
export function useLiveJob(jobId: string, status: string | undefined): void {
  const client = useQueryClient();
  const refresh = useRef(throttled(client, jobId));
  useEffect(() => {
    refresh.current = throttled(client, jobId);
  }, [client, jobId]);
  const patch = () => refresh.current();
  const follows = status !== undefined && !hasEnded(status);
  useLive(follows ? `job:${jobId}` : null, { refresh: [jobKey(jobId)], patch });
  useLive("jobs", {
    refresh: [jobKey(jobId)],
    patch: (_, events) => {
      if (events.some((event) => isAbout(event, jobId))) patch();
    },
  });
}

function isAbout(event: LiveEvent, jobId: string): boolean {
  return event.name !== "ready" && (event.data as { job_id?: string } | null)?.job_id === jobId;
}

function throttled(client: QueryClient, jobId: string): () => void {
  let last = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const read = () => {
    timer = undefined;
    last = Date.now();
    // A read that is under way is left to end: on a slow connection each would otherwise cancel the one before.
    void client.invalidateQueries(
      { queryKey: jobKey(jobId), predicate: (query) => pages(query.state.data) <= MOST_LIVE_PAGES },
      { cancelRefetch: false },
    );
  };
  return () => {
    if (timer === undefined) timer = setTimeout(read, Math.max(0, BETWEEN_MILLISECONDS - (Date.now() - last)));
  };
}
