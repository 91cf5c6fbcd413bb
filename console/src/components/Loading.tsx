import { type ReactNode, useEffect, useState } from "react";
import { ErrorNote } from "./ErrorNote";

/** Grey lines of the final height, after 200 ms: a quick answer never flickers. */
export function Loading({ lines = 3 }: { lines?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} className={late ? "grey" : "blank"} />
      ))}
    </div>
  );
}

interface Answer<Data> {
  data: Data | undefined;
  error: unknown;
  dataUpdatedAt: number;
  refetch: () => unknown;
}

/** What a query has: its data, or lines while it loads, or its error. Old data stays on the screen when a later
 * request fails. */
export function Loaded<Data>(properties: { query: Answer<Data>; lines?: number; children: (data: Data) => ReactNode }) {
  const { query } = properties;
  if (query.data !== undefined) return properties.children(query.data);
  if (query.error) return <ErrorNote error={query.error} onRetry={() => query.refetch()} />;
  return <Loading lines={properties.lines} />;
}
