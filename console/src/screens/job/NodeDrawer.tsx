import { useState } from "react";
import { Drawer } from "@/components/Drawer";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { Loaded } from "@/components/Loading";
import { Badge } from "@/components/states";
import { Tabs } from "@/components/Tabs";
import { Time } from "@/components/Time";
import { count, percent } from "@/format/number";
import { duration } from "@/format/time";
import { hasEnded, type JobDetails, type NodeDetails, useDetails } from "./data";
import { Log } from "./Log";
import { RunTab } from "./RunTab";
import { Value } from "./Value";

export type DrawerTab = "run" | "params" | "output" | "log" | "metrics";

/** Everything about a node, or about an item of a fan-out. */
export function NodeDrawer(properties: {
  job: JobDetails;
  nodeId: string;
  index: number | null;
  tab: DrawerTab;
  onTab: (tab: DrawerTab) => void;
  onNode: () => void;
  onClose: () => void;
  onRetry?: () => void;
}) {
  const { job, nodeId, index } = properties;
  const query = useDetails(job.job_id, nodeId, index);
  const details = query.data;
  const title =
    index === null ? (
      nodeId
    ) : (
      <>
        <button type="button" className="link" onClick={properties.onNode}>
          {nodeId}
        </button>{" "}
        <span className="dim">/</span> item {count(index)}
      </>
    );
  return (
    <Drawer
      title={title}
      label={index === null ? `Node ${nodeId}` : `Item ${index} of ${nodeId}`}
      badge={details && <Badge state={details.status} />}
      beneath={details && [details.handler ?? details.type, details.queue].filter(Boolean).join(" · ")}
      onClose={properties.onClose}
    >
      <Loaded query={query} lines={8}>
        {(loaded) => <DrawerTabs {...properties} details={loaded} />}
      </Loaded>
    </Drawer>
  );
}

function DrawerTabs(properties: {
  job: JobDetails;
  tab: DrawerTab;
  onTab: (tab: DrawerTab) => void;
  onRetry?: () => void;
  details: NodeDetails;
}) {
  const { job, details } = properties;
  const attempts = details.attempts;
  const [chosen, setChosen] = useState<number | null>(null);
  const attempt = attempts.find((entry) => entry.attempt === chosen)?.attempt ?? details.attempt;
  const live = !hasEnded(job.status);
  return (
    <Tabs
      label="Details"
      current={properties.tab}
      onChange={properties.onTab}
      tabs={[
        {
          name: "run",
          label: details.error ? "Error" : "Run",
          content: () => (
            <div className="body">
              <RunTab details={details} attempt={attempt} onAttempt={setChosen} onRetry={properties.onRetry} />
            </div>
          ),
        },
        { name: "params", label: "Params", content: () => <Params details={details} /> },
        { name: "output", label: "Output", content: () => <Output details={details} /> },
        {
          name: "log",
          label: "Log",
          content: () => (
            <Log
              key={`${details.node_id} ${details.index}`}
              jobId={job.job_id}
              nodeId={details.node_id}
              index={details.index}
              live={live}
            />
          ),
        },
        { name: "metrics", label: "Metrics", content: () => <Metrics details={details} /> },
      ]}
    />
  );
}

function Params({ details }: { details: NodeDetails }) {
  if (details.params === null) {
    const why =
      details.type === "fan_out"
        ? "A fan-out has none: each of its items has its own."
        : details.handler === null
          ? `A ${details.type.replace("_", "-")} runs no handler.`
          : "They are rendered when the node begins, or lie in the object store.";
    return <Empty title="No parameters">{why}</Empty>;
  }
  return (
    <div className="body">
      <p className="small soft">
        {details.params_source === "message"
          ? "As they were sent to the worker."
          : "Rendered again from the same definition, inputs and outputs."}
      </p>
      <Value value={details.params} name={`params-${details.node_id}`} />
    </div>
  );
}

function Output({ details }: { details: NodeDetails }) {
  if (details.output === null || details.output === undefined)
    return (
      <Empty title="No output">
        {hasEnded(details.status) ? "It ended without one." : "It appears here when the node has completed."}
      </Empty>
    );
  return (
    <div className="body">
      <Value value={details.output} name={`output-${details.node_id}`} />
    </div>
  );
}

function Metrics({ details }: { details: NodeDetails }) {
  const { checkpoint, lease } = details;
  const metrics = Object.entries(details.metrics);
  return (
    <div className="body">
      <Facts
        facts={[
          ["Waited", details.wait_seconds !== null && duration(details.wait_seconds)],
          ["Ran", details.run_seconds !== null && duration(details.run_seconds)],
          ["Progress", details.progress !== null && percent(details.progress)],
          ["Says", details.message || null],
          ["Sent", details.dispatched_at && <Time at={details.dispatched_at} />],
          ["Began", details.started_at && <Time at={details.started_at} />],
          ["Ended", details.completed_at && <Time at={details.completed_at} />],
          ["Not before", details.not_before && <Time at={details.not_before} />],
          ["Worker", details.worker_id],
          ["Code", details.handler_version],
          ["Lease until", lease?.leased_until && <Time at={lease.leased_until} />],
          ["Delivered", lease && `${count(lease.deliveries)} times`],
          ["Task", details.task_id && <code>{details.task_id}</code>],
        ]}
      />
      {metrics.length > 0 && (
        <>
          <h3>Metrics</h3>
          <Facts facts={metrics.map(([name, value]) => [name, figure(value)])} />
        </>
      )}
      {checkpoint && (
        <>
          <h3>
            Checkpoint {checkpoint.phase} of attempt {checkpoint.attempt}, <Time at={checkpoint.saved_at} />
          </h3>
          <Value value={checkpoint.data} name={`checkpoint-${details.node_id}`} />
        </>
      )}
    </div>
  );
}

function figure(value: unknown): string {
  return typeof value === "number" ? count(Math.round(value * 1000) / 1000) : JSON.stringify(value);
}
