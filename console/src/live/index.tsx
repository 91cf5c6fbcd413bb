/** Live data: screens listen to topics, and patch the cache of answers with what comes. */

import { type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { SESSION_KEY } from "@/api/queries";
import { LiveConnection, type LiveEvent, type LiveState, type Topic } from "./connection";

export type { LiveEvent, LiveState, Topic } from "./connection";

const LiveContext = createContext<LiveConnection | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [connection] = useState(
    () =>
      new LiveConnection((status) => {
        if (status === 401 || status === 403) void client.invalidateQueries({ queryKey: SESSION_KEY });
      }),
  );
  useEffect(() => {
    document.addEventListener("visibilitychange", connection.visibilityChanged);
    return () => {
      document.removeEventListener("visibilitychange", connection.visibilityChanged);
      connection.stop();
    };
  }, [connection]);
  return <LiveContext value={connection}>{children}</LiveContext>;
}

function useConnection(): LiveConnection {
  const connection = useContext(LiveContext);
  if (!connection) throw new Error("LiveProvider is missing");
  return connection;
}

export function useLiveState(): LiveState {
  const connection = useConnection();
  return useSyncExternalStore(connection.watch, connection.current);
}

export function useReconnect(): () => void {
  const connection = useConnection();
  return () => connection.retryNow();
}

/** Events after which the answers in the cache may be wrong: the stream has begun, or has left something out. */
const READ_AGAIN = new Set(["ready", "reset"]);

interface Listening {
  /** Answers to read again when the stream begins or has left something out. */
  refresh?: readonly QueryKey[];
  /** Changes the cache. Called at most twice a second, with all events since the last call. */
  patch?: (client: QueryClient, events: LiveEvent[]) => void;
}

/** Listens to a topic while the component is shown. With `null` it does not listen. */
export function useLive(topic: Topic | null, listening: Listening): void {
  const connection = useConnection();
  const client = useQueryClient();
  const latest = useRef(listening);
  latest.current = listening;
  useEffect(() => {
    if (topic === null) return;
    return connection.listen(topic, (events) => {
      const { refresh, patch } = latest.current;
      if (events.some((event) => READ_AGAIN.has(event.name))) {
        for (const queryKey of refresh ?? []) void client.invalidateQueries({ queryKey });
      }
      patch?.(client, events);
    });
  }, [connection, client, topic]);
}

/** The rows of a topic that begins with a snapshot: `instances` and `reviews`. */
export function applySnapshot<Row>(rows: Row[] | undefined, events: LiveEvent[], id: (row: Row) => string): Row[] {
  let current = rows ?? [];
  for (const event of events) {
    if (event.name === "snapshot") current = (event.data as { rows: Row[] }).rows;
    else if (event.name === "left") {
      const gone = (event.data as { id: string }).id;
      current = current.filter((row) => id(row) !== gone);
    } else if (event.name === "changed") {
      const changed = event.data as Row;
      const place = current.findIndex((row) => id(row) === id(changed));
      current = place < 0 ? [...current, changed] : current.map((row, at) => (at === place ? changed : row));
    }
  }
  return current;
}
