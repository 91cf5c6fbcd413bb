import { useQueries } from "@tanstack/react-query";
import { memo, useMemo } from "react";
import { Glyph } from "@/components/states";
import { count } from "@/format/number";
import { clock, duration, shortClock, utc } from "@/format/time";
import { useNow } from "@/live/clock";
import { detailsQuery, hasEnded, type ItemSummary, type ItemView, type JobDetails, type NodeView } from "./data";
import { type Axis, axis, expected, type Segment, seconds, segments, share, type Timed } from "./timeline";

interface Row {
  key: string;
  nodeId: string;
  index: number | null;
  name: string;
  timed: Timed & { progress?: number | null };
}

const MOST_WITH_ATTEMPTS = 12;
const FEW_FAILED = 2;
const FEW_SLOW = 1;

/** Nodes from top to bottom, times from left to right. Waiting is thin, running thick; each attempt is a pair of them. */
export function Timeline(properties: {
  job: JobDetails;
  summaries: ReadonlyMap<string, ItemSummary>;
  selected: string | null;
  onOpen: (nodeId: string, index: number | null) => void;
}) {
  const { job, summaries } = properties;
  const rows = useMemo(() => rowsOf(job.nodes ?? [], summaries), [job.nodes, summaries]);
  const attempts = useAttempts(job.job_id, rows);
  const ended = hasEnded(job.status);
  return (
    <section className="timeline" aria-label="Timeline">
      <header className="part">
        <h2 className="grow">Timeline</h2>
        <Key className="wait">waited</Key>
        <Key className="run">ran</Key>
        <Key className="failed">failed attempt</Key>
      </header>
      {ended ? (
        <Chart {...properties} rows={rows} attempts={attempts} now={lastMoment(job)} ended />
      ) : (
        <TickingChart {...properties} rows={rows} attempts={attempts} />
      )}
    </section>
  );
}

function Key({ className, children }: { className: string; children: string }) {
  return (
    <span className="key desk">
      <i className={className} />
      {children}
    </span>
  );
}

interface ChartProps {
  job: JobDetails;
  rows: Row[];
  attempts: AttemptMap;
  selected: string | null;
  onOpen: (nodeId: string, index: number | null) => void;
  now: number;
  ended?: boolean;
}

function TickingChart(properties: Omit<ChartProps, "now">) {
  return <Chart {...properties} now={Math.max(useNow(), Date.now() - 1000)} />;
}

function Chart({ job, rows, attempts, selected, onOpen, now, ended }: ChartProps) {
  const drawn = rows.map((row) => segments(row.timed, attempts.get(row.key) ?? [], now));
  const ends = rows.map((row) => (ended ? null : expected(row.timed, now)));
  const begin = new Date(job.started_at ?? job.created_at ?? job.submitted_at ?? now).getTime();
  const last = Math.max(begin, now, ...drawn.flat().map((segment) => segment.to), ...ends.map((end) => end ?? 0));
  const first = Math.min(begin, ...drawn.flat().map((segment) => segment.from));
  const scale = axis(first, last);
  return (
    <div className="chart">
      <Scale scale={scale} now={ended ? null : now} />
      {rows.map((row, place) => (
        <ChartRow
          key={row.key}
          row={row}
          drawn={drawn[place] ?? []}
          end={ends[place] ?? null}
          scale={scale}
          now={now}
          selected={row.key === selected}
          onOpen={onOpen}
        />
      ))}
    </div>
  );
}

function Scale({ scale, now }: { scale: Axis; now: number | null }) {
  return (
    <>
      <div className="units" aria-hidden="true">
        <span>{scale.unit}</span>
        <span className="num desk">waited</span>
        <span className="num">ran</span>
      </div>
      <div className="axis" aria-hidden="true">
        {scale.ticks.map((tick) => (
          <i key={tick.at} style={{ left: `${share(scale, tick.at) * 100}%` }} title={utc(tick.at)}>
            <b>{tick.label}</b>
          </i>
        ))}
        {now !== null && (
          <i className="now" style={{ left: `${share(scale, now) * 100}%` }}>
            <b>now, {shortClock(now)}</b>
          </i>
        )}
      </div>
    </>
  );
}

