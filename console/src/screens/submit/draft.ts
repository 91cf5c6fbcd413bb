/** What somebody has filled in for a file, and the submission that it becomes. */

import type { DatasetMetadata, Inspection, InspectionProblem, PlatformSubmission } from "@/api/schema";

export type Clearance = "ouo" | "public";
export type Options = Record<string, unknown>;

/** An option that was chosen to solve a problem. */
export interface Solution {
  code: string;
  message: string;
  options: Options;
}

export interface Draft {
  platformId: string;
  refs: Record<string, string>;
  title: string;
  description: string;
  license: string;
  keywords: string;
  attribution: string;
  /** A date or time, or two with a slash between them. */
  taken: string;
  workflowId: string | null;
  /** The keys of the other rasters of the collection that this file begins. */
  members: string[];
  options: Options;
  solutions: Solution[];
  clearance: Clearance | null;
  overwrite: boolean;
  /** Sent with the submission, so that sending it twice is one submission. */
  idempotencyKey: string;
  requestId: string | null;
}

export function newDraft(platformId: string): Draft {
  return {
    platformId,
    refs: {},
    title: "",
    description: "",
    license: "",
    keywords: "",
    attribution: "",
    taken: "",
    workflowId: null,
    members: [],
    options: {},
    solutions: [],
    clearance: null,
    overwrite: false,
    idempotencyKey: newKey(),
    requestId: null,
  };
}

export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const MOMENT = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/** The times of `2026-06-30` or `2026-01-01/2026-06-30`, or null if the text says something else. */
export function timesOf(text: string): Options | null {
  const parts = text.split("/").map((part) => part.trim());
  if (!text.trim()) return {};
  if (parts.length > 2 || !parts.every((part) => MOMENT.test(part) && !Number.isNaN(Date.parse(part)))) return null;
  const [start, end] = parts as [string, string?];
  if (end === undefined) return { datetime: start };
  return Date.parse(end) < Date.parse(start) ? null : { start_datetime: start, end_datetime: end };
}

/** All options: those of the form, and the times. An empty field is no option. */
export function optionsOf(draft: Draft): Options {
  const filled = Object.entries(draft.options).filter(([, value]) => value !== "" && value !== null);
  return { ...Object.fromEntries(filled), ...timesOf(draft.taken) };
}

function metadataOf(draft: Draft): DatasetMetadata | null {
  const words = draft.keywords.split(",").map((word) => word.trim());
  const keywords = words.filter((word) => word !== "");
  const texts = { title: draft.title, description: draft.description, license: draft.license };
  const filled = Object.entries({ ...texts, attribution: draft.attribution }).flatMap(([name, value]) =>
    value.trim() ? [[name, value.trim()]] : [],
  );
  const metadata = { ...Object.fromEntries(filled), ...(keywords.length > 0 ? { keywords } : {}) };
  return Object.keys(metadata).length > 0 ? metadata : null;
}

export function submissionOf(
  draft: Draft,
  inspection: Pick<Inspection, "data_type">,
  source: { container_name: string; file_name: string },
  others: readonly { file_name: string }[] = [],
): PlatformSubmission {
  const metadata = metadataOf(draft);
  return {
    platform_id: draft.platformId,
    platform_refs: Object.fromEntries(Object.entries(draft.refs).map(([name, value]) => [name, value.trim()])),
    data_type: inspection.data_type ?? "vector",
    container_name: source.container_name,
    file_name: others.length > 0 ? [source, ...others].map((entry) => entry.file_name) : source.file_name,
    processing_options: optionsOf(draft),
    overwrite: draft.overwrite,
    idempotency_key: draft.idempotencyKey,
    ...(metadata ? { metadata } : {}),
    ...(workflowOf(draft) ? { workflow_id: workflowOf(draft) } : {}),
    ...(draft.clearance ? { clearance_level: draft.clearance } : {}),
  };
}

const COLLECTION = "process_raster_collection";

/** The workflow of the submission; null if the platform chooses. */
export function workflowOf(draft: Pick<Draft, "members" | "workflowId">): string | null {
  return draft.members.length > 0 ? COLLECTION : draft.workflowId;
}

/** Why the file cannot be submitted yet, or null. The first thing to do comes first. */
export function obstacle(
  draft: Draft,
  required: readonly string[],
  problems: readonly InspectionProblem[] | undefined,
  exists: boolean,
): string | null {
  if (problems === undefined) return "The file is being looked into.";
  const errors = problems.filter((problem) => problem.severity === "error");
  if (errors.length > 0) {
    const fields = errors.map((problem) => problem.code.replaceAll("_", " "));
    return `Solve ${errors.length === 1 ? "1 problem" : `${errors.length} problems`} first: ${fields.join(", ")}.`;
  }
  const missing = required.filter((name) => !draft.refs[name]?.trim());
  if (missing.length > 0) return `Fill in ${missing.join(", ")}.`;
  if (timesOf(draft.taken) === null) return "Give the date as 2026-06-30, or two with / between them.";
  if (exists && !draft.overwrite) return "These identifiers have an asset. Say that this is its next revision.";
  return null;
}

/** Identifiers that the name of a file suggests, for fields that are empty: `kecamatan_2026.zip` is of 2026. */
export function suggestedRefs(fileName: string, required: readonly string[]): Record<string, string> {
  const stem = fileName
    .replace(/^.*\//, "")
    .replace(/\.[^.]+$/, "")
    .toLowerCase();
  const year = /(?:^|[^0-9])((?:19|20)\d{2})(?:[^0-9]|$)/.exec(stem)?.[1];
  const name = stem.replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  const suggested: Record<string, string> = {};
  for (const field of required) {
    if (field === "resource_id") suggested[field] = year ? name.replace(new RegExp(`_?${year}`), "") || name : name;
    if (field === "version_id") suggested[field] = year ?? "v1";
  }
  return suggested;
}
