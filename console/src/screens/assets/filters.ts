/** The filters of the list, in the address and in the question to the gateway. */

import type { paths } from "@/api/schema";

type Query = NonNullable<paths["/api/assets"]["get"]["parameters"]["query"]>;

export const CHOICES = {
  data_type: ["raster", "vector"],
  processing_status: ["pending", "processing", "completed", "failed"],
  approval_state: ["pending_review", "approved", "rejected", "revoked"],
  clearance_state: ["uncleared", "ouo", "public"],
} as const;

export type ChoiceName = keyof typeof CHOICES;

export const LABELS: Record<ChoiceName, string> = {
  data_type: "Kind",
  processing_status: "Processing",
  approval_state: "Approval",
  clearance_state: "Clearance",
};

/** The question that an address asks. Values that the gateway would refuse are left out. */
export function queryOf(values: URLSearchParams): Query {
  const query: Record<string, string | boolean> = {};
  for (const [name, allowed] of Object.entries(CHOICES)) {
    const value = values.get(name);
    if (value !== null && (allowed as readonly string[]).includes(value)) query[name] = value;
  }
  const text = values.get("text")?.trim();
  if (text) query.text = text;
  const platform = values.get("platform_id")?.trim();
  if (platform) query.platform_id = platform;
  if (values.get("deleted") === "true") query.deleted = true;
  return query as Query;
}

export function isFiltered(values: URLSearchParams): boolean {
  return Object.keys(queryOf(values)).length > 0;
}
