/** The legend of a style: a bar of colours with values, classes with words, or the signs of a vector. */

import type { LegendEntry, RasterStyle, VectorStyle } from "@/api/schema";
import { gradient, useColormap } from "./colormaps";
import type { Band } from "./outputs";
import { valueText } from "./stretch";
import { classText, rampColours, wholeVector } from "./style";
import "./map.css";

const MOST_CLASSES = 12;

export function RasterLegend(properties: {
  style: RasterStyle | null;
  bands: readonly Band[];
  computed: readonly LegendEntry[];
}) {
  const { style, bands } = properties;
  const named = useColormap(style?.colormap_name);
  if (style?.classes) {
    return (
      <Classes
        title={bandTitle(style, bands)}
        entries={style.classes.map((entry) => [classText(entry), entry.color])}
      />
    );
  }
  if (style?.ramp) {
    const [low, high] = [style.ramp[0]?.value ?? 0, style.ramp.at(-1)?.value ?? 1];
    return <Bar title={bandTitle(style, bands)} colours={rampColours(style.ramp)} texts={evenly(low, high)} />;
  }
  if (!style && properties.computed.length > 0) {
    const { computed } = properties;
    const texts = computed.map((entry) => valueText(Number(entry.text)));
    return <Bar title={bandTitle(style, bands)} colours={computed.map((entry) => entry.color)} texts={texts} />;
  }
  if (!style || (style.bidx?.length ?? 0) > 1) return <Composite style={style} bands={bands} />;
  const [low, high] = style.rescale?.[0] ?? [bands[0]?.minimum ?? 0, bands[0]?.maximum ?? 255];
  return (
    <Bar
      title={bandTitle(style, bands)}
      colours={named.length > 0 ? named : ["#000000", "#ffffff"]}
      texts={evenly(low, high)}
    />
  );
}

function evenly(low: number, high: number): string[] {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => valueText(low + share * (high - low), high - low));
}

function bandTitle(style: RasterStyle | null, bands: readonly Band[]) {
  if (style?.expression) return <code>{style.expression}</code>;
  const band = bands[(style?.bidx?.[0] ?? 1) - 1];
  return (
    <>
      <span className="strong">{band?.name ?? "band 1"}</span> {band?.unit && <span className="dim">{band.unit}</span>}
    </>
  );
}

function Bar({
  title,
  colours,
  texts,
}: {
  title: React.ReactNode;
  colours: readonly string[];
  texts: readonly string[];
}) {
  return (
    <div className="legend-bar">
      {title}
      <b style={{ background: gradient(colours) }} />
      <div>
        {texts.map((text, place) => (
          <span key={place}>{text}</span>
        ))}
      </div>
    </div>
  );
}

const CHANNELS = ["Red", "Green", "Blue"] as const;

function Composite({ style, bands }: { style: RasterStyle | null; bands: readonly Band[] }) {
  const chosen = style?.bidx ?? (bands.length >= 3 ? [1, 2, 3] : [1]);
  if (chosen.length < 3) return <span className="dim">{bands[0]?.name ?? "band 1"}, drawn by the data</span>;
  return (
    <div className="legend-list">
      {CHANNELS.map((channel, place) => (
        <span key={channel} className="line">
          <i className={`channel ${channel.toLowerCase()}`} />
          {bands[(chosen[place] ?? 1) - 1]?.name ?? `band ${chosen[place]}`}
        </span>
      ))}
    </div>
  );
}

function Classes({ title, entries }: { title: React.ReactNode; entries: readonly (readonly [string, string])[] }) {
  return (
    <div className="legend-list">
      <span className="cut">{title}</span>
      {entries.slice(0, MOST_CLASSES).map(([text, color]) => (
        <span key={text} className="line">
          <i style={{ background: color }} />
          <span className="cut">{text}</span>
        </span>
      ))}
      {entries.length > MOST_CLASSES && <span className="dim">and {entries.length - MOST_CLASSES} more</span>}
    </div>
  );
}

export function VectorLegend({ style, title }: { style: VectorStyle | null; title: string }) {
  const whole = wholeVector(style);
  if (whole.attribute && whole.classes.length > 0)
    return (
      <Classes
        title={<span className="strong">{whole.attribute}</span>}
        entries={whole.classes.map((entry) => [classText(entry), entry.color])}
      />
    );
  return (
    <span className="line legend-sign">
      <svg viewBox="0 0 22 14" aria-hidden="true">
        <rect
          x="1.5"
          y="1.5"
          width="19"
          height="11"
          fill={whole.fill_color}
          fillOpacity={whole.fill_opacity}
          stroke={whole.line_color}
          strokeWidth={Math.min(3, whole.line_width)}
        />
      </svg>
      {title}
    </span>
  );
}
