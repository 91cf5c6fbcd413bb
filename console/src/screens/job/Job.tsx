import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { useParams } from "wouter";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { GraphView } from "@/components/graph/GraphView";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { useAddresses } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Actions } from "./Actions";
import { hasEnded, type ItemSummary, type JobDetails, summaryQuery, useJob, useLiveJob } from "./data";
import { drawnEdges, drawnNodes } from "./graph";
import { Announcement, Beside, Heading, statusFacts } from "./Head";
import "./job.css";
import { Lower } from "./Lower";
import { type DrawerTab, NodeDrawer } from "./NodeDrawer";
import { canRetry, RetryDialog, type RetryWay } from "./RetryDialog";
import { nextFailed } from "./selection";
import { Timeline } from "./Timeline";

export default function Job() {
  const { id } = useParams<{ id: string }>();
  const query = useJob(id);
  useLiveJob(id, query.data?.status);
  if (query.data) return <JobScreen key={id} job={query.data} staleSince={query.error ? query.dataUpdatedAt : null} />;
  return (
    <Screen title="Job">
      {query.error ? (
        <ErrorNote
          error={query.error}
          onRetry={() => void query.refetch()}
          elsewhere={{ href: "/jobs", text: "All jobs" }}
        />
      ) : (
        <Loading lines={8} />
      )}
    </Screen>
  );
}

/** Which node, item and tab the address names. */
function useSelection() {
  const [values, change] = useAddresses();
  const node = values.get("node");
  const item = values.get("item");
  const index = item === null || !/^\d+$/.test(item) ? null : Number(item);
  return {
    nodeId: node,
    index,
    /** The tab of the drawer; null while it is closed. */
    tab: values.get("tab") as DrawerTab | null,
    part: (values.get("part") ?? "graph") as Part,
    select: useCallback(
      (nodeId: string) => {
        if (new URLSearchParams(location.search).get("node") !== nodeId) change({ node: nodeId, item: null });
      },
      [change],
    ),
    open: useCallback(
      (nodeId: string, at: number | null = null) => {
        const tab = new URLSearchParams(location.search).get("tab") ?? "run";
        change({ node: nodeId, item: at === null ? null : String(at), tab });
      },
      [change],
    ),
    close: useCallback(() => change({ tab: null, item: null }), [change]),
    change,
  };
}

type Part = "graph" | "timeline" | "items";

function JobScreen({ job, staleSince }: { job: JobDetails; staleSince: number | null }) {
  const may = useMay();
  const selection = useSelection();
  const { nodeId, index, tab, select, open, close, change } = selection;
  const nodes = useMemo(() => job.nodes ?? [], [job.nodes]);
  const summaries = useSummaries(job);
  const [retrying, setRetrying] = useState<{ way: RetryWay; nodeId: string | null } | null>(null);
  const node = nodes.find((entry) => entry.node_id === nodeId);
  const retries = canRetry(job) && may("POST /api/v1/jobs/{job_id}/retry");
  const over = job.status === "failed" || job.status === "cancelled";
  const retry = () => {
    const from = tab !== null && node !== undefined && over && index === null;
    setRetrying({ way: from ? "from" : over ? "failed" : "inputs", nodeId });
  };
  useKeys([
    {
      keys: "e",
      label: "next failed",
      shown: true,
      run: () => {
        const next = nextFailed(nodes, summaries, nodeId, index);
        if (next) open(next.nodeId, next.index);
      },
    },
  ]);
  const drawn = useMemo(() => drawnNodes(nodes, summaries), [nodes, summaries]);
  const edges = useMemo(() => drawnEdges(nodes), [nodes]);
  const openNode = useCallback((id: string) => open(id), [open]);
  return (
    <Screen
      title={`Job ${job.job_id.slice(0, 8)}`}
      heading={<Heading job={job} />}
      beside={<Beside job={job} />}
      actions={<Actions job={job} onRetry={retry} />}
      status={statusFacts(job)}
      fills
    >
      <Announcement job={job} />
      <div className="with-drawer job" data-part={selection.part}>
        <div className="job-work">
          <Notes job={job} staleSince={staleSince} onOpen={openNode} />
          <PartTabs part={selection.part} onChange={(part) => change({ part: part === "graph" ? null : part })} />
          <div className="job-graph">
            {nodes.length > 0 ? (
              <GraphView
                label="Graph of the job"
                nodes={drawn}
                edges={edges}
                selected={nodeId}
                onSelect={select}
                onOpen={openNode}
              />
            ) : (
              <NoNodes job={job} />
            )}
          </div>
          <div className="job-middle">
            <Timeline
              job={job}
              summaries={summaries}
              selected={index === null ? nodeId : `${nodeId}[${index}]`}
              onOpen={open}
            />
            <Lower
              job={job}
              node={node?.items ? node : nodes.find((entry) => entry.items)}
              summaries={summaries}
              opened={index}
              onOpen={open}
              onRetryFailed={retries && over ? () => setRetrying({ way: "failed", nodeId: null }) : undefined}
            />
          </div>
        </div>
        {tab !== null && node && (
          <NodeDrawer
            job={job}
            nodeId={node.node_id}
            index={node.items ? index : null}
            tab={tab}
            onTab={(next) => change({ tab: next })}
            onNode={() => open(node.node_id)}
            onClose={close}
            onRetry={
              retries && over
                ? () => setRetrying({ way: index === null ? "from" : "failed", nodeId: node.node_id })
                : undefined
            }
          />
        )}
      </div>
      {retrying && (
        <RetryDialog job={job} way={retrying.way} nodeId={retrying.nodeId} onClose={() => setRetrying(null)} />
      )}
    </Screen>
  );
}

