import { asProblem, UNREACHABLE, wording } from "@/api/problem";
import { clock } from "@/format/time";
import { Button, ButtonLink } from "./Button";
import { Icon } from "./Icon";

interface ErrorNoteProps {
  error: unknown;
  /** Until when the data on the screen is right, if there is some. */
  validUntil?: number;
  onRetry?: () => void;
  /** Where to go when what the address names does not exist; then there is nothing to try again. */
  elsewhere?: { href: string; text: string };
}

/** What happened, what is still valid, the remedy, and the code. Fills the place where the data would be. */
export function ErrorNote({ error, validUntil, onRetry, elsewhere }: ErrorNoteProps) {
  const problem = asProblem(error);
  const { happened, remedy } = wording(problem);
  const missing = problem.status === 404 && elsewhere !== undefined;
  return (
    <div className="empty" role="alert">
      <span className="error-sign">
        <Icon name="warning" />
      </span>
      <span className="strong">{problem.code === UNREACHABLE ? "The gateway does not answer" : happened}</span>
      <p className="small">
        {validUntil ? `What you see is from ${clock(validUntil)}. ` : ""}
        {missing ? "It may have been deleted, or the address is mistyped." : remedy}
      </p>
      <code className="dim">{problem.code}</code>
      {missing ? (
        <ButtonLink href={elsewhere.href}>{elsewhere.text}</ButtonLink>
      ) : (
        onRetry && <Button onClick={onRetry}>Try again</Button>
      )}
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
