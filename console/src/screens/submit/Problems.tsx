/** The problems of a file: what is wrong, why, and the remedy as a button. */

import { useRef, useState } from "react";
import type { InspectionProblem } from "@/api/schema";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { Glyph } from "@/components/states";
import { recall, remember } from "@/shell/remembered";
import type { Options, Solution } from "./draft";
import { cleaned, isTime, readyRemedies, withoutRemedy } from "./remedies";

interface ProblemsProps {
  problems: readonly InspectionProblem[];
  solutions: readonly Solution[];
  fileName: string;
  onSolve: (problem: InspectionProblem, options: Options) => void;
  onUndo: (solution: Solution) => void;
  onReplace: () => void;
  onTime: () => void;
}

export function Problems(properties: ProblemsProps) {
  const errors = properties.problems.filter((problem) => problem.severity === "error");
  const warnings = properties.problems.filter((problem) => problem.severity !== "error");
  const open = new Set(properties.problems.map((problem) => problem.code));
  return (
    <>
      {errors.map((problem, place) => (
        <Problem key={`${problem.code}${place}`} problem={problem} first={place === 0} {...properties} />
      ))}
      {properties.solutions
        .filter((solution) => !open.has(solution.code))
        .map((solution) => (
          <Solved key={solution.code} solution={solution} onUndo={() => properties.onUndo(solution)} />
        ))}
      {warnings.length > 0 && (
        <ul className="remarks" aria-label="Remarks">
          {warnings.map((problem, place) => (
            <Remark
              key={`${problem.code}${place}`}
              problem={problem}
              first={errors.length === 0 && place === 0}
              {...properties}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function Problem({ problem, first, ...properties }: ProblemsProps & { problem: InspectionProblem; first: boolean }) {
  const { happened, more } = cleaned(problem.message, properties.fileName);
  return (
    <section className="problem" aria-label={happened} role="alert">
      <div className="line">
        <Glyph state="failed" />
        <span className="strong read">{happened}</span>
        <code className="dim">{problem.code}</code>
      </div>
      {more && <div className="soft">{more}</div>}
      <Remedies problem={problem} first={first} {...properties} />
    </section>
  );
}

function Remark({ problem, first, ...properties }: ProblemsProps & { problem: InspectionProblem; first: boolean }) {
  const { happened, more } = cleaned(problem.message, properties.fileName);
  return (
    <li className="note warn">
      <Icon name="warning" />
      <div className="line wrap">
        <span className="grow">
          {happened} {more}
        </span>
        {!withoutRemedy(problem) && <Remedies problem={problem} first={first} {...properties} />}
      </div>
    </li>
  );
}

function Remedies({ problem, first, ...properties }: ProblemsProps & { problem: InspectionProblem; first: boolean }) {
  const ready = readyRemedies(problem);
  const error = problem.severity === "error";
  const mark = first ? { "data-remedy": "first" } : {};
  if (isTime(problem))
    return (
      <div className="line wrap">
        <Button hint={first ? "1" : undefined} {...mark} onClick={properties.onTime}>
          Give the date
        </Button>
      </div>
    );
  return (
    <div className="line wrap">
      {ready.map((remedy, place) => (
        <Button
          key={remedy.label}
          kind={error && place === 0 ? "primary" : undefined}
          hint={first && place === 0 ? "1" : undefined}
          {...(place === 0 ? mark : {})}
          onClick={() => properties.onSolve(problem, remedy.options)}
        >
          {remedy.label}
        </Button>
      ))}
      {problem.remedies?.map((remedy) => (
        <AskedOption
          key={remedy.option}
          option={remedy.option}
          first={first && ready.length === 0}
          onUse={(value) => properties.onSolve(problem, { [remedy.option]: value })}
        />
      ))}
      {error && withoutRemedy(problem) && (
        <Button {...mark} hint={first ? "1" : undefined} onClick={properties.onReplace}>
          Replace the file
        </Button>
      )}
    </div>
  );
}

/** An option whose value only the submitter knows. The browser offers those that were used before. */
function AskedOption({ option, first, onUse }: { option: string; first: boolean; onUse: (value: string) => void }) {
  const [value, setValue] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const use = () => {
    if (!value.trim()) return input.current?.focus();
    rememberValue(option, value.trim());
    onUse(value.trim());
  };
  return (
    <form
      className="line asked"
      onSubmit={(event) => {
        event.preventDefault();
        use();
      }}
    >
      <label className="line small soft">
        <code>{option}</code>
        <input
          ref={input}
          className="input mono"
          value={value}
          list={`known-${option}`}
          placeholder={option.endsWith("crs") ? "EPSG:32748" : ""}
          {...(first ? { "data-remedy": "first" } : {})}
          onChange={(event) => setValue(event.target.value)}
        />
      </label>
      <datalist id={`known-${option}`}>
        {knownValues(option).map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
      <Button type="submit" hint={first ? "1" : undefined}>
        Use it
      </Button>
    </form>
  );
}

const KNOWN_MOST = 8;
const COMMON_CRS = ["EPSG:4326", "EPSG:3857"];

function knownValues(option: string): string[] {
  const used = (recall(`used.${option}`) ?? "").split("\n").filter(Boolean);
  return option.endsWith("crs") ? [...new Set([...used, ...COMMON_CRS])] : used;
}

function rememberValue(option: string, value: string): void {
  const others = knownValues(option).filter((known) => known !== value);
  remember(`used.${option}`, [value, ...others].slice(0, KNOWN_MOST).join("\n"));
}

function Solved({ solution, onUndo }: { solution: Solution; onUndo: () => void }) {
  const words = Object.entries(solution.options).map(([name, value]) => `${name}: ${String(value)}`);
  return (
    <section className="problem solved" aria-label={`Solved: ${words.join(", ")}`}>
      <div className="line">
        <Glyph state="completed" />
        <span className="grow">
          <span className="strong">{words.join(", ")}</span>, chosen by you.
        </span>
        <Button kind="quiet" onClick={onUndo}>
          Undo
        </Button>
      </div>
    </section>
  );
}
