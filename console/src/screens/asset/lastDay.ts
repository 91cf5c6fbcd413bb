/** The last day of a shared link, in the viewer's zone. */

/** The longest that the gateway signs a link for. */
const LONGEST_SECONDS = 30 * 86_400;

function midnight(date: Date, days: number): Date {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);
}

/** `2026-11-18`, as a field for dates has it. */
export function isoDay(date: Date): string {
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The last day whose end the gateway signs. */
export function latestDay(now: Date): Date {
  return midnight(new Date(now.getTime() + LONGEST_SECONDS * 1000), -1);
}

/** The seconds until a day ends, or null if there is no such day, or no link may last until then. */
export function secondsUntilEndOf(day: string, now: Date): number | null {
  const [, year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day) ?? [];
  if (!year || !month || !date) return null;
  const end = midnight(new Date(Number(year), Number(month) - 1, Number(date)), 1);
  const seconds = Math.floor((end.getTime() - now.getTime()) / 1000);
  return seconds > 0 && seconds <= LONGEST_SECONDS ? seconds : null;
}
