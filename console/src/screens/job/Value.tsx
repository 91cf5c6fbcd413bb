import { useMemo } from "react";
import { CopyButton } from "./CopyButton";

const LONGEST = 100_000;

/** A JSON value as text, to read and to copy. */
export function Value({ value, name }: { value: unknown; name: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "", [value]);
  const shown = text.length > LONGEST ? text.slice(0, LONGEST) : text;
  return (
    <div className="value">
      <CopyButton text={text} label="Copy" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keys */}
      <section tabIndex={0} aria-label={name}>
        <pre>{shown}</pre>
      </section>
      {shown.length < text.length && (
        <p className="small soft">The first {LONGEST.toLocaleString("en-GB")} characters. Copy has all of them.</p>
      )}
    </div>
  );
}
