import { asProblem, UNREACHABLE, wording } from "@/api/problem";
import { clock } from "@/format/time";
import { Button } from "./Button";
import { Icon } from "./Icon";

interface ErrorNoteProps {
  error: unknown;
  /** Until when the data on the screen is right, if there is some. */
  validUntil?: number;
  onRetry?: () => void;
}

/** What happened, what is still valid, the remedy, and the code. Fills the place where the data would be. */
export function ErrorNote({ error, validUntil, onRetry }: ErrorNoteProps) {
  const problem = asProblem(error);
  const { happened, remedy } = wording(problem);
  return (
    <div className="empty" role="alert">
      <span className="error-sign">
        <Icon name="warning" />
      </span>
      <span className="strong">{problem.code === UNREACHABLE ? "The gateway does not answer" : happened}</span>
      <p className="small">
        {validUntil ? `What you see is from ${clock(validUntil)}. ` : ""}
        {remedy}
      </p>
      <code className="dim">{problem.code}</code>
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

/** The same in a line, above a form or a table that stays. */
export function ErrorLine({ error }: { error: unknown }) {
  const problem = asProblem(error);
  const { happened, remedy } = wording(problem);
  return (
    <div className="note bad" role="alert">
      <Icon name="warning" />
      <span className="strong">{happened}</span>
      <span className="small soft">
        {remedy} <code>{problem.code}</code>
      </span>
      {problem.errors.map((entry) => (
        <span key={entry.field} className="small">
          <code>{entry.field}</code> {entry.message}
          {entry.hint ? `: ${entry.hint}` : ""}
        </span>
      ))}
    </div>
  );
}
