/** The style of the asset: what is drawn, what can be changed, and what everybody sees once it is saved. */

import type { UseQueryResult } from "@tanstack/react-query";
import type { AssetDetails, RasterStyle, StylesView, VectorStyle } from "@/api/schema";
import { percent } from "@/format/number";
import { withOpacity } from "@/map/editing";
import type { Band } from "@/map/outputs";
import { type Style, wholeVector } from "@/map/style";
import type { Draft } from "./draft";
import { RasterControls } from "./RasterControls";
import { SaveStyle } from "./SaveStyle";
import { VectorControls } from "./VectorControls";

interface StylePanelProps {
  asset: AssetDetails;
  draft: Draft;
  bands: readonly Band[];
  names: readonly string[];
  styles: UseQueryResult<StylesView>;
}

export function StylePanel({ asset, draft, bands, styles, names }: StylePanelProps) {
  const opacity = draft.style?.opacity ?? 1;
  const fade = (share: number) =>
    draft.change(
      asset.data_type === "vector"
        ? { ...wholeVector(draft.style as VectorStyle | null), opacity: share }
        : withOpacity(draft.style as RasterStyle | null, share, draft.computed, bands),
    );
  return (
    <aside className="style-panel" aria-label="Style">
      <section>
        <div className="line">
          <h2 className="grow">Style</h2>
          <span className="small dim" role="status">
            {draft.changed ? "changed, not saved" : ""}
          </span>
        </div>
        <Choice styles={styles.data} draft={draft} />
      </section>
      {asset.data_type === "vector" ? (
        <VectorControls
          asset={asset}
          names={names}
          style={draft.style as VectorStyle | null}
          onChange={draft.change as (style: VectorStyle) => void}
        />
      ) : (
        <RasterControls
          bands={bands}
          computed={draft.computed}
          style={draft.style as RasterStyle | null}
          onChange={(style) => draft.change(style && { ...style, opacity })}
        />
      )}
      <section>
        <label className="label" htmlFor="opacity">
          <span>Opacity</span>
          <span>{percent(opacity)}</span>
        </label>
        <input
          id="opacity"
          type="range"
          min={0}
          max={1}
          step={0.05}
          value={opacity}
          onChange={(event) => fade(Number(event.target.value))}
        />
      </section>
      <SaveStyle asset={asset} draft={draft} styles={styles.data} />
    </aside>
  );
}

/** The styles that the asset has. */
function Choice({ styles, draft }: { styles: StylesView | undefined; draft: Draft }) {
  if (!styles || styles.styles.length < 2) return null;
  const drawn = styles.styles.find((entry) => JSON.stringify(entry.style ?? null) === JSON.stringify(draft.style));
  const choose = (name: string) => {
    const entry = styles.styles.find((candidate) => candidate.name === name);
    if (entry) draft.change((entry.style ?? null) as Style | null);
  };
  return (
    <select
      className="input"
      aria-label="Style of the asset"
      value={drawn?.name ?? ""}
      onChange={(event) => choose(event.target.value)}
    >
      {!drawn && <option value="">by hand</option>}
      {styles.styles.map((entry) => (
        <option key={entry.name} value={entry.name}>
          {entry.title ?? entry.name}
          {entry.default ? " (in use)" : ""}
        </option>
      ))}
    </select>
  );
}
