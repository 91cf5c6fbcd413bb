import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Note } from "@/components/Note";
import { plural } from "@/format/number";
import { useKeys } from "@/shell/keys";

/** Paste a workflow and see its problems beside their lines. Nothing is stored. */
export function CheckYaml() {
  const [text, setText] = useState("");
  const check = useMutation({
    mutationFn: (yaml: string) => ok(api.POST("/api/v1/workflows/validate", { body: { text: yaml } })),
  });
  useKeys([{ keys: "Ctrl+Enter", label: "check", shown: true, run: () => text && check.mutate(text) }]);
  const problems = check.data?.problems ?? [];
  return (
    <div className="check-yaml">
      <div className="stack">
        <Field label="YAML of a workflow">
          {(field) => (
            <textarea
              {...field}
              className="input mono"
              rows={24}
              spellCheck={false}
              value={text}
              onChange={(event) => {
                setText(event.target.value);
                check.reset();
              }}
            />
          )}
        </Field>
        <div className="line">
          <Button kind="primary" disabled={!text.trim() || check.isPending} onClick={() => check.mutate(text)}>
            Check
          </Button>
        </div>
      </div>
      <div className="stack" aria-live="polite">
        {check.error ? <ErrorLine error={check.error} /> : null}
        {check.data?.valid && <Note kind="good">{check.data.workflow_id} has no problems.</Note>}
        {problems.length > 0 && (
          <span className="strong">{plural(check.data?.problem_count ?? problems.length, "problem")}</span>
        )}
        {problems.map((problem, place) => (
          <Note key={place} kind="bad" more={problem.hint}>
            line {problem.line}: {problem.field && <code>{problem.field} </code>}
            {problem.message}
          </Note>
        ))}
        {check.data && problems.length > 0 && (
          <Marked text={text} lines={new Set(problems.map((problem) => problem.line))} />
        )}
      </div>
    </div>
  );
}

function Marked({ text, lines }: { text: string; lines: ReadonlySet<number> }) {
  return (
    <pre>
      {text.split("\n").map((line, place) => (
        <span key={place} className={lines.has(place + 1) ? "hot" : undefined}>
          {String(place + 1).padStart(3)} {line}
          {lines.has(place + 1) ? "" : "\n"}
        </span>
      ))}
    </pre>
  );
}
