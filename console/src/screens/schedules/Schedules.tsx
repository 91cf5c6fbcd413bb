import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import type { ScheduleView } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { Time } from "@/components/Time";
import { shortId } from "@/format/number";
import { duration } from "@/format/time";
import { Dialog } from "@/shell/Dialog";
import { useMay } from "@/shell/session";
import { SimpleTable } from "../operations/Simple";
import { useAction } from "../operations/useAction";
import { SCHEDULES_KEY, ScheduleDialog } from "./ScheduleDialog";

/** Workflows that start by themselves: when, and what the last start said. */
export function Schedules() {
  const may = useMay();
  const schedules = useQuery({
    queryKey: SCHEDULES_KEY,
    queryFn: () => ok(api.GET("/api/v1/schedules", { params: { query: { limit: 500 } } })),
    refetchInterval: 15_000,
  });
  const [edited, setEdited] = useState<ScheduleView | "new" | null>(null);
  const create = may("POST /api/v1/schedules") && (
    <Button kind="primary" icon="plus" onClick={() => setEdited("new")}>
      New schedule
    </Button>
  );
  return (
    <Loaded query={schedules}>
      {({ schedules: rows }) => (
        <div className="stack3">
          {rows.length === 0 ? (
            <Empty icon="calendar" title="Nothing starts by itself" action={create}>
              A schedule starts a workflow at set times.
            </Empty>
          ) : (
            <>
              <div className="line">{create}</div>
              <ScheduleTable rows={rows} onEdit={setEdited} />
            </>
          )}
          {edited && <ScheduleDialog schedule={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
        </div>
      )}
    </Loaded>
  );
}

function ScheduleTable({ rows, onEdit }: { rows: readonly ScheduleView[]; onEdit: (row: ScheduleView) => void }) {
  const may = useMay();
  const [deleted, setDeleted] = useState<ScheduleView | null>(null);
  const path = (id: string) => ({ params: { path: { schedule_id: id } } });
  const pause = useAction({
    run: (row: ScheduleView) =>
      ok(api.PATCH("/api/v1/schedules/{schedule_id}", { ...path(row.schedule_id), body: { paused: !row.paused } })),
    done: (_, row) => (row.paused ? `${row.schedule_id} goes on.` : `${row.schedule_id} is paused.`),
    refresh: [SCHEDULES_KEY],
  });
  const run = useAction({
    run: (row: ScheduleView) => ok(api.POST("/api/v1/schedules/{schedule_id}/run", path(row.schedule_id))),
    done: (job) => `The job ${shortId(job.job_id)} has been submitted.`,
    refresh: [SCHEDULES_KEY],
  });
  return (
    <>
      {deleted && <DeleteDialog schedule={deleted} onClose={() => setDeleted(null)} />}
      <SimpleTable
        label="Schedules"
        rows={rows}
        rowKey={(row) => row.schedule_id}
        columns={[
          {
            head: "State",
            cell: (row) => (
              <State state={row.paused ? "paused" : row.last_error ? "failed" : "ready"}>
                {row.paused ? "paused" : row.last_error ? "failing" : "waits"}
              </State>
            ),
          },
          { head: "Schedule", cell: (row) => <span className="strong">{row.schedule_id}</span> },
          { head: "Workflow", cell: (row) => <Link href={`/workflows/${row.workflow_id}`}>{row.workflow_id}</Link> },
          {
            head: "When",
            cell: (row) =>
              row.cron ? <code>{`${row.cron} ${row.timezone}`}</code> : `every ${duration(row.interval_seconds ?? 0)}`,
          },
          {
            head: "Inputs",
            desk: true,
            wraps: true,
            cell: (row) =>
              Object.keys(row.input_params).length > 0 ? <code>{JSON.stringify(row.input_params)}</code> : "–",
          },
          { head: "Next", num: true, cell: (row) => <Time at={row.next_due_at} /> },
          {
            head: "Last",
            num: true,
            desk: true,
            cell: (row) => (
              <Link href={`/jobs?workflow_id=${encodeURIComponent(row.workflow_id)}&submitted_by=schedule`}>
                <Time at={row.last_fired_at} />
              </Link>
            ),
          },
          { head: "Remark", wraps: true, desk: true, cell: (row) => row.last_error ?? "" },
          {
            head: "",
            num: true,
            cell: (row) => (
              <span className="line">
                {may("POST /api/v1/schedules/{schedule_id}/run") && (
                  <Button disabled={run.isPending} onClick={() => run.mutate(row)}>
                    Run now
                  </Button>
                )}
                {may("PATCH /api/v1/schedules/{schedule_id}") && (
                  <Button disabled={pause.isPending} onClick={() => pause.mutate(row)}>
                    {row.paused ? "Resume" : "Pause"}
                  </Button>
                )}
                {may("PATCH /api/v1/schedules/{schedule_id}") && <Button onClick={() => onEdit(row)}>Edit</Button>}
                {may("DELETE /api/v1/schedules/{schedule_id}") && (
                  <Button kind="danger" onClick={() => setDeleted(row)}>
                    Delete
                  </Button>
                )}
              </span>
            ),
          },
        ]}
      />
    </>
  );
}

function DeleteDialog({ schedule, onClose }: { schedule: ScheduleView; onClose: () => void }) {
  const remove = useAction({
    run: (id: string) => ok(api.DELETE("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: id } } })),
    done: () => `${schedule.schedule_id} is deleted. Its jobs stay.`,
    refresh: [SCHEDULES_KEY],
  });
  return (
    <Dialog
      title={`Delete ${schedule.schedule_id}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            kind="danger"
            disabled={remove.isPending}
            onClick={() => remove.mutate(schedule.schedule_id, { onSettled: onClose })}
          >
            Delete
          </Button>
        </>
      }
    >
      <p>
        {schedule.workflow_id} no longer starts by itself. Jobs that run go on, and all of its jobs stay in the list.
      </p>
    </Dialog>
  );
}
