import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { JobDifference } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { shortId } from "@/format/number";
import { duration } from "@/format/time";
import { useAddress } from "@/shell/address";
import type { JobDetails } from "./data";

/** How another job differs from this one: inputs, states, durations, outputs. */
export function Compare({ job }: { job: JobDetails }) {
  const [other, setOther] = useAddress("with", job.retry_of ?? "");
  const [text, setText] = useState(other);
  const query = useQuery({
    queryKey: ["job", job.job_id, "difference", other],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/jobs/{job_id}/difference", {
          params: { path: { job_id: other }, query: { with: job.job_id } },
          signal,
        }),
      ),
    enabled: other !== "",
  });
  return (
    <section className="about-job" aria-label="Comparison">
      <form
        className="line"
        onSubmit={(event) => {
          event.preventDefault();
          setOther(text.trim());
        }}
      >
        <div className="grow">
          <Field label="Compare with the job" help="The other job is what was before, this one what came after.">
            {(attributes) => (
              <input
                className="input mono"
                value={text}
                onChange={(event) => setText(event.target.value)}
                {...attributes}
              />
            )}
          </Field>
        </div>
        <Button type="submit">Compare</Button>
      </form>
      {other !== "" && <Loaded query={query}>{(difference) => <Difference difference={difference} />}</Loaded>}
    </section>
  );
}

function Difference({ difference }: { difference: JobDifference }) {
  const values = [
    ...difference.inputs.map((entry) => ({ ...entry, of: "input" })),
    ...difference.results.map((entry) => ({ ...entry, of: "result" })),
  ];
  if (values.length === 0 && difference.nodes.length === 0)
    return (
      <Empty title="No difference">
        Inputs, states and outputs are the same{difference.same_definition ? "" : ", although the definitions differ"}.
      </Empty>
    );
  return (
    <>
      <table aria-label="Differences">
        <thead>
          <tr>
            <th>What</th>
            <th>{shortId(difference.job_id)}</th>
            <th>{shortId(difference.other_job_id)}</th>
          </tr>
        </thead>
        <tbody>
          <Line
            what="state"
            before={<StateOf value={difference.status.before} />}
            after={<StateOf value={difference.status.after} />}
          />
          <Line what="ran" before={span(difference.run_seconds.before)} after={span(difference.run_seconds.after)} />
          {values.map((entry) => (
            <Line
              key={`${entry.of} ${entry.name}`}
              what={`${entry.of} ${entry.name}`}
              before={shown(entry.before)}
              after={shown(entry.after)}
            />
          ))}
          {difference.nodes.map((node) => (
            <Line
              key={node.node_id}
              what={node.node_id}
              before={
                <NodeSide status={node.status.before} seconds={node.run_seconds.before} error={node.error.before} />
              }
              after={<NodeSide status={node.status.after} seconds={node.run_seconds.after} error={node.error.after} />}
            />
          ))}
        </tbody>
      </table>
      {difference.more && <p className="small soft">There are more differences than are listed.</p>}
    </>
  );
}

function Line({ what, before, after }: { what: string; before: React.ReactNode; after: React.ReactNode }) {
  return (
    <tr>
      <td>{what}</td>
      <td className="wraps">{before}</td>
      <td className="wraps">{after}</td>
    </tr>
  );
}

function StateOf({ value }: { value: unknown }) {
  return typeof value === "string" ? <State state={value} /> : <span className="dim">–</span>;
}

function NodeSide({ status, seconds, error }: { status: unknown; seconds: unknown; error: unknown }) {
  return (
    <>
      <StateOf value={status} /> <span className="dim">{span(seconds)}</span>
      {typeof error === "string" && <div className="small soft">{error}</div>}
    </>
  );
}

function span(value: unknown): string {
  return typeof value === "number" ? duration(value) : "";
}

function shown(value: unknown): string {
  return value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
}
