/** Times in the viewer's zone. A moment that is not of today has its date, and its year if that is another one. */

const DAY = 86_400_000;

export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export type Moment = string | number | Date;

const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const shortFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** `09:14:51` */
export function clock(moment: Moment): string {
  return clockFormat.format(new Date(moment));
}

/** `09:14` */
export function shortClock(moment: Moment): string {
  return shortFormat.format(new Date(moment));
}

/** `14 Nov`, or `14 Nov 2025` if that is another year than now. */
export function day(moment: Moment, now: Moment = Date.now()): string {
  const date = new Date(moment);
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(date);
}

/** `09:14:51` today, `14 Nov 22:41` earlier this year, `14 Nov 2025` before. */
export function moment(value: Moment, now: Moment = Date.now()): string {
  const date = new Date(value);
  const today = new Date(now);
  if (date.toDateString() === today.toDateString()) return clock(date);
  return date.getFullYear() === today.getFullYear() ? `${day(date, now)} ${shortClock(date)}` : day(date, now);
}

/** `2026-11-14 22:41:07 UTC`, for the title of a time. */
export function utc(value: Moment): string {
  return `${new Date(value).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** A span in at most two units: `0.3 s`, `12.4 s`, `1 min 04 s`, `3 h 12 min`, `2 d 4 h`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const span = Math.max(0, seconds);
  if (span < 10) return `${span.toFixed(1)} s`;
  if (span < 60) return `${Math.round(span)} s`;
  const minutes = Math.floor(span / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(span % 60)).padStart(2, "0")} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How long ago: `8 s`, `3 h 12 min` up to a day, then the date. */
export function age(value: Moment, now: Moment = Date.now()): string {
  const span = new Date(now).getTime() - new Date(value).getTime();
  return span < DAY ? duration(Math.max(0, Math.round(span / 1000))).replace(/^(\d)\.0 s$/, "$1 s") : day(value, now);
}

export function secondsBetween(from: Moment, to: Moment): number {
  return (new Date(to).getTime() - new Date(from).getTime()) / 1000;
}
