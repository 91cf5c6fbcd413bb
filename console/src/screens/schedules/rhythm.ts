/** When a schedule starts its workflow, as its form has it. */

import type { ScheduleView } from "@/api/schema";

export interface Rhythm {
  kind: "cron" | "interval";
  cron: string;
  timezone: string;
  minutes: string;
}

export function rhythmOf(schedule: Pick<ScheduleView, "cron" | "timezone" | "interval_seconds"> | null): Rhythm {
  return {
    kind: schedule?.interval_seconds ? "interval" : "cron",
    cron: schedule?.cron ?? "0 3 * * *",
    timezone: schedule?.cron ? schedule.timezone : Intl.DateTimeFormat().resolvedOptions().timeZone,
    minutes: String((schedule?.interval_seconds ?? 3600) / 60),
  };
}

/** The fields that the API takes: cron with its time zone, or an interval. */
export function timesOf(rhythm: Rhythm) {
  return rhythm.kind === "cron"
    ? { cron: rhythm.cron.trim(), timezone: rhythm.timezone.trim() }
    : { interval_seconds: Math.round(Number(rhythm.minutes) * 60) };
}
