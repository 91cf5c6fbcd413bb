/** Actions for the selected jobs. Each job is asked for by itself, a few at a time; what was refused is told. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ok, type Rule } from "@/api/client";
import { asProblem, wording } from "@/api/problem";
import type { JobSummary } from "@/api/schema";
import { Button } from "@/components/Button";
import { plural } from "@/format/number";
import { useKeys } from "@/shell/keys";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";

const AT_ONCE = 6;

interface Action {
  name: string;
  done: string;
  rule: Rule;
  fits: (job: JobSummary) => boolean;
  run: (jobId: string) => Promise<unknown>;
}

const path = (jobId: string) => ({ params: { path: { job_id: jobId } } });
const ended = (job: JobSummary) => ["completed", "failed", "cancelled"].includes(job.status);

const RETRY: Action = {
  name: "Retry",
  done: "Retrying",
  rule: "POST /api/v1/jobs/{job_id}/retry",
  fits: (job) => job.status === "failed" || job.status === "cancelled",
  run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/retry", path(jobId))),
};
const PAUSE: Action = {
  name: "Pause",
  done: "Pausing",
  rule: "POST /api/v1/jobs/{job_id}/pause",
  fits: (job) => !ended(job) && !job.paused && job.status !== "queued",
  run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/pause", path(jobId))),
};
const RESUME: Action = {
  name: "Resume",
  done: "Resuming",
  rule: "POST /api/v1/jobs/{job_id}/resume",
  fits: (job) => !ended(job) && job.paused === true,
  run: (jobId) => ok(api.POST("/api/v1/jobs/{job_id}/resume", path(jobId))),
};
const CANCEL: Action = {
  name: "Cancel",
  done: "Cancelling",
  rule: "POST /api/v1/jobs/{job_id}/cancel",
  fits: (job) => !ended(job),
  run: (jobId) =>
    ok(api.POST("/api/v1/jobs/{job_id}/cancel", { ...path(jobId), body: { reason: "cancelled in the console" } })),
};

/** Runs an action for all of them, a few at a time. Returns the reasons of those that were refused. */
export async function runAll(ids: readonly string[], run: (id: string) => Promise<unknown>): Promise<string[]> {
  const waiting = [...ids];
  const refusals: string[] = [];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      await run(id).catch((error: unknown) => refusals.push(wording(asProblem(error)).happened));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refusals;
}

export function Bulk({ jobs, onDone }: { jobs: readonly JobSummary[]; onDone: () => void }) {
  const may = useMay();
  const toast = useToast();
  const client = useQueryClient();
  const action = useMutation({
    mutationFn: async (chosen: Action) => {
      const fitting = jobs.filter(chosen.fits);
      const refusals = await runAll(
        fitting.map((job) => job.job_id),
        chosen.run,
      );
      return { chosen, asked: fitting.length, refusals };
    },
    onSuccess: ({ chosen, asked, refusals }) => {
      const succeeded = asked - refusals.length;
      if (succeeded > 0) toast({ text: `${chosen.done} ${plural(succeeded, "job")}.` });
      if (refusals.length > 0)
        toast({ text: `${plural(refusals.length, "job was", "jobs were")} refused: ${refusals[0]}`, bad: true });
      void client.invalidateQueries({ queryKey: ["jobs", "counts"] });
      onDone();
    },
  });
  useKeys([
    { keys: "t", label: "retry the selected", run: () => jobs.some(RETRY.fits) && action.mutate(RETRY) },
    { keys: "Escape", label: "clear the selection", run: onDone },
  ]);
  return (
    <section className="bulk" aria-label="Actions for the selection">
      <span className="strong">{plural(jobs.length, "job")} selected</span>
      <span className="grow" />
      {[RETRY, RESUME, PAUSE, CANCEL]
        .filter((entry) => may(entry.rule))
        .map((entry) => {
          const fitting = jobs.filter(entry.fits).length;
          return (
            <Button
              key={entry.name}
              kind={entry === CANCEL ? "danger" : undefined}
              icon={
                ({ Retry: "retry", Resume: "play", Pause: "pause", Cancel: "stop" } as const)[entry.name as "Retry"]
              }
              hint={entry === RETRY ? "T" : undefined}
              disabled={fitting === 0 || action.isPending}
              title={fitting === 0 ? `None of them can be: ${entry.name.toLowerCase()}` : undefined}
              onClick={() => action.mutate(entry)}
            >
              {entry.name} {fitting > 0 && fitting < jobs.length ? fitting : ""}
            </Button>
          );
        })}
      <Button kind="quiet" hint="Esc" onClick={onDone}>
        Clear
      </Button>
    </section>
  );
}
