import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import type { WorkflowDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { shortId } from "@/format/number";
import { useKeys } from "@/shell/keys";
import { useToast } from "@/shell/toasts";
import { type InputDeclaration, isRequired, textOf, valuesOf } from "./inputs";

/** More inputs than this stand beside each other, where there is room. */
const MANY = 4;

/** Runs a workflow with the inputs that it declares. */
export function RunForm({ workflow }: { workflow: WorkflowDetails }) {
  const inputs = workflow.inputs as Record<string, InputDeclaration>;
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [, navigate] = useLocation();
  const toast = useToast();
  const run = useMutation({
    mutationFn: (values: Record<string, unknown>) =>
      ok(api.POST("/api/v1/jobs", { body: { workflow_id: workflow.workflow_id, input_params: values, priority: 0 } })),
    onSuccess: (job) => {
      toast({ text: `The job ${shortId(job.job_id)} has been submitted.`, state: "queued" });
      navigate(`/jobs/${job.job_id}`);
    },
  });
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    const result = valuesOf(texts, inputs);
    setProblems(result.problems);
    if (Object.keys(result.problems).length === 0) run.mutate(result.values);
  };
  useKeys([{ keys: "Ctrl+Enter", label: "run", shown: true, run: () => submit() }]);
  const refused = run.error ? asProblem(run.error) : null;
  return (
    <form className={Object.keys(inputs).length > MANY ? "run stack3 many" : "run stack3"} onSubmit={submit}>
      {refused && <ErrorLine error={refused} />}
      {Object.keys(inputs).length === 0 && <p className="soft">It has no inputs.</p>}
      {requiredFirst(inputs).map(([name, declaration]) => (
        <Field
          key={name}
          label={name}
          aside={
            <span className="dim">{isRequired(declaration) ? `${declaration.type}, required` : declaration.type}</span>
          }
          help={declaration.description}
          wrong={problems[name] ?? refused?.of(name)}
        >
          {(field) =>
            declaration.type === "boolean" || declaration.enum ? (
              <select
                {...field}
                className="input"
                value={texts[name] ?? ""}
                onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
              >
                <option value="">{declaration.default == null ? "" : `default: ${textOf(declaration.default)}`}</option>
                {(declaration.enum ?? [true, false]).map((choice) => (
                  <option key={textOf(choice)} value={textOf(choice)}>
                    {textOf(choice)}
                  </option>
                ))}
              </select>
            ) : (
              <input
                {...field}
                className="input mono"
                placeholder={declaration.default == null ? "" : textOf(declaration.default)}
                value={texts[name] ?? ""}
                onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
              />
            )
          }
        </Field>
      ))}
      <div className="line go">
        <Button type="submit" kind="primary" size="large" icon="play" disabled={run.isPending}>
          Run
        </Button>
        <span className="small dim">An empty field has its default.</span>
      </div>
    </form>
  );
}

function requiredFirst(inputs: Record<string, InputDeclaration>): [string, InputDeclaration][] {
  return Object.entries(inputs).sort(([, one], [, other]) => Number(isRequired(other)) - Number(isRequired(one)));
}
