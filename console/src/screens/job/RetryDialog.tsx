import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { count } from "@/format/number";
import { Dialog } from "@/shell/Dialog";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import type { JobDetails } from "./data";
import { asText, changes, type InputDefinition, isLong } from "./inputs";

export type RetryWay = "failed" | "from" | "inputs";

/** Asks what is to run again, and says what that does. */
export function RetryDialog(properties: {
  job: JobDetails;
  way: RetryWay;
  nodeId: string | null;
  onClose: () => void;
}) {
  const { job, onClose } = properties;
  const may = useMay();
  const ways = waysOf(job, properties.nodeId, may("GET /api/v1/workflows/{workflow_id}"));
  const [way, setWay] = useState(ways.some((entry) => entry.way === properties.way) ? properties.way : ways[0]?.way);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const definitions = useInputs(job.workflow_id, way === "inputs");
  const { changed, wrong } = changes(texts, job.input_params ?? {}, definitions.data ?? {});
  const retry = useRetry(job, onClose);
  const send = () => {
    if (way === "inputs") retry.mutate({ input_params: changed });
    else retry.mutate(way === "from" && properties.nodeId ? { from_node: properties.nodeId } : { only_failed: true });
  };
  const blocked = retry.isPending || (way === "inputs" && Object.keys(wrong).length > 0);
  return (
    <Dialog
      title={`Retry ${job.workflow_id}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" icon="retry" onClick={send} disabled={blocked}>
            {way === "inputs" ? "Start a new job" : "Retry"}
          </Button>
        </>
      }
    >
      {retry.error && <ErrorLine error={retry.error} />}
      <fieldset className="stack" aria-label="What runs again">
        {ways.map((entry) => (
          <label key={entry.way} className="check">
            <input type="radio" name="way" checked={way === entry.way} onChange={() => setWay(entry.way)} />
            <span>
              {entry.label}
              <br />
              <span className="small soft">{entry.effect}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {way === "inputs" && (
        <Loaded query={definitions}>
          {(inputs) => (
            <InputFields
              inputs={inputs}
              values={job.input_params ?? {}}
              texts={texts}
              wrong={{ ...wrong, ...refusals(retry.error, inputs) }}
              onChange={(name, text) => setTexts((old) => ({ ...old, [name]: text }))}
            />
          )}
        </Loaded>
      )}
    </Dialog>
  );
}

interface Way {
  way: RetryWay;
  label: string;
  effect: string;
}

function waysOf(job: JobDetails, nodeId: string | null, mayReadWorkflow: boolean): Way[] {
  const over = job.status === "failed" || job.status === "cancelled";
  const nodes = job.nodes ?? [];
  const left = nodes.filter((node) => node.status !== "completed" && node.status !== "skipped").length;
  const items = nodes.reduce((sum, node) => sum + (node.items?.failed ?? 0), 0);
  const ways: Way[] = [];
  if (over)
    ways.push({
      way: "failed",
      label: "Only what did not complete",
      effect: `${count(left)} nodes${items ? `, and ${count(items)} failed items` : ""}. What completed keeps its output.`,
    });
  if (over && nodeId && isTask(nodes.find((node) => node.node_id === nodeId)?.type))
    ways.push({
      way: "from",
      label: `From ${nodeId}`,
      effect: "This node and all after it run again. The results of items of fan-outs among them are deleted.",
    });
  if (!job.asset_id && mayReadWorkflow)
    ways.push({
      way: "inputs",
      label: "With changed inputs",
      effect: "A new job, by the workflow as it is now. This one stays as it is.",
    });
  return ways;
}

function isTask(type: string | null | undefined): boolean {
  return type !== undefined && type !== null && type !== "start" && type !== "end";
}

export function canRetry(job: JobDetails): boolean {
  if (job.details_deleted_at) return false;
  return job.status === "failed" || job.status === "cancelled" || (job.status === "completed" && !job.asset_id);
}

type RetryBody = { from_node?: string; only_failed?: boolean; input_params?: Record<string, unknown> };

function useRetry(job: JobDetails, onClose: () => void) {
  const toast = useToast();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: (body: RetryBody) =>
      ok(api.POST("/api/v1/jobs/{job_id}/retry", { params: { path: { job_id: job.job_id } }, body: body as never })),
    onSuccess: (accepted) => {
      void client.invalidateQueries({ queryKey: ["job", job.job_id] });
      onClose();
      if (accepted.retry_of) navigate(`/jobs/${accepted.job_id}`);
      toast({ text: accepted.retry_of ? "A new job has been sent." : "The job runs again.", state: "running" });
    },
  });
}

function useInputs(workflowId: string, enabled: boolean) {
  return useQuery({
    queryKey: ["workflow", workflowId, "inputs"],
    queryFn: async () => {
      const workflow = await ok(
        api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: workflowId } } }),
      );
      return workflow.inputs as Record<string, InputDefinition>;
    },
    enabled,
  });
}

function refusals(error: unknown, inputs: Record<string, InputDefinition>): Record<string, string> {
  if (!error) return {};
  const problem = asProblem(error);
  return Object.fromEntries(
    Object.keys(inputs).flatMap((name) => (problem.of(name) ? [[name, problem.of(name) ?? ""]] : [])),
  );
}

function InputFields(properties: {
  inputs: Record<string, InputDefinition>;
  values: Record<string, unknown>;
  texts: Record<string, string>;
  wrong: Record<string, string>;
  onChange: (name: string, text: string) => void;
}) {
  const names = Object.keys(properties.inputs);
  if (names.length === 0) return <p className="small soft">The workflow has no inputs.</p>;
  return names.map((name) => {
    const input = properties.inputs[name] ?? {};
    const type = input.type ?? "string";
    const text = properties.texts[name] ?? asText(properties.values[name], type);
    const change = (event: { target: { value: string } }) => properties.onChange(name, event.target.value);
    return (
      <Field
        key={name}
        label={name}
        aside={<span className="dim">{type}</span>}
        help={input.description}
        wrong={properties.wrong[name]}
      >
        {(attributes) =>
          input.enum || type === "boolean" ? (
            <select className="input" value={text} onChange={change} {...attributes}>
              {(input.enum ?? [true, false]).map((choice) => (
                <option key={String(choice)} value={asText(choice, type)}>
                  {String(choice)}
                </option>
              ))}
            </select>
          ) : isLong(type) ? (
            <textarea className="input mono" rows={3} value={text} onChange={change} {...attributes} />
          ) : (
            <input className="input" value={text} onChange={change} {...attributes} />
          )
        }
      </Field>
    );
  });
}
