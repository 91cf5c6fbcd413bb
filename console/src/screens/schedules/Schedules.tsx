import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import type { NewSchedule, ScheduleView } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { Time } from "@/components/Time";
import { shortId } from "@/format/number";
import { duration } from "@/format/time";
import { Dialog } from "@/shell/Dialog";
import { useMay } from "@/shell/session";
import { SimpleTable } from "../operations/Simple";
import { useAction } from "../operations/useAction";

const KEY = ["schedules"] as const;

/** Workflows that start by themselves: when, and what the last start said. */
export function Schedules() {
  const may = useMay();
  const schedules = useQuery({
    queryKey: KEY,
    queryFn: () => ok(api.GET("/api/v1/schedules", { params: { query: { limit: 500 } } })),
    refetchInterval: 15_000,
  });
  const [creating, setCreating] = useState(false);
  const create = may("POST /api/v1/schedules") && (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
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
              <ScheduleTable rows={rows} />
            </>
          )}
          {creating && <NewScheduleDialog onClose={() => setCreating(false)} />}
        </div>
      )}
    </Loaded>
  );
}

function ScheduleTable({ rows }: { rows: readonly ScheduleView[] }) {
  const may = useMay();
  const path = (id: string) => ({ params: { path: { schedule_id: id } } });
  const pause = useAction({
    run: (row: ScheduleView) =>
      ok(api.PATCH("/api/v1/schedules/{schedule_id}", { ...path(row.schedule_id), body: { paused: !row.paused } })),
    done: (_, row) => (row.paused ? `${row.schedule_id} goes on.` : `${row.schedule_id} is paused.`),
    refresh: [KEY],
  });
  const run = useAction({
    run: (row: ScheduleView) => ok(api.POST("/api/v1/schedules/{schedule_id}/run", path(row.schedule_id))),
    done: (job) => `The job ${shortId(job.job_id)} has been submitted.`,
    refresh: [KEY],
  });
  return (
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
        { head: "Next", num: true, cell: (row) => <Time at={row.next_due_at} /> },
        { head: "Last", num: true, desk: true, cell: (row) => <Time at={row.last_fired_at} /> },
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
            </span>
          ),
        },
      ]}
    />
  );
}

function NewScheduleDialog({ onClose }: { onClose: () => void }) {
  const [texts, setTexts] = useState({
    schedule_id: "",
    workflow_id: "",
    cron: "0 3 * * *",
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  const workflows = useQuery({ queryKey: ["workflows"], queryFn: () => ok(api.GET("/api/v1/workflows")) });
  const create = useAction({
    run: (order: NewSchedule) => ok(api.POST("/api/v1/schedules", { body: order })),
    done: (schedule) => `${schedule.schedule_id} starts ${schedule.workflow_id} by itself.`,
    refresh: [KEY],
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ ...texts } as NewSchedule, { onSuccess: onClose });
  };
  const set = (name: keyof typeof texts) => (event: { target: { value: string } }) =>
    setTexts({ ...texts, [name]: event.target.value });
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form className="stack3" onSubmit={submit}>
        {create.error ? <ErrorLine error={create.error} /> : null}
        <Field label="Name">
          {(field) => (
            <input {...field} required className="input" value={texts.schedule_id} onChange={set("schedule_id")} />
          )}
        </Field>
        <Field label="Workflow">
          {(field) => (
            <select {...field} required className="input" value={texts.workflow_id} onChange={set("workflow_id")}>
              <option value="" />
              {(workflows.data ?? [])
                .filter((workflow) => workflow.started_by !== "geomill")
                .map((workflow) => (
                  <option key={workflow.workflow_id}>{workflow.workflow_id}</option>
                ))}
            </select>
          )}
        </Field>
        <Field label="Cron" help="Minute, hour, day of month, month, day of week.">
          {(field) => <input {...field} required className="input mono" value={texts.cron} onChange={set("cron")} />}
        </Field>
        <Field label="Time zone">
          {(field) => <input {...field} required className="input" value={texts.timezone} onChange={set("timezone")} />}
        </Field>
        <Button type="submit" kind="primary" disabled={create.isPending}>
          Create
        </Button>
      </form>
    </Dialog>
  );
}
