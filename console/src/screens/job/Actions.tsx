import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Dialog } from "@/shell/Dialog";
import { useKeys } from "@/shell/keys";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import { hasEnded, type JobDetails } from "./data";
import { canRetry } from "./RetryDialog";

type Command = "pause" | "resume" | "release";
const DONE: Record<Command, string> = {
  pause: "The job is paused. What runs goes on, nothing new begins.",
  resume: "The job goes on.",
  release: "The job was released.",
};

/** What can be done with the job now. What its state forbids, or the caller's role, is not there. */
export function Actions({ job, onRetry }: { job: JobDetails; onRetry: () => void }) {
  const may = useMay();
  const [cancelling, setCancelling] = useState(false);
  const command = useCommand(job.job_id);
  const open = !hasEnded(job.status);
  const claimed = open && job.status !== "queued";
  const pauses = claimed && !job.paused && may("POST /api/v1/jobs/{job_id}/pause");
  const resumes = claimed && job.paused === true && may("POST /api/v1/jobs/{job_id}/resume");
  const retries = canRetry(job) && may("POST /api/v1/jobs/{job_id}/retry");
  useKeys([
    ...(pauses ? [{ keys: "p", label: "pause", run: () => command.mutate("pause") }] : []),
    ...(resumes ? [{ keys: "p", label: "resume", run: () => command.mutate("resume") }] : []),
    ...(retries ? [{ keys: "t", label: "retry", shown: true, run: onRetry }] : []),
  ]);
  return (
    <>
      {job.parked_at && may("POST /api/v1/jobs/{job_id}/release") && (
        <Button kind="primary" icon="play" onClick={() => command.mutate("release")} disabled={command.isPending}>
          Release
        </Button>
      )}
      {pauses && (
        <Button icon="pause" hint="P" onClick={() => command.mutate("pause")} disabled={command.isPending}>
          Pause
        </Button>
      )}
      {resumes && (
        <Button icon="play" hint="P" onClick={() => command.mutate("resume")} disabled={command.isPending}>
          Resume
        </Button>
      )}
      {retries && (
        <Button icon="retry" hint="T" onClick={onRetry} kind={job.status === "failed" ? "primary" : undefined}>
          {job.status === "completed" ? "Repeat" : "Retry"}
        </Button>
      )}
      {open && may("POST /api/v1/jobs/{job_id}/cancel") && (
        <Button kind="danger" icon="stop" onClick={() => setCancelling(true)}>
          Cancel
        </Button>
      )}
      {cancelling && <CancelDialog job={job} onClose={() => setCancelling(false)} />}
    </>
  );
}

function useCommand(jobId: string) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: (command: Command) => {
      const params = { params: { path: { job_id: jobId } } };
      if (command === "pause") return ok(api.POST("/api/v1/jobs/{job_id}/pause", params));
      if (command === "resume") return ok(api.POST("/api/v1/jobs/{job_id}/resume", params));
      return ok(api.POST("/api/v1/jobs/{job_id}/release", params));
    },
    onSuccess: (_, command) => toast({ text: DONE[command], state: command === "pause" ? "paused" : "running" }),
    onError: (error) => toast({ text: asProblem(error).detail, bad: true }),
    onSettled: () => client.invalidateQueries({ queryKey: ["job", jobId] }),
  });
}

function CancelDialog({ job, onClose }: { job: JobDetails; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [reason, setReason] = useState("");
  const cancel = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/v1/jobs/{job_id}/cancel", {
          params: { path: { job_id: job.job_id } },
          body: reason.trim() ? { reason: reason.trim() } : null,
        }),
      ),
    onSuccess: () => {
      toast({ text: "The job is being cancelled.", state: "cancelled" });
      onClose();
      return client.invalidateQueries({ queryKey: ["job", job.job_id] });
    },
  });
  return (
    <Dialog
      title={`Cancel ${job.workflow_id}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep it running</Button>
          <Button kind="danger" icon="stop" onClick={() => cancel.mutate()} disabled={cancel.isPending}>
            Cancel the job
          </Button>
        </>
      }
    >
      {cancel.error && <ErrorLine error={cancel.error} />}
      <p>Running tasks are told to stop. What has completed stays, and the job can be retried from there.</p>
      <Field label="Reason" aside={<span className="dim">optional</span>} help="It is kept with the job.">
        {(attributes) => (
          <input
            className="input"
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            {...attributes}
          />
        )}
      </Field>
    </Dialog>
  );
}