/** The summaries of all fan-outs that have items. */
function useSummaries(job: JobDetails): ReadonlyMap<string, ItemSummary> {
  const fanOuts = (job.nodes ?? []).filter((node) => node.items).map((node) => node.node_id);
  const names = fanOuts.join("\n");
  const loaded = useQueries({ queries: fanOuts.map((nodeId) => summaryQuery(job.job_id, nodeId)), combine: onlyData });
  return useMemo(
    () => new Map(names.split("\n").flatMap((nodeId, place) => (loaded[place] ? [[nodeId, loaded[place]]] : []))),
    [names, loaded],
  );
}

function onlyData(answers: { data?: ItemSummary }[]): (ItemSummary | undefined)[] {
  return answers.map((answer) => answer.data);
}

function Notes(properties: { job: JobDetails; staleSince: number | null; onOpen: (nodeId: string) => void }) {
  const { job, staleSince, onOpen } = properties;
  const failed = job.failed_node_id;
  return (
    <div className="job-notes">
      {staleSince !== null && <Note kind="warn">The gateway does not answer. What you see may be old.</Note>}
      {job.parked_at && (
        <Note kind="warn" more="Correct the cause, then release the job.">
          The job is parked: {job.parked_reason}
        </Note>
      )}
      {job.error && hasEnded(job.status) && (
        <Note kind={job.status === "failed" ? "bad" : "info"}>
          {job.error}{" "}
          {failed && (
            <button type="button" className="link strong" onClick={() => onOpen(failed)}>
              Open {failed}
            </button>
          )}
        </Note>
      )}
      {(job.progress.waits ?? []).map((wait) => (
        <Note key={wait} kind="warn">
          {wait}
        </Note>
      ))}
    </div>
  );
}

function NoNodes({ job }: { job: JobDetails }) {
  if (job.details_deleted_at)
    return (
      <Empty title="The details are gone">Nodes, events and logs of this job were deleted. Its result is there.</Empty>
    );
  return <Empty title="Not begun yet">The graph appears when an orchestrator has claimed the job.</Empty>;
}

const PARTS: readonly { part: Part; label: string }[] = [
  { part: "graph", label: "Graph" },
  { part: "timeline", label: "Timeline" },
  { part: "items", label: "Items and more" },
];

/** On a phone the three parts of the screen are tabs. */
function PartTabs({ part, onChange }: { part: Part; onChange: (part: Part) => void }) {
  return (
    <nav className="tabs part-tabs" aria-label="Parts of the screen">
      {PARTS.map((entry) => (
        <button key={entry.part} type="button" aria-pressed={entry.part === part} onClick={() => onChange(entry.part)}>
          {entry.label}
        </button>
      ))}
    </nav>
  );
}
