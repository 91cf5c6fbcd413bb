import type { JobEvent } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Glyph } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Time } from "@/components/Time";
import { useEvents } from "./data";

const STATES: Record<string, string> = { success: "completed", failure: "failed", warning: "paused", info: "pending" };
const OWN = new Set(["detail", "attempt"]);

const COLUMNS: readonly Column<JobEvent>[] = [
  { name: "time", head: "Time", width: 120, cell: (event) => <Time at={event.created_at} /> },
  {
    name: "event",
    head: "Event",
    width: 160,
    cell: (event) => (
      <span className="state">
        <Glyph state={STATES[event.event_status ?? "info"] ?? "pending"} title={event.event_status} />
        {event.event_type.replaceAll("_", " ")}
      </span>
    ),
  },
  { name: "node", head: "Node", width: 150, cell: place },
  { name: "what", head: "What", cut: true, cell: (event) => <span className="soft">{words(event)}</span> },
];

function place(event: JobEvent): string {
  const item = event.item_index !== undefined && event.item_index >= 0 ? ` item ${event.item_index}` : "";
  return `${event.node_id ?? ""}${item}`;
}

function words(event: JobEvent): string {
  const data = (event.event_data ?? {}) as Record<string, unknown>;
  const more = Object.entries(data)
    .filter(([name, value]) => !OWN.has(name) && value !== null && value !== "")
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  const attempt = typeof data.attempt === "number" && data.attempt > 1 ? [`attempt ${data.attempt}`] : [];
  return [event.checkpoint_name, data.detail, ...attempt, ...more].filter(Boolean).join(", ");
}

/** What happened to the job, the oldest first. */
export function Events({ jobId, onOpen }: { jobId: string; onOpen: (nodeId: string, index: number | null) => void }) {
  const query = useEvents(jobId);
  return (
    <Loaded query={query} lines={6}>
      {(pages) => (
        <>
          <Table
            label="Events"
            rows={pages.pages.flatMap((page) => page.events)}
            columns={COLUMNS}
            rowKey={(event) => String(event.event_id)}
            keys={false}
            onOpen={(event) =>
              event.node_id && onOpen(event.node_id, (event.item_index ?? -1) < 0 ? null : (event.item_index ?? null))
            }
            empty={
              <Empty title="Nothing has happened yet">
                Events appear here when an orchestrator has claimed the job.
              </Empty>
            }
          />
          {query.hasNextPage && (
            <div className="part">
              <Button onClick={() => void query.fetchNextPage()} disabled={query.isFetchingNextPage}>
                Later events
              </Button>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
