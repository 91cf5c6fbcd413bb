/** Tracebacks of Python, as handlers' log lines have them: one line of text is one line of the log. */

export interface LogMessage {
  message: string;
  attempt: number;
}

const HEAD = "Traceback (most recent call last)";
const RAISED = /^the handler raised /;

/** The traceback that ended an attempt, with those of its causes, from the attempt's lines of level ERROR. */
export function tracebackOf(lines: readonly LogMessage[], attempt: number): string | null {
  const messages = lines.filter((line) => line.attempt === attempt).map((line) => line.message);
  const raised = messages.findLastIndex((message) => RAISED.test(message));
  const own = messages.slice(raised + 1);
  const begin =
    raised < 0
      ? own.findLastIndex((message) => message.startsWith(HEAD))
      : own.findIndex((message) => message.startsWith(HEAD));
  return begin < 0 ? null : own.slice(begin).join("\n");
}

/** The frames, and the error itself, which is what people look for: the lines after the last frame. */
export function parted(traceback: string): { frames: string; error: string } {
  const lines = traceback.trimEnd().split("\n");
  const last = lines.findLastIndex((line) => line.startsWith("  "));
  return { frames: lines.slice(0, last + 1).join("\n"), error: lines.slice(last + 1).join("\n") };
}
