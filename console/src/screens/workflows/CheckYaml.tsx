import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Note } from "@/components/Note";
import { plural } from "@/format/number";
import { useKeys } from "@/shell/keys";
import { placeOfLine } from "./lines";

const EXAMPLE = "workflow_id: greet\nnodes:\n  START: {type: start, next: hello}\n  …";

/** Paste a workflow and see its problems beside their lines. Nothing is stored. */
export function CheckYaml() {
  const [text, setText] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  const show = (line: number) => {
    const [from, to] = placeOfLine(text, line);
    area.current?.focus();
    area.current?.setSelectionRange(from, to);
    // A field scrolls to where something is typed, not to what is selected: one line is a share of its height.
    const whole = area.current?.scrollHeight ?? 0;
    if (area.current) area.current.scrollTop = (whole * (line - 5)) / text.split("\n").length;
  };
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
              ref={area}
              className="input mono"
              rows={24}
              placeholder={EXAMPLE}
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
        {check.isIdle && (
          <Empty icon="info" title="Nothing has been checked yet">
            Paste the YAML of a workflow. Its problems appear here with their lines, and nothing is stored.
          </Empty>
        )}
        {check.data?.valid && <Note kind="good">{check.data.workflow_id} has no problems.</Note>}
        {problems.length > 0 && (
          <span className="strong">{plural(check.data?.problem_count ?? problems.length, "problem")}</span>
        )}
        {problems.map((problem, place) => (
          <Note key={place} kind="bad" more={problem.hint}>
            <button type="button" className="link" onClick={() => show(problem.line)}>
              line {problem.line}
            </button>
            : {problem.field && <code>{problem.field} </code>}
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
