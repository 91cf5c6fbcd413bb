import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import type { ScheduleChanges, ScheduleView } from "@/api/schema";
import { Button, Segments } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Dialog } from "@/shell/Dialog";
import { useAction } from "../operations/useAction";
import { InputFields } from "../workflows/InputFields";
import { type InputDeclaration, textOf, valuesOf } from "../workflows/inputs";
import { type Rhythm, rhythmOf, timesOf } from "./rhythm";

export const SCHEDULES_KEY = ["schedules"] as const;

const RHYTHMS = [
  { value: "cron", label: "At times (cron)" },
  { value: "interval", label: "Every …" },
] as const;

/** A new schedule, or the changes of one: the workflow and the name stay. */
export function ScheduleDialog({ schedule, onClose }: { schedule: ScheduleView | null; onClose: () => void }) {
  const [name, setName] = useState(schedule?.schedule_id ?? "");
  const [workflowId, setWorkflowId] = useState(schedule?.workflow_id ?? "");
  const [rhythm, setRhythm] = useState<Rhythm>(() => rhythmOf(schedule));
  const [texts, setTexts] = useState<Record<string, string>>(() => textsOf(schedule?.input_params ?? {}));
  const [problems, setProblems] = useState<Record<string, string>>({});
  const declared = useInputs(workflowId);
  const inputs = declared ?? {};
  const save = useAction({
    run: (changes: ScheduleChanges) =>
      schedule
        ? ok(
            api.PATCH("/api/v1/schedules/{schedule_id}", {
              params: { path: { schedule_id: schedule.schedule_id } },
              body: changes,
            }),
          )
        : ok(
            api.POST("/api/v1/schedules", {
              // The gateway fills in the rest.
              body: { ...changes, schedule_id: name, workflow_id: workflowId } as never,
            }),
          ),
    done: (saved) => `${saved.schedule_id} starts ${saved.workflow_id} by itself.`,
    refresh: [SCHEDULES_KEY],
    tells: true,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!declared) return;
    const values = valuesOf(texts, inputs);
    setProblems(values.problems);
    if (Object.keys(values.problems).length > 0) return;
    save.mutate({ ...timesOf(rhythm), input_params: values.values } as ScheduleChanges, { onSuccess: onClose });
  };
  const refused = save.error ? asProblem(save.error) : null;
  return (
    <Dialog title={schedule ? `Edit ${schedule.schedule_id}` : "New schedule"} onClose={onClose}>
      <form className="stack3" onSubmit={submit}>
        {refused && <ErrorLine error={refused} />}
        {!schedule && (
          <>
            <Field label="Name">
              {(field) => (
                <input
                  {...field}
                  required
                  className="input"
                  value={name}
                  onChange={(event) => setName(event.target.value)}
                />
              )}
            </Field>
            <WorkflowChoice value={workflowId} onChange={setWorkflowId} />
          </>
        )}
        <When rhythm={rhythm} onChange={setRhythm} />
        <InputFields
          inputs={inputs}
          texts={texts}
          onChange={(next) => {
            setTexts(next);
            setProblems({});
          }}
          wrong={(input) => problems[input] ?? refused?.of(input)}
        />
        <Button type="submit" kind="primary" disabled={save.isPending || !declared}>
          {schedule ? "Save" : "Create"}
        </Button>
      </form>
    </Dialog>
  );
}

function textsOf(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, textOf(value)]));
}

/** The inputs of a workflow; null until they are known. */
function useInputs(workflowId: string): Record<string, InputDeclaration> | null {
  const workflow = useQuery({
    queryKey: ["workflow", workflowId],
    queryFn: () => ok(api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: workflowId } } })),
    enabled: workflowId !== "",
    staleTime: 60_000,
  });
  return (workflow.data?.inputs ?? null) as Record<string, InputDeclaration> | null;
}

function WorkflowChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const workflows = useQuery({ queryKey: ["workflows"], queryFn: () => ok(api.GET("/api/v1/workflows")) });
  return (
    <Field label="Workflow">
      {(field) => (
        <select {...field} required className="input" value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="" />
          {(workflows.data ?? [])
            .filter((workflow) => workflow.started_by !== "geomill")
            .map((workflow) => (
              <option key={workflow.workflow_id}>{workflow.workflow_id}</option>
            ))}
        </select>
      )}
    </Field>
  );
}

function When({ rhythm, onChange }: { rhythm: Rhythm; onChange: (rhythm: Rhythm) => void }) {
  return (
    <>
      <Segments label="When" value={rhythm.kind} options={RHYTHMS} onChange={(kind) => onChange({ ...rhythm, kind })} />
      {rhythm.kind === "cron" ? (
        <>
          <Field label="Cron" help="Minute, hour, day of month, month, day of week.">
            {(field) => (
              <input
                {...field}
                required
                className="input mono"
                value={rhythm.cron}
                onChange={(event) => onChange({ ...rhythm, cron: event.target.value })}
              />
            )}
          </Field>
          <Field label="Time zone">
            {(field) => (
              <input
                {...field}
                required
                className="input"
                value={rhythm.timezone}
                onChange={(event) => onChange({ ...rhythm, timezone: event.target.value })}
              />
            )}
          </Field>
        </>
      ) : (
        <Field label="Minutes between two jobs">
          {(field) => (
            <input
              {...field}
              required
              type="number"
              min={0.1}
              step="any"
              className="input"
              value={rhythm.minutes}
              onChange={(event) => onChange({ ...rhythm, minutes: event.target.value })}
            />
          )}
        </Field>
      )}
    </>
  );
}
