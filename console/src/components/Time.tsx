import { age, duration, moment, secondsBetween, utc } from "@/format/time";
import { useNow } from "@/live/clock";

/** A moment in the viewer's zone, with UTC on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="dim">–</span>;
  return (
    <time dateTime={at} title={utc(at)}>
      {moment(at)}
    </time>
  );
}

/** How long ago a moment was, up to a day; then its date. */
export function Age({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className="dim">–</span>;
  return (
    <time dateTime={at} title={utc(at)}>
      {age(at, now)}
    </time>
  );
}

/** The span between two moments; up to now if the second is missing. */
export function Span({ from, to }: { from: string | null | undefined; to?: string | null }) {
  const now = useNow();
  if (!from) return <span className="dim">–</span>;
  return <span title={`from ${utc(from)}`}>{duration(secondsBetween(from, to ?? now))}</span>;
}
