/** The filters of the list of jobs: they are in the address, and are those of the API. */

export const STATES = ["queued", "pending", "running", "completed", "failed", "cancelled"] as const;
export type JobState = (typeof STATES)[number];

export interface JobFilters {
  status?: JobState[];
  workflow_id?: string;
  asset_id?: string;
  submitted_by?: string;
  correlation_id?: string;
  error?: string;
  parked?: boolean;
  paused?: boolean;
  created_from?: string;
  created_to?: string;
}

/** Filters that are one text. */
export const TEXTS = ["workflow_id", "asset_id", "submitted_by", "correlation_id", "error"] as const;
export type TextFilter = (typeof TEXTS)[number];
export const WORDS: Record<TextFilter, string> = {
  workflow_id: "workflow",
  asset_id: "asset",
  submitted_by: "by",
  correlation_id: "correlation id",
  error: "error has",
};

export function filtersOf(address: URLSearchParams): JobFilters {
  const filters: JobFilters = {};
  const states = address.getAll("status").filter((state): state is JobState => STATES.includes(state as JobState));
  if (states.length > 0) filters.status = states;
  for (const name of TEXTS) {
    const value = address.get(name);
    if (value) filters[name] = value;
  }
  for (const name of ["parked", "paused"] as const) {
    if (address.get(name)) filters[name] = address.get(name) === "true";
  }
  for (const name of ["created_from", "created_to"] as const) {
    const value = address.get(name);
    if (value && !Number.isNaN(Date.parse(value))) filters[name] = value;
  }
  return filters;
}

/** Turns typed words into a filter: `workflow:fails`, `error:disk`, an id, or the name of a workflow. */
export function typed(
  text: string,
  workflows: readonly string[],
): Partial<Record<TextFilter, string>> | { job: string } | null {
  const words = text.trim();
  if (!words) return null;
  const [name, ...rest] = words.split(":");
  const value = rest.join(":").trim();
  const known = TEXTS.find((filter) => filter === name || WORDS[filter] === name || filter.replace("_id", "") === name);
  if (known && value) return { [known]: value };
  if (/^[0-9a-f]{8}-[0-9a-f-]{20,}$/i.test(words)) return { job: words };
  if (workflows.includes(words)) return { workflow_id: words };
  return words.length >= 2 ? { error: words } : null;
}
