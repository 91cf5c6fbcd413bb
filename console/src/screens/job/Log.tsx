import { useEffect, useRef, useState } from "react";
import { api, OWN_PAGE, ok } from "@/api/client";
import type { LogLine } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorLine } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { clock, utc } from "@/format/time";
import { EventParser } from "@/live/sse";

const PAGE = 500;
const MOST_LINES = 2_000;
const AGAIN_MILLISECONDS = 2_000;

interface LogProps {
  jobId: string;
  nodeId: string;
  index: number | null;
  /** Whether the job may still log something. */
  live: boolean;
}

interface LogState {
  lines: LogLine[];
  after: number;
  /** Whether there is more to read. Only then is the log not followed: a fan-out may have a million lines. */
  more: boolean;
  error: unknown;
  loaded: boolean;
}

const EMPTY: LogState = { lines: [], after: 0, more: false, error: null, loaded: false };

/** What a handler logged. While the job runs, new lines come by themselves. */
export function Log(properties: LogProps) {
  const { live } = properties;
  const [state, setState] = useState(EMPTY);
  const [follow, setFollow] = useState(true);
  const query = { node_id: properties.nodeId, ...(properties.index === null ? {} : { item_index: properties.index }) };
  const path = { job_id: properties.jobId };
  const read = useRef(async (_after: number) => undefined as undefined);
  read.current = async (after: number) => {
    try {
      const page = await ok(
        api.GET("/api/v1/jobs/{job_id}/logs", { params: { path, query: { ...query, after, limit: PAGE } } }),
      );
      setState((old) => ({
        ...added(old, page.lines),
        after: page.next_after,
        more: page.more,
        error: null,
        loaded: true,
      }));
    } catch (error) {
      setState((old) => ({ ...old, error, loaded: true }));
    }
  };
  useEffect(() => void read.current(0), []);
  const following = live && follow && state.loaded && !state.more && state.error === null;
  useFollowed(properties, following, state.after, (line) =>
    setState((old) => (line.log_id <= old.after ? old : { ...added(old, [line]), after: line.log_id })),
  );
  const end = useRef<HTMLDivElement>(null);
  const count = state.lines.length;
  useEffect(() => {
    if (following && count > 0) end.current?.scrollIntoView({ block: "nearest" });
  }, [following, count]);
  if (!state.loaded) return <Loading lines={6} />;
  return (
    <div className="log">
      {state.error !== null && <ErrorLine error={state.error} />}
      {count === 0 && state.error === null && (
        <Empty title="Nothing was logged">
          {live ? "New lines appear here by themselves." : "The handler said nothing."}
        </Empty>
      )}
      {count > 0 && <Lines lines={state.lines} />}
      <div ref={end} />
      <footer className="line">
        {live && !state.more && (
          <label className="check small">
            <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.target.checked)} />
            <span>Follow</span>
          </label>
        )}
        <span className="grow small dim">{count === MOST_LINES ? `The latest ${MOST_LINES} that were read.` : ""}</span>
        {(state.more || state.error !== null) && (
          <Button onClick={() => void read.current(state.after)}>
            {state.error === null ? "More lines" : "Try again"}
          </Button>
        )}
      </footer>
    </div>
  );
}

function added(state: LogState, lines: readonly LogLine[]): LogState {
  return { ...state, lines: [...state.lines, ...lines].slice(-MOST_LINES) };
}

function Lines({ lines }: { lines: readonly LogLine[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keys
    <div className="log-lines mono" role="log" aria-live="off" tabIndex={0} aria-label="Log">
      {lines.map((line) => (
        <div key={line.log_id} className={`log-line ${line.level.toLowerCase()}`}>
          <time dateTime={line.created_at} title={utc(line.created_at)}>
            {clock(line.created_at)}
          </time>
          <span className="level">{line.level === "INFO" ? "" : line.level.toLowerCase()}</span>
          <span>{line.message}</span>
        </div>
      ))}
    </div>
  );
}

/** Follows the log's own stream while `on`, and connects again where it stopped. */
function useFollowed(log: LogProps, on: boolean, after: number, onLine: (line: LogLine) => void): void {
  const latest = useRef({ after, onLine });
  latest.current = { after, onLine };
  const { jobId, nodeId, index } = log;
  useEffect(() => {
    if (!on) return;
    const abort = new AbortController();
    const query = new URLSearchParams({ node_id: nodeId, ...(index === null ? {} : { item_index: String(index) }) });
    const url = `/api/v1/jobs/${encodeURIComponent(jobId)}/logs/stream?${query}`;
    void keepFollowing(url, abort.signal, () => latest.current);
    return () => abort.abort();
  }, [on, jobId, nodeId, index]);
}

interface Listener {
  after: number;
  onLine: (line: LogLine) => void;
}

async function keepFollowing(url: string, signal: AbortSignal, listener: () => Listener): Promise<void> {
  while (!signal.aborted) {
    const ended = await followOnce(url, signal, listener).catch(() => false);
    if (ended) return;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MILLISECONDS));
  }
}

/** Returns whether the log has ended: its job has. */
async function followOnce(url: string, signal: AbortSignal, listener: () => Listener): Promise<boolean> {
  const headers = { ...OWN_PAGE, "Last-Event-ID": String(listener().after) };
  const response = await fetch(url, { signal, headers, credentials: "same-origin" });
  if (!response.ok || !response.body) return response.status < 500 && response.status !== 429;
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    for (const event of parser.take(value)) {
      if (event.event === "end") return true;
      if (event.event === "line") listener().onLine(event.data as LogLine);
    }
  }
}
