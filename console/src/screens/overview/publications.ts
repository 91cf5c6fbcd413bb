import type { ReviewDecisionView } from "@/api/schema";

export type Publication = Pick<
  ReviewDecisionView,
  "asset_id" | "stac_item_id" | "title" | "revision" | "clearance_state" | "at" | "decision"
>;

const PUBLISHES = ["approved", "clearance_changed"];

/** The assets whose last decision lets others see them, the last one first. `decisions` begin with the newest. A rejection
 * is about a revision that nobody else has seen, so it takes nothing away. */
export function publications(decisions: readonly Publication[]): Publication[] {
  const last = new Map<string, Publication>();
  for (const decision of decisions)
    if (decision.decision !== "rejected" && !last.has(decision.asset_id)) last.set(decision.asset_id, decision);
  return [...last.values()].filter(({ decision }) => PUBLISHES.includes(decision));
}
