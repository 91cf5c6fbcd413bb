/** Who decided what today. */

import { Link } from "wouter";
import type { ReviewDecisionView } from "@/api/schema";
import { Glyph, stateWord } from "@/components/states";
import { Time } from "@/components/Time";
import { personOf } from "@/shell/session";
import { decisionWord } from "./decisions";

export function DecidedList({ decisions }: { decisions: readonly ReviewDecisionView[] }) {
  return (
    <ol className="decided" aria-label="Decided today">
      {decisions.map((entry) => (
        <li key={entry.audit_id}>
          <Link href={`/assets/${entry.asset_id}?tab=audit`}>
            <span className="line">
              <span className="strong cut grow" title={entry.title ?? undefined}>
                {entry.stac_item_id}
              </span>
              <span className="dim small nowrap">
                <Time at={entry.at} />
              </span>
            </span>
            <span className="line small soft">
              <Glyph state={glyphOf(entry)} />
              <span className="cut">{wordsOf(entry)}</span>
            </span>
            {entry.reason && <span className="small dim cut">{entry.reason}</span>}
          </Link>
        </li>
      ))}
    </ol>
  );
}

function glyphOf(entry: ReviewDecisionView): string {
  if (entry.decision === "approved" || entry.decision === "clearance_changed")
    return entry.clearance_state ?? "approved";
  return entry.decision === "rolled_back" ? "pending_review" : "rejected";
}

/** `r2 approved as public by Ayu` */
export function wordsOf(entry: ReviewDecisionView): string {
  const cleared = entry.decision === "approved" || entry.decision === "clearance_changed";
  const clearance = cleared && entry.clearance_state ? ` as ${stateWord(entry.clearance_state)}` : "";
  const person = entry.on_behalf_of ?? personOf(entry.actor);
  return `r${entry.revision} ${decisionWord(entry.decision)}${clearance} by ${person}`;
}
