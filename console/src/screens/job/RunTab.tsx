import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Facts } from "@/components/Facts";
import { Glyph, stateWord } from "@/components/states";
import { Time } from "@/components/Time";
import { count, percent } from "@/format/number";
import { clock, duration } from "@/format/time";
import { CopyButton } from "./CopyButton";
import type { NodeDetails } from "./data";
import { parted, tracebackOf } from "./traceback";

/** Why something that has not begun has nothing to show. */
const WAITS: Partial<Record<string, string>> = {
  pending: "It has not begun. It waits for what comes before it, or for its turn in the fan-out.",
  ready: "It has not begun. It is about to be sent to its queue.",
  dispatched: "It has not begun. It waits in its queue for a worker with a free slot.",
  skipped: "It was skipped: the job went another way, or ended before.",
};

/** How it went: the error with its traceback, the attempts, and the facts. */
export function RunTab(properties: {
  details: NodeDetails;
  attempt: number;
  onAttempt: (attempt: number) => void;
  onRetry?: () => void;
}) {
  const { details, attempt, onRetry } = properties;
  const chosen = details.attempts.find((entry) => entry.attempt === attempt);
  const error = chosen ? chosen.error : details.error;
  const code = chosen ? chosen.error_code : details.error_code;
  return (
    <>
      {error && (
        <div className="note bad read">
          <Glyph state="failed" />
          <span>
            {code && <code>{code}</code>} {error}
          </span>
        </div>
      )}
      {onRetry && (
        <div className="line">
          <Button icon="retry" hint="T" onClick={onRetry}>
            {details.index === null ? "Retry from here" : "Retry what failed"}
          </Button>
        </div>
      )}
      {details.attempts.length === 0 && !error && WAITS[details.status] && (
        <p className="soft read">{WAITS[details.status]}</p>
      )}
      {details.attempts.length > 0 && <Attempts {...properties} />}
      {error && <Traceback details={details} attempt={attempt} />}
      <RunFacts details={details} />
    </>
  );
}

function Attempts(properties: { details: NodeDetails; attempt: number; onAttempt: (attempt: number) => void }) {
  const { details, attempt, onAttempt } = properties;
  return (
    <fieldset className="attempts" aria-label="Attempts">
      {[...details.attempts].reverse().map((entry) => (
        <button
          key={entry.attempt}
          type="button"
          aria-pressed={entry.attempt === attempt}
          onClick={() => onAttempt(entry.attempt)}
        >
          <span className="line strong">
            <Glyph state={entry.status} title={stateWord(entry.status)} />
            Attempt {entry.attempt}
          </span>
          <span className="dim">
            {entry.started_at ? clock(entry.started_at) : "never began"}
            <br />
            {entry.run_seconds !== null && <>ran {duration(entry.run_seconds)}</>}
            <br />
            <span className="cut worker" title={entry.worker_id ?? undefined}>
              {entry.worker_id}
            </span>
          </span>
        </button>
      ))}
    </fieldset>
  );
}

function Traceback({ details, attempt }: { details: NodeDetails; attempt: number }) {
  const { job_id, node_id, index } = details;
  const lines = useQuery({
    queryKey: ["job", job_id, "errors", node_id, index, attempt],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/jobs/{job_id}/logs", {
          params: {
            path: { job_id },
            query: { node_id, ...(index === null ? {} : { item_index: index }), attempt, level: "ERROR", limit: 1000 },
          },
          signal,
        }),
      ),
  });
  const traceback = tracebackOf(lines.data?.lines ?? [], attempt);
  if (!traceback) return null;
  const { frames, error } = parted(traceback);
  return (
    <section className="stack" aria-label={`Traceback of attempt ${attempt}`}>
      <div className="line">
        <h3 className="grow">Traceback of attempt {attempt}</h3>
        <CopyButton text={traceback} label="Copy" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keys */}
      <pre tabIndex={0} className="traceback">
        {frames}
        <span className="hot">{error}</span>
      </pre>
    </section>
  );
}

function RunFacts({ details }: { details: NodeDetails }) {
  const { checkpoint } = details;
  return (
    <Facts
      facts={[
        ["Says", details.message || null],
        ["Progress", details.progress !== null && percent(details.progress)],
        ["Items", details.items_total !== null && `${count(details.items_sent)} of ${count(details.items_total)} sent`],
        ["Waited", details.wait_seconds !== null && duration(details.wait_seconds)],
        ["Ran", details.run_seconds !== null && duration(details.run_seconds)],
        ["Began", details.started_at && <Time at={details.started_at} />],
        ["Ended", details.completed_at && <Time at={details.completed_at} />],
        ["Next attempt", details.not_before && details.status !== "completed" && <Time at={details.not_before} />],
        ["Worker", details.worker_id],
        ["Checkpoint", checkpoint && `${checkpoint.phase}, by attempt ${checkpoint.attempt}`],
        ["Code", details.handler_version],
      ]}
    />
  );
}
