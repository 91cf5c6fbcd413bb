import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { count, plural } from "@/format/number";
import { Dialog } from "@/shell/Dialog";
import { useToast } from "@/shell/toasts";
import { type BulkAction, matching, runAll, type Tally } from "./bulk";
import type { JobFilters } from "./filters";

interface BulkDialogProps {
  action: BulkAction;
  /** The jobs to ask for; null for all that pass the filters. */
  jobs: readonly string[] | null;
  /** How many jobs that is, as far as they were counted. */
  expected: number;
  filters: JobFilters;
  onClose: (finished: boolean) => void;
}

const CONSEQUENCES: Record<BulkAction["name"], string> = {
  Retry: "What has completed stays. What failed or never ran begins again.",
  Resume: "They go on where they were paused.",
  Pause: "Running tasks go on to their end; no new ones begin.",
  Cancel: "Running tasks are told to stop. What has completed stays, and the jobs can be retried.",
};

async function* onePage(ids: readonly string[]) {
  yield ids;
}

/** Says what will happen to how many jobs, does it, and shows how far it is. It can be stopped in between. */
export function BulkDialog({ action, jobs, expected, filters, onClose }: BulkDialogProps) {
  const toast = useToast();
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [tally, setTally] = useState<Tally>({ asked: 0, refused: 0, refusal: null });
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const run = useMutation({
    mutationFn: () =>
      runAll(jobs ? onePage(jobs) : matching(filters, action), {
        run: (jobId) => action.run(jobId, reason),
        signal: stop.current.signal,
        onProgress: setTally,
      }),
    onSuccess: ({ asked, refused, refusal }) => {
      const succeeded = asked - refused;
      if (succeeded > 0 || refused === 0) toast({ text: `${action.doing} ${plural(succeeded, "job")}.` });
      if (refused > 0) toast({ text: `${plural(refused, "job was", "jobs were")} refused: ${refusal}`, bad: true });
      void client.invalidateQueries({ queryKey: ["jobs", "counts"] });
      onClose(true);
    },
  });
  const title = `${action.name} ${plural(expected, "job")}`;
  return (
    <Dialog
      title={title}
      onClose={() => !run.isPending && onClose(false)}
      footer={
        run.isPending ? (
          <Button icon="stop" onClick={() => stop.current.abort()}>
            Stop here
          </Button>
        ) : (
          <>
            <Button onClick={() => onClose(false)}>Leave them</Button>
            <Button kind={action.name === "Cancel" ? "danger" : "primary"} onClick={() => run.mutate()}>
              {title}
            </Button>
          </>
        )
      }
    >
      {run.error && <ErrorLine error={run.error} />}
      {run.isPending ? (
        <>
          <p role="status">
            {count(tally.asked)} of {count(Math.max(expected, tally.asked))} done
            {tally.refused > 0 ? `, ${count(tally.refused)} refused` : ""}
          </p>
          <div className="progress">
            <i style={{ width: `${Math.min(100, (tally.asked / Math.max(1, expected)) * 100)}%` }} />
          </div>
        </>
      ) : (
        <>
          <p>
            {CONSEQUENCES[action.name]}
            {jobs ? "" : " Jobs that come later are left alone."}
          </p>
          {action.name === "Cancel" && (
            <Field label="Reason" aside={<span className="dim">optional</span>} help="It is kept with each job.">
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
          )}
        </>
      )}
    </Dialog>
  );
}