const ChartRow = memo(function ChartRow(properties: {
  row: Row;
  drawn: readonly Segment[];
  end: number | null;
  scale: Axis;
  now: number;
  selected: boolean;
  onOpen: (nodeId: string, index: number | null) => void;
}) {
  const { row, drawn, end, scale, now } = properties;
  const [waited, ran] = [seconds(drawn, "wait"), seconds(drawn, "run")];
  return (
    <button
      type="button"
      className={`chart-row ${row.index === null ? "" : "item"}`}
      aria-pressed={properties.selected}
      onClick={() => properties.onOpen(row.nodeId, row.index)}
    >
      <span className="state cut">
        <Glyph state={row.timed.status} title={row.timed.status} />
        <span className="cut">{row.name}</span>
      </span>
      <span className="track">
        {row.timed.status === "skipped" && <i className="hatch" />}
        {drawn.map((segment, place) => (
          <Mark key={place} segment={segment} scale={scale} />
        ))}
        {end !== null && <i className="eta" style={between(scale, now, end)} title={`expected ${clock(end)}`} />}
      </span>
      <span className="num dim desk">{drawn.length > 0 && waited > 0 ? duration(waited) : ""}</span>
      <span className="num">{drawn.some((segment) => segment.kind === "run") ? duration(ran) : ""}</span>
    </button>
  );
});

function Mark({ segment, scale }: { segment: Segment; scale: Axis }) {
  const word = segment.kind === "wait" ? "waited" : segment.state;
  return (
    <i
      className={`${segment.kind} st-${segment.state}`}
      style={between(scale, segment.from, segment.to)}
      title={`attempt ${segment.attempt} ${word}, ${clock(segment.from)} to ${clock(segment.to)}, ${duration((segment.to - segment.from) / 1000)}`}
    />
  );
}

function between(scale: Axis, from: number, to: number) {
  const left = share(scale, from);
  return { left: `${left * 100}%`, width: `${(share(scale, to) - left) * 100}%` };
}

function lastMoment(job: JobDetails): number {
  const moments = [job.completed_at, ...(job.nodes ?? []).map((node) => node.completed_at)];
  return Math.max(...moments.map((moment) => (moment ? new Date(moment).getTime() : 0))) || Date.now();
}

function rowsOf(nodes: readonly NodeView[], summaries: ReadonlyMap<string, ItemSummary>): Row[] {
  return nodes
    .filter((node) => node.type !== "start" && node.type !== "end")
    .flatMap((node) => [
      { key: node.node_id, nodeId: node.node_id, index: null, name: node.node_id, timed: timedOf(node) },
      ...worthALook(summaries.get(node.node_id)).map((item) => ({
        key: `${node.node_id}[${item.index}]`,
        nodeId: node.node_id,
        index: item.index,
        name: `item ${count(item.index)}`,
        timed: item,
      })),
    ]);
}

/** A fan-out runs from its expansion: its items wait, and it does not. */
function timedOf(node: NodeView): Row["timed"] {
  return node.type === "fan_out" ? { ...node, started_at: node.started_at ?? node.dispatched_at } : node;
}

function worthALook(summary: ItemSummary | undefined): ItemView[] {
  if (!summary || summary.total < 2) return [];
  const failed = summary.failed.slice(0, FEW_FAILED);
  const slow = summary.slowest.filter((item) => item.status !== "failed").slice(0, FEW_SLOW);
  return [...failed, ...slow];
}

type AttemptMap = ReadonlyMap<string, Parameters<typeof segments>[1]>;

/** The attempts of the rows that had more than one. */
function useAttempts(jobId: string, rows: readonly Row[]): AttemptMap {
  const several = rows.filter((row) => row.timed.attempt > 1).slice(0, MOST_WITH_ATTEMPTS);
  return useQueries({
    queries: several.map((row) => detailsQuery(jobId, row.nodeId, row.index)),
    combine: (answers) =>
      new Map(several.map((row, place) => [row.key, answers[place]?.data?.attempts ?? []] as const)),
  });
}
