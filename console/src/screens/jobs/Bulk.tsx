/** Actions for the selected jobs, or for all that pass the filters. */

import { useState } from "react";
import type { JobSummary } from "@/api/schema";
import { Button } from "@/components/Button";
import type { IconName } from "@/components/Icon";
import { count, plural } from "@/format/number";
import { useKeys } from "@/shell/keys";
import { useMay } from "@/shell/session";
import { BulkDialog } from "./BulkDialog";
import { ACTIONS, type BulkAction, fitting, totalOf } from "./bulk";
import type { JobFilters } from "./filters";

const ICONS: Record<BulkAction["name"], IconName> = { Retry: "retry", Resume: "play", Pause: "pause", Cancel: "stop" };

interface BulkProps {
  selected: readonly JobSummary[];
  filters: JobFilters;
  counts: Record<string, number>;
  atLeast: readonly string[];
  onDone: () => void;
}

export function Bulk({ selected, filters, counts, atLeast, onDone }: BulkProps) {
  const may = useMay();
  const [everything, setEverything] = useState(false);
  const [chosen, setChosen] = useState<BulkAction | null>(null);
  const total = totalOf(filters, counts, atLeast);
  const of = (action: BulkAction) =>
    everything ? fitting(filters, action, counts) : selected.filter(action.fits).length;
  const open = (name: BulkAction["name"]) => {
    const action = ACTIONS.find((entry) => entry.name === name);
    if (action && may(action.rule) && of(action) > 0) setChosen(action);
  };
  useKeys([
    { keys: "t", label: "retry the selected", run: () => open("Retry") },
    { keys: "Escape", label: "clear the selection", run: onDone },
  ]);
  const all = `${count(total.jobs)}${total.more ? "+" : ""}`;
  return (
    <section className="bulk" aria-label="Actions for the selection">
      <span className="strong" role="status">
        {everything ? `All ${all} jobs that pass the filters` : `${plural(selected.length, "job")} selected`}
      </span>
      {!everything && (total.jobs > selected.length || total.more) && (
        <button type="button" className="link small" onClick={() => setEverything(true)}>
          Select all {all} that pass the filters
        </button>
      )}
      <span className="grow" />
      {ACTIONS.filter((action) => may(action.rule)).map((action) => {
        const jobs = of(action);
        return (
          <Button
            key={action.name}
            kind={action.name === "Cancel" ? "danger" : undefined}
            icon={ICONS[action.name]}
            hint={action.name === "Retry" ? "T" : undefined}
            disabled={jobs === 0}
            title={jobs === 0 ? `None of them can be: ${action.name.toLowerCase()}` : undefined}
            onClick={() => setChosen(action)}
          >
            {action.name} {!everything && jobs > 0 && jobs < selected.length ? jobs : ""}
          </Button>
        );
      })}
      <Button kind="quiet" hint="Esc" onClick={onDone}>
        Clear
      </Button>
      {chosen && (
        <BulkDialog
          action={chosen}
          jobs={everything ? null : selected.filter(chosen.fits).map((job) => job.job_id)}
          expected={of(chosen)}
          filters={filters}
          onClose={(finished) => {
            setChosen(null);
            if (finished) onDone();
          }}
        />
      )}
    </section>
  );
}
