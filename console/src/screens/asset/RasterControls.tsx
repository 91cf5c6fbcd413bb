import { type FormEvent, useEffect, useState } from "react";
import type { RasterStyle } from "@/api/schema";
import { Button, Segments } from "@/components/Button";
import { Field } from "@/components/Field";
import { useColormap } from "@/map/colormaps";
import { type Computed, inMode, type Mode, modeOf, stretchAt, withBand, withChannel, writtenOut } from "@/map/editing";
import type { Band } from "@/map/outputs";
import { valueText } from "@/map/stretch";
import { rampColours } from "@/map/style";
import { ColormapPicker } from "./ColormapPicker";
import { StretchControl } from "./StretchControl";

interface RasterControlsProps {
  bands: readonly Band[];
  computed: Computed;
  style: RasterStyle | null;
  onChange: (style: RasterStyle | null) => void;
}

const MODES = [
  { value: "one", label: "One band" },
  { value: "three", label: "Three bands" },
  { value: "expression", label: "Expression" },
] as const;

export function RasterControls({ bands, computed, style, onChange }: RasterControlsProps) {
  const drawn = writtenOut(style, computed, bands);
  const mode = modeOf(style, computed);
  const modes = bands.length < 2 ? MODES.filter((entry) => entry.value !== "three") : MODES;
  return (
    <>
      <section>
        <Segments<Mode>
          label="What is drawn"
          options={modes}
          value={mode}
          onChange={(next) => next !== mode && onChange(inMode(next, bands))}
        />
      </section>
      {mode === "one" && <OneBand bands={bands} style={drawn} onChange={onChange} />}
      {mode === "three" && <ThreeBands bands={bands} style={drawn ?? inMode("three", bands)} onChange={onChange} />}
      {mode === "expression" && drawn && <Expression style={drawn} onChange={onChange} />}
      {drawn && mode !== "three" && !drawn.classes && <Coloured bands={bands} style={drawn} onChange={onChange} />}
      {mode !== "three" && <ColormapPicker bands={bands} style={drawn} computed={computed} onChange={onChange} />}
    </>
  );
}

type ChangeProps = { bands: readonly Band[]; style: RasterStyle; onChange: (style: RasterStyle) => void };

function OneBand(properties: {
  bands: readonly Band[];
  style: RasterStyle | null;
  onChange: (style: RasterStyle) => void;
}) {
  const { bands, style, onChange } = properties;
  const chosen = style?.bidx?.[0] ?? 1;
  const units = bands.some((band) => band.unit);
  return (
    <section>
      <table className="bands">
        <thead>
          <tr>
            <th>Band</th>
            {units && <th>Unit</th>}
            <th className="num">Min</th>
            <th className="num">Mean</th>
            <th className="num">Max</th>
          </tr>
        </thead>
        <tbody>
          {bands.map((band) => (
            <tr key={band.number}>
              <td>
                <label className="line">
                  <input
                    type="radio"
                    name="band"
                    checked={band.number === chosen}
                    onChange={() => onChange(withBand(style, band.number, bands))}
                  />
                  <span className={band.number === chosen ? "strong cut" : "cut"}>{band.name}</span>
                </label>
              </td>
              {units && <td className="dim">{band.unit}</td>}
              <td className="num">{valueText(band.minimum)}</td>
              <td className="num">{valueText(band.mean)}</td>
              <td className="num">{valueText(band.maximum)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const CHANNELS = ["Red", "Green", "Blue"] as const;

/** From black to a colour. */
function shades(colour: string): string[] {
  return Array.from({ length: 17 }, (_, step) => `color-mix(in srgb, ${colour} ${step * 6.25}%, black)`);
}

function ThreeBands({ bands, style, onChange }: ChangeProps) {
  const [place, setPlace] = useState(0);
  const band = bands[(style.bidx?.[place] ?? 1) - 1];
  return (
    <>
      <section className="channels">
        {CHANNELS.map((channel, at) => (
          <Field key={channel} label={channel}>
            {(field) => (
              <select
                {...field}
                className="input"
                value={style.bidx?.[at] ?? at + 1}
                onFocus={() => setPlace(at)}
                onChange={(event) => onChange(withChannel(style, at, Number(event.target.value), bands))}
              >
                {bands.map((entry) => (
                  <option key={entry.number} value={entry.number}>
                    {entry.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        ))}
      </section>
      <section>
        <div className="line">
          <h2 className="grow">Stretch</h2>
          <Segments
            label="Channel"
            options={CHANNELS.map((channel, at) => ({ value: String(at), label: channel }))}
            value={String(place)}
            onChange={(value) => setPlace(Number(value))}
          />
        </div>
        <StretchControl
          key={place}
          band={band}
          bands={bands}
          style={style}
          place={place}
          colours={shades(["#ff5a4d", "#3ac24f", "#4d86ff"][place] ?? "#ffffff")}
          onChange={onChange}
        />
      </section>
    </>
  );
}

function Coloured({ bands, style, onChange }: ChangeProps) {
  const named = useColormap(style.colormap_name);
  const colours = (style.ramp ? rampColours(style.ramp) : null) ?? (named.length > 0 ? named : ["#000000", "#ffffff"]);
  const band = style.expression ? undefined : bands[(style.bidx?.[0] ?? 1) - 1];
  const [low, high] = stretchAt(style, 0, bands);
  return (
    <section>
      <div className="line">
        <h2 className="grow">Stretch</h2>
        <span className="small dim">
          {band?.histogram ? "square-root counts" : `${valueText(low, high - low)} to ${valueText(high, high - low)}`}
        </span>
      </div>
      <StretchControl band={band} bands={bands} style={style} place={0} colours={colours} onChange={onChange} />
    </section>
  );
}

function Expression({ style, onChange }: Omit<ChangeProps, "bands">) {
  const [text, setText] = useState(style.expression ?? "");
  useEffect(() => setText(style.expression ?? ""), [style.expression]);
  const apply = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onChange({ ...style, expression: text.trim() });
  };
  return (
    <section>
      <form onSubmit={apply} className="stack">
        <Field label="Expression of bands" help="b1 is the first band: (b4-b3)/(b4+b3)">
          {(field) => (
            <input
              {...field}
              className="input mono"
              spellCheck={false}
              maxLength={500}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" disabled={!text.trim() || text.trim() === style.expression}>
          Draw it
        </Button>
      </form>
    </section>
  );
}
