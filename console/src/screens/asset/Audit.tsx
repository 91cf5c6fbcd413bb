import type { AssetDetails, AuditEntry } from "@/api/schema";
import { Empty } from "@/components/Empty";
import { stateWord } from "@/components/states";
import { Time } from "@/components/Time";
import { personOf } from "@/shell/session";

const WORDS: Partial<Record<string, string>> = {
  submitted: "Submitted",
  overwritten: "Overwritten",
  reactivated: "Brought back",
  retried: "Retried",
  approved: "Approved",
  clearance_changed: "Clearance changed",
  rejected: "Rejected",
  revoked: "Revoked",
  unpublished: "Unpublished",
  rolled_back: "Gone back",
  export_retried: "Export tried again",
  styled: "Style changed",
};

export function Audit({ asset }: { asset: AssetDetails }) {
  if (asset.audit.length === 0) return <Empty title="No decisions yet" />;
  return (
    <table className="audit">
      <thead className="hidden">
        <tr>
          <th>When</th>
          <th>What</th>
          <th>Revision</th>
          <th>Who</th>
          <th>Details</th>
        </tr>
      </thead>
      <tbody>
        {asset.audit.map((entry) => (
          <tr key={entry.audit_id}>
            <td className="dim">
              <Time at={entry.at} />
            </td>
            <td className="strong">{WORDS[entry.decision] ?? stateWord(entry.decision)}</td>
            <td>r{entry.revision}</td>
            <td>{entry.on_behalf_of ? `${entry.on_behalf_of} by ${personOf(entry.actor)}` : personOf(entry.actor)}</td>
            <td className="soft wraps">{details(entry)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const SHOWN = ["revision", "processing_status", "approval_state", "clearance_state"];

/** The reason, and the states that changed. */
function details(entry: AuditEntry): string {
  const { before, after } = entry as { before?: Record<string, unknown>; after?: Record<string, unknown> };
  const changes = SHOWN.filter((name) => before?.[name] !== undefined && before[name] !== after?.[name]).map((name) =>
    name === "revision"
      ? `r${before?.[name]} → r${after?.[name]}`
      : `${stateWord(String(before?.[name]))} → ${stateWord(String(after?.[name]))}`,
  );
  return [entry.reason, changes.join(", ")].filter(Boolean).join(" · ");
}
