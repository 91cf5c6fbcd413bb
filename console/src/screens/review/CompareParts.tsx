/** What lies on the compared maps: names of the sides, the divider, and the legend. */

import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from "react";
import { Icon } from "@/components/Icon";
import { Glyph } from "@/components/states";
import { count } from "@/format/number";
import type { SeenDifferences } from "./seen";

export function Side({ side, state, text, words }: { side: "l" | "r"; state: string; text: string; words: string }) {
  return (
    <div className={`float side ${side}`}>
      <Glyph state={state} />
      <span>
        <span className="strong">{text}</span> {words}
      </span>
    </div>
  );
}

export function Divider({
  share,
  onMove,
  names,
}: {
  share: number;
  onMove: (share: number) => void;
  names: [number, number];
}) {
  const dragged = useRef(false);
  const at = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.parentElement?.getBoundingClientRect();
    if (box) onMove(Math.min(97, Math.max(3, ((event.clientX - box.left) / box.width) * 100)));
  };
  const pressed = (event: KeyboardEvent) => {
    const target = { Home: 3, End: 97 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    onMove(target);
  };
  return (
    <div
      className="divider"
      role="slider"
      tabIndex={0}
      aria-label={`Divider between r${names[0]} and r${names[1]}`}
      aria-valuenow={Math.round(share)}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuetext={`${Math.round(share)} % of the map shows r${names[0]}`}
      onKeyDown={pressed}
      onPointerDown={(event) => {
        dragged.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => dragged.current && at(event)}
      onPointerUp={() => {
        dragged.current = false;
      }}
    >
      <b>
        <Icon name="divider" />
      </b>
    </div>
  );
}

export function ReviewLegend(properties: {
  differences: { seen: SeenDifferences; marked: boolean; onMark: (on: boolean) => void } | null;
  children: ReactNode;
}) {
  const { differences } = properties;
  return (
    <div className="stack">
      {differences && (
        <div className="stack tight">
          <label className="line">
            <input
              type="checkbox"
              checked={differences.marked}
              onChange={(event) => differences.onMark(event.target.checked)}
            />
            <h3>Differences</h3>
            <span className="grow" />
            <kbd className="desk">D</kbd>
          </label>
          {differences.marked && <Tally seen={differences.seen} />}
        </div>
      )}
      {properties.children}
    </div>
  );
}

function Tally({ seen }: { seen: SeenDifferences }) {
  const { differences } = seen;
  if (seen.tooMany) return <span className="small soft">Zoom in: too many features in this view.</span>;
  if (seen.error) return <span className="small bad-ink">The features cannot be compared.</span>;
  if (!differences) return <span className="small dim">Comparing …</span>;
  const rows = [
    ["added", differences.added.length],
    ["changed", differences.changed.length],
    ["removed", differences.removed.length],
  ] as const;
  return (
    <div className="tally" role="status" aria-label="Differences in this view">
      {rows.map(([name, number]) => (
        <span key={name} className="line">
          <i className={name} />
          <span className="grow">{name}</span>
          <span className="num">{count(number)}</span>
        </span>
      ))}
      <span className="micro dim">in this view</span>
    </div>
  );
}
