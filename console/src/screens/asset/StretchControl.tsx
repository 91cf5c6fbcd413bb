/** The range of values that gets all colours: histogram with two grips, two fields, and presets. */

import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { RasterStyle } from "@/api/schema";
import { Field } from "@/components/Field";
import { stretchAt, withStretch } from "@/map/editing";
import type { Band } from "@/map/outputs";
import { bars, neat, PRESETS, type Preset, presetOf, presetStretch, trimmed, valueText } from "@/map/stretch";
import type { Stretch } from "@/map/style";

interface StretchControlProps {
  /** The band whose histogram is shown. An expression has none. */
  band: Band | undefined;
  bands: readonly Band[];
  style: RasterStyle;
  place: number;
  colours: readonly string[];
  onChange: (style: RasterStyle) => void;
}

const WIDTH = 304;
const HEIGHT = 78;
const MOST_BARS = 100;
const STEPS = 50;

export function StretchControl({ band, bands, style, place, colours, onChange }: StretchControlProps) {
  const stretch = stretchAt(style, place, bands);
  const set = (next: Stretch) => onChange(withStretch(style, place, next, bands));
  const preset = band && presetOf(band, stretch);
  return (
    <>
      {band?.histogram && <HistogramBars band={band} stretch={stretch} colours={colours} onChange={set} />}
      <div className="ends">
        <NumberField label="From" value={stretch[0]} onChange={(low) => set([low, stretch[1]])} />
        <NumberField label="To" value={stretch[1]} onChange={(high) => set([stretch[0], high])} />
        {band && (
          <select
            className="input"
            aria-label="Preset of the stretch"
            value={preset ?? ""}
            onChange={(event) => {
              const next = presetStretch(band, event.target.value as Preset);
              if (next) set(next);
            }}
          >
            {!preset && <option value="">by hand</option>}
            {Object.entries(PRESETS).map(([name, text]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
        )}
      </div>
    </>
  );
}

function NumberField({ label, value, onChange }: { label: string; value: number; onChange: (value: number) => void }) {
  const [text, setText] = useState(String(value));
  useEffect(() => setText(String(Number(value.toPrecision(8)))), [value]);
  const apply = () => {
    const next = Number(text.replaceAll(",", ""));
    if (text.trim() !== "" && Number.isFinite(next) && next !== value) onChange(next);
    else setText(String(Number(value.toPrecision(8))));
  };
  return (
    <Field label={label}>
      {(field) => (
        <input
          {...field}
          className="input num"
          inputMode="decimal"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onBlur={apply}
          onKeyDown={(event) => event.key === "Enter" && apply()}
        />
      )}
    </Field>
  );
}

interface HistogramBarsProps {
  band: Band;
  stretch: Stretch;
  colours: readonly string[];
  onChange: (stretch: Stretch) => void;
}

function HistogramBars({ band, stretch, colours, onChange }: HistogramBarsProps) {
  const svg = useRef<SVGSVGElement>(null);
  const histogram = useMemo(() => (band.histogram ? trimmed(band.histogram) : null), [band.histogram]);
  const drawn = useMemo(() => (histogram ? bars(histogram, MOST_BARS) : []), [histogram]);
  if (!histogram) return null;
  const range = histogram.max - histogram.min;
  const at = (value: number) => Math.max(0, Math.min(WIDTH, ((value - histogram.min) / range) * WIDTH));
  const highest = Math.sqrt(Math.max(...drawn.map((bar) => bar.count), 1));
  const move = (which: 0 | 1, value: number) => {
    const next: Stretch = [...stretch];
    next[which] = neat(Math.max(histogram.min, Math.min(histogram.max, value)), range);
    if (next[0] < next[1]) onChange(next);
  };
  const valueAt = (event: PointerEvent) => {
    const box = svg.current?.getBoundingClientRect();
    return box ? histogram.min + ((event.clientX - box.left) / box.width) * range : histogram.min;
  };
  const colourOf = (value: number) => {
    const share = (value - stretch[0]) / (stretch[1] - stretch[0]);
    if (share < 0 || share > 1) return undefined;
    return colours[Math.round(share * (colours.length - 1))];
  };
  return (
    <svg ref={svg} className="histogram" viewBox={`-6 0 ${WIDTH + 12} ${HEIGHT + 14}`} preserveAspectRatio="none">
      <title>{`Histogram of ${band.name}, ${valueText(histogram.min)} to ${valueText(histogram.max)}`}</title>
      {drawn.map((bar) => {
        const height = (Math.sqrt(bar.count) / highest) * (HEIGHT - 6);
        return (
          <rect
            key={bar.from}
            x={at(bar.from)}
            width={Math.max(0.6, at(bar.to) - at(bar.from) - 0.5)}
            y={HEIGHT - height}
            height={height}
            fill={colourOf((bar.from + bar.to) / 2)}
            className={colourOf((bar.from + bar.to) / 2) ? undefined : "outside"}
          />
        );
      })}
      <path className="axis" d={`M0 ${HEIGHT}.5H${WIDTH}`} />
      {([0, 1] as const).map((which) => (
        <Grip
          key={which}
          label={which === 0 ? "From" : "To"}
          x={at(stretch[which])}
          value={stretch[which]}
          range={[histogram.min, histogram.max]}
          onMove={(event) => move(which, valueAt(event))}
          onStep={(steps) => move(which, stretch[which] + (steps * range) / STEPS)}
        />
      ))}
    </svg>
  );
}

interface GripProps {
  label: string;
  x: number;
  value: number;
  range: Stretch;
  onMove: (event: PointerEvent) => void;
  onStep: (steps: number) => void;
}

const KEYS: Partial<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -5,
  PageUp: 5,
};

function Grip({ label, x, value, range, onMove, onStep }: GripProps) {
  const pressed = (event: KeyboardEvent) => {
    const steps = KEYS[event.key];
    if (!steps) return;
    event.preventDefault();
    event.stopPropagation();
    onStep(steps);
  };
  return (
    <g
      className="grip"
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={range[0]}
      aria-valuemax={range[1]}
      aria-valuetext={valueText(value, range[1] - range[0])}
      onKeyDown={pressed}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && onMove(event)}
    >
      <rect className="catch" x={x - 8} y={0} width={16} height={HEIGHT + 14} />
      <path d={`M${x} 0V${HEIGHT}`} />
      <path className="knob" d={`M${x - 5} ${HEIGHT + 12}v-7l5 -5l5 5v7z`} />
    </g>
  );
}
