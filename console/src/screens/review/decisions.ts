/** What reviewers decided today, in the viewer's zone. */

import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import type { ReviewDecisionView } from "@/api/schema";
import { useMay } from "@/shell/session";

export const DECISIONS_KEY = ["decisions"] as const;
const MOST = 200;
const REFRESH_MILLISECONDS = 30_000;

/** Midnight in the viewer's zone. */
export function startOfDay(now: Date = new Date()): string {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate()).toISOString();
}

export function useDecisions() {
  const may = useMay();
  const since = startOfDay();
  return useQuery({
    queryKey: [...DECISIONS_KEY, since],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/assets/decisions", { params: { query: { since, limit: MOST } }, signal })),
    enabled: may("GET /api/assets/decisions"),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}

const WORDS: Record<string, string> = {
  approved: "approved",
  clearance_changed: "clearance changed",
  rejected: "rejected",
  revoked: "revoked",
  unpublished: "unpublished",
  rolled_back: "gone back",
};

export function decisionWord(decision: string): string {
  return WORDS[decision] ?? decision.replaceAll("_", " ");
}

/** `11 approved, 2 rejected`, or null if nothing was decided. `more` says that there are others. */
export function summary(decisions: readonly Pick<ReviewDecisionView, "decision">[], more = false): string | null {
  const counts = new Map<string, number>();
  for (const { decision } of decisions) counts.set(decision, (counts.get(decision) ?? 0) + 1);
  const order = Object.keys(WORDS);
  const parts = [...counts]
    .sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
    .map(([decision, count]) => `${count} ${decisionWord(decision)}`);
  if (parts.length === 0) return null;
  return more ? `${parts.join(", ")} and more` : parts.join(", ");
}
