import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import type { WorkflowDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { shortId } from "@/format/number";
import { useKeys } from "@/shell/keys";
import { useToast } from "@/shell/toasts";
import { InputFields } from "./InputFields";
import { type InputDeclaration, valuesOf } from "./inputs";

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
      <InputFields
        inputs={inputs}
        texts={texts}
        onChange={(next) => {
          setTexts(next);
          setProblems({});
        }}
        wrong={(name) => problems[name] ?? refused?.of(name)}
      />
      <div className="line go">
        <Button type="submit" kind="primary" size="large" icon="play" disabled={run.isPending}>
          Run
        </Button>
        <span className="small dim">An empty field has its default.</span>
      </div>
    </form>
  );
}
