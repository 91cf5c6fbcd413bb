/** What the screen asks the gateway. */

import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { api, ok } from "@/api/client";
import { useMay } from "@/shell/session";
import type { UploadFile } from "@/uploads/desk";
import { type Draft, optionsOf, submissionOf, workflowOf } from "./draft";

export function usePlatforms() {
  return useQuery({ queryKey: ["platforms"], queryFn: () => ok(api.GET("/api/platforms")), staleTime: 60_000 });
}

/** Where an upload lies, once it has arrived. */
export function useSource(file: UploadFile) {
  return useQuery(sourceQuery(file));
}

function sourceQuery(file: UploadFile) {
  return {
    queryKey: ["uploads", file.uploadId],
    queryFn: () =>
      ok(api.GET("/api/platform/uploads/{upload_id}", { params: { path: { upload_id: file.uploadId ?? "" } } })),
    enabled: file.status === "arrived" && file.uploadId !== null,
    staleTime: Number.POSITIVE_INFINITY,
  };
}

/** Where the other rasters of a collection lie; undefined until all have arrived. */
export function useMembers(files: readonly UploadFile[], keys: readonly string[]): Source[] | undefined {
  const members = keys.flatMap((key) => files.find((file) => file.key === key) ?? []);
  const answers = useQueries({ queries: members.map(sourceQuery) });
  const sources = answers.flatMap((answer) => answer.data ?? []);
  return sources.length === keys.length ? sources : undefined;
}

export interface Source {
  container_name: string;
  file_name: string;
}

/** A look into the file, with the options as they are. The last one stays on the screen while the next is under way. */
export function useInspection(source: Source | undefined, draft: Draft) {
  const order = useDeferredValue(
    source && {
      platform_id: draft.platformId,
      container_name: source.container_name,
      file_name: source.file_name,
      processing_options: optionsOf(draft),
      ...(workflowOf(draft) ? { workflow_id: workflowOf(draft) } : {}),
    },
  );
  return useQuery({
    queryKey: ["inspect", order],
    queryFn: ({ signal }) => {
      if (!order) throw new Error("there is no file to look into");
      return ok(api.POST("/api/platform/inspect", { body: order, signal }));
    },
    enabled: order !== undefined,
    staleTime: 300_000,
    placeholderData: (earlier, query) =>
      (query?.queryKey[1] as typeof order)?.file_name === order?.file_name ? earlier : undefined,
  });
}

export function useWorkflow(workflowId: string | null | undefined) {
  return useQuery({
    queryKey: ["workflows", workflowId],
    queryFn: () =>
      ok(api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: workflowId ?? "" } } })),
    enabled: Boolean(workflowId),
    staleTime: 300_000,
  });
}

/** What a submission would be called and become. Asked when the identifiers are complete. */
export function useRehearsal(
  draft: Draft,
  inspection: { data_type?: "raster" | "vector" | null } | undefined,
  source: Source | undefined,
  others: readonly Source[],
  complete: boolean,
) {
  const body =
    source && inspection?.data_type
      ? {
          ...submissionOf({ ...draft, overwrite: true }, { data_type: inspection.data_type }, source, others),
          idempotency_key: undefined,
        }
      : null;
  const settled = useDeferredValue(JSON.stringify(body));
  return useQuery({
    queryKey: ["rehearse", settled],
    queryFn: ({ signal }) =>
      ok(
        api.POST("/api/platform/submit", {
          body: JSON.parse(settled),
          params: { query: { dry_run: true, inspect: false } },
          signal,
        }),
      ),
    enabled: complete && body !== null,
    retry: false,
    placeholderData: keepPreviousData,
  });
}

/** The state of a submission. It is asked for often until the job has ended, since a submitter has no stream of jobs. */
export function useStanding(requestId: string | null) {
  return useQuery({
    queryKey: ["status", requestId],
    queryFn: () =>
      ok(api.GET("/api/platform/status/{identifier}", { params: { path: { identifier: requestId ?? "" } } })),
    enabled: requestId !== null,
    refetchInterval: (query) => (ended(query.state.data?.status) ? false : 1_000),
  });
}

export function ended(status: string | undefined): boolean {
  return status !== undefined && ["completed", "failed", "cancelled", "superseded"].includes(status);
}

export function useJobLink(): (jobId: string | null | undefined) => string | null {
  const may = useMay();
  return (jobId) => (jobId && may("GET /api/v1/jobs/{job_id}") ? `/jobs/${jobId}` : null);
}

/** A look into a file, as the client types it. */
export type FileContent = NonNullable<ReturnType<typeof useInspection>["data"]>;
export type LayerContent = NonNullable<FileContent["layers"]>[number];
