import { Glyph, stateWord } from "@/components/states";
import { count } from "@/format/number";
import { useAddresses } from "@/shell/address";
import { type JobFilters, STATES } from "./filters";

/** The states with their counts; a click shows one alone, and again all. */
export function States({
  counts,
  atLeast,
  filters,
}: {
  counts: Record<string, number>;
  atLeast: string[];
  filters: JobFilters;
}) {
  const [, change] = useAddresses();
  const all = Object.values(counts).reduce((sum, value) => sum + value, 0);
  const chosen = filters.status ?? [];
  return (
    <fieldset className="facets" aria-label="States">
      <button type="button" aria-pressed={chosen.length === 0} onClick={() => change({ status: null })}>
        All{" "}
        <span className="dim">
          {count(all)}
          {atLeast.length > 0 ? "+" : ""}
        </span>
      </button>
      {STATES.map((state) => (
        <button
          key={state}
          type="button"
          aria-pressed={chosen.includes(state)}
          onClick={() => change({ status: chosen.length === 1 && chosen[0] === state ? null : state })}
        >
          <Glyph state={state} />
          {stateWord(state)}{" "}
          <span className="dim">
            {count(counts[state] ?? 0)}
            {atLeast.includes(state) ? "+" : ""}
          </span>
        </button>
      ))}
      <button
        type="button"
        aria-pressed={filters.paused === true}
        onClick={() => change({ paused: filters.paused ? null : "true", status: null })}
      >
        <Glyph state="paused" />
        paused
      </button>
    </fieldset>
  );
}
