/** The graph of a job: its nodes with live states, and a fan-out as one node with its counts and its strip. */

import { memo } from "react";
import { cut, type DrawnEdge, type DrawnNode } from "@/components/graph/GraphView";
import { bars, ordered, pace } from "@/components/graph/strip";
import { Glyph, stateWord } from "@/components/states";
import { count, percent } from "@/format/number";
import { duration, secondsBetween } from "@/format/time";
import type { ItemSummary, NodeView } from "./data";

const NODE = { width: 160, height: 30 };
const TERMINAL = { width: 60, height: 14 };
const FAN_OUT = { width: 354, height: 140 };
const STRIP = { x: 10, y: 34, width: 334, height: 34 };

export function drawnEdges(nodes: readonly NodeView[]): DrawnEdge[] {
  return nodes.flatMap((node) =>
    (node.next ?? []).map((edge) => ({ from: node.node_id, to: edge.to, label: edge.branch, taken: edge.taken })),
  );
}

export function drawnNodes(nodes: readonly NodeView[], summaries: ReadonlyMap<string, ItemSummary>): DrawnNode[] {
  return nodes.map((node) => {
    const type = node.type ?? "task";
    const common = { id: node.node_id, type, state: node.status, spoken: spoken(node, summaries.get(node.node_id)) };
    if (type === "start" || type === "end") return { ...common, ...TERMINAL };
    if (type === "fan_out" && node.status !== "skipped")
      return {
        ...common,
        ...FAN_OUT,
        inside: <FanOut node={node} summary={summaries.get(node.node_id)} />,
      };
    return { ...common, ...NODE, aside: ran(node) };
  });
}

function ran(node: NodeView): string | undefined {
  if (node.status === "running" && node.progress) return percent(node.progress);
  if (node.type === "conditional" || node.type === "fan_in" || !node.started_at) return undefined;
  return node.run_seconds === null || node.run_seconds === undefined ? undefined : duration(node.run_seconds);
}

const KINDS: Record<string, string> = { conditional: "conditional", fan_in: "fan-in", fan_out: "fan-out" };

/** What screen readers say: `fan-out of 10,000, running: 6,334 completed, 12 failed`. */
function spoken(node: NodeView, summary: ItemSummary | undefined): string {
  const kind = KINDS[node.type ?? ""];
  const total = node.items ? ` of ${count(node.items.total)}` : "";
  const states = ordered(summary?.states ?? {}).map(([state, items]) => `${count(items)} ${stateWord(state)}`);
  return `${kind ? `${kind}${total}, ` : ""}${stateWord(node.status)}${states.length ? `: ${states.join(", ")}` : ""}`;
}

const FanOut = memo(function FanOut({ node, summary }: { node: NodeView; summary: ItemSummary | undefined }) {
  const total = node.items?.total ?? 0;
  const ended = (node.items?.completed ?? 0) + (node.items?.failed ?? 0);
  return (
    <>
      <svg x={10} y={11} width={14} height={14} aria-hidden="true">
        <Glyph state={node.status} />
      </svg>
      <text className="name" x={31} y={22}>
        {cut(node.node_id, 18)}
      </text>
      <text className="aside" x={344} y={22} textAnchor="end">
        {cut(total ? `${count(total)} items · ${node.handler}` : (node.handler ?? ""), 36)}
      </text>
      <g transform={`translate(${STRIP.x} ${STRIP.y})`}>
        <rect className="empty-strip" width={STRIP.width} height={STRIP.height} />
        {summary && <Strip summary={summary} />}
      </g>
      {total > 0 && <Scale total={total} />}
      {summary ? <Counts states={summary.states} /> : <Waiting node={node} />}
      <text className="aside" x={10} y={133}>
        {total ? percent(ended / total) : ""}
      </text>
      <text className="aside" x={344} y={133} textAnchor="end">
        {paceText(node, ended, total)}
      </text>
    </>
  );
});

function Waiting({ node }: { node: NodeView }) {
  return (
    <text className="aside" x={10} y={104}>
      {node.status === "pending" ? "its list is not known yet" : ""}
    </text>
  );
}

const Strip = memo(function Strip({ summary }: { summary: ItemSummary }) {
  return (
    <g>
      {bars(summary.buckets, STRIP.width, STRIP.height).map((bar, place) => (
        <rect
          key={place}
          className={`bar-${bar.state}`}
          x={bar.x}
          y={bar.y}
          width={Math.max(bar.width, 0.5)}
          height={bar.height}
        />
      ))}
    </g>
  );
});

function Scale({ total }: { total: number }) {
  return (
    <>
      <text className="micro" x={10} y={81}>
        0
      </text>
      {total > 20 && (
        <text className="micro" x={177} y={81} textAnchor="middle">
          {count(Math.round(total / 2))}
        </text>
      )}
      {total > 1 && (
        <text className="micro" x={344} y={81} textAnchor="end">
          {count(total - 1)}
        </text>
      )}
    </>
  );
}

const MOST_COUNTS = 5;

function Counts({ states }: { states: Record<string, number> }) {
  const shown = ordered(states);
  const failed = shown.find(([state]) => state === "failed");
  const others = shown.filter(([state]) => state !== "failed").slice(0, failed ? MOST_COUNTS - 1 : MOST_COUNTS);
  return [...others, ...(failed ? [failed] : [])].map(([state, items], place) => (
    <g key={state} transform={`translate(${10 + place * 69} 94)`}>
      <rect className={`bar-${state}`} width={8} height={8} />
      <text className={state === "failed" ? "figure strong" : "figure"} x={12} y={8}>
        {count(items)}
      </text>
      <text className="micro" x={12} y={21}>
        {stateWord(state)}
      </text>
    </g>
  ));
}

function paceText(node: NodeView, ended: number, total: number): string {
  const from = node.started_at ?? node.dispatched_at;
  const begun = from ? secondsBetween(from, node.completed_at ?? Date.now()) : 0;
  const found = pace(ended, total, begun);
  if (!found) return "";
  const speed = `${count(Math.round(found.perMinute))} items a minute`;
  if (node.status !== "running" || found.secondsLeft === null) return speed;
  return `about ${duration(found.secondsLeft)} left at ${speed}`;
}
