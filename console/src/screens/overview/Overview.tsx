/** What needs attention with its action, throughput, failures, queues, storage, what was published, processes. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { api, ok } from "@/api/client";
import { Segments } from "@/components/Button";
import { Glyph, State } from "@/components/states";
import { plural } from "@/format/number";
import { age, ZONE } from "@/format/time";
import { useLive } from "@/live";
import { useNow } from "@/live/clock";
import { useAddress } from "@/shell/address";
import { useHealth } from "@/shell/attention";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Attention } from "./Attention";
import { Failures, Throughput } from "./Charts";
import { Processes } from "./Processes";
import { Published } from "./Published";
import { Queues } from "./Queues";
import { Storage } from "./Storage";
import "./overview.css";

const SPANS = { "1": "1 h", "2": "2 h", "24": "24 h", "168": "7 d" } as const;
type Span = keyof typeof SPANS;
const PARTS = 96;

export default function Overview() {
  const may = useMay();
  const now = useNow();
  const [span, setSpan] = useAddress<Span>("hours", "2");
  const health = useHealth();
  const histogram = useQuery({
    queryKey: ["jobs", "histogram", span],
    queryFn: () => {
      const from = new Date(Date.now() - Number(span) * 3_600_000).toISOString();
      return ok(api.GET("/api/v1/jobs/histogram", { params: { query: { created_from: from, parts: PARTS } } }));
    },
    refetchInterval: 15_000,
    placeholderData: keepPreviousData,
  });
  useLive(may("GET /api/v1/stream") ? "jobs" : null, {});
  return (
    <Screen
      title="Overview"
      beside={<Standing />}
      actions={
        <>
          <span className="small soft desk">times in {ZONE}</span>
          <Segments
            label="Time span"
            value={span}
            onChange={setSpan}
            options={(Object.keys(SPANS) as Span[])
              .sort((one, other) => Number(one) - Number(other))
              .map((value) => ({ value, label: SPANS[value] }))}
          />
        </>
      }
      status={[
        `geomill ${health.data?.version ?? ""}`,
        health.dataUpdatedAt ? `figures ${age(health.dataUpdatedAt, now)} old` : "reading figures",
      ]}
    >
      <div className="page twelve">
        <Attention />
        <Throughput query={histogram} hours={Number(span)} active={health.data?.jobs ?? {}} />
        <Failures query={histogram} span={SPANS[span]} />
        <Queues />
        <Storage />
        <Published />
        <Processes />
      </div>
    </Screen>
  );
}

/** Whether the platform is ready, and who is alive. */
function Standing() {
  const { data } = useHealth();
  if (!data) return null;
  const living = (role: string) => data.instances.filter((instance) => instance.role === role && instance.alive).length;
  const workers = data.instances.filter((instance) => instance.role === "worker").length;
  return (
    <span className="line small soft">
      {data.status === "ok" ? <State state="completed">Ready</State> : <Degraded reasons={data.reasons ?? []} />}
      <span className="desk">
        {plural(living("orchestrator"), "orchestrator")}, {living("worker")} of {plural(workers, "worker")} alive
      </span>
    </span>
  );
}

/** Why the platform is not ready: the first reason, and all of them at a click. */
function Degraded({ reasons }: { reasons: string[] }) {
  const id = useId();
  const sign = (
    <>
      <Glyph state="failed" />
      {reasons[0] ?? "Degraded"}
    </>
  );
  if (reasons.length < 2) return <span className="state">{sign}</span>;
  return (
    <span className="menu">
      <button type="button" className="state link" popoverTarget={id}>
        {sign}, and {reasons.length - 1} more
      </button>
      <div id={id} popover="auto" className="popover reasons">
        <ul>
          {reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      </div>
    </span>
  );
}
