import { useMutation } from "@tanstack/react-query";
import type { FeatureCollection } from "geojson";
import type { AssetDetails, StyleClass, VectorStyle } from "@/api/schema";
import { readService } from "@/api/services";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { percent } from "@/format/number";
import { classesOf } from "@/map/classes";
import { columnsOf } from "@/map/outputs";
import { classText, type WholeVectorStyle, wholeVector } from "@/map/style";

interface VectorControlsProps {
  asset: AssetDetails;
  names: readonly string[];
  style: VectorStyle | null;
  onChange: (style: VectorStyle) => void;
}

const SAMPLE = 2000;

export function VectorControls({ asset, names, style, onChange }: VectorControlsProps) {
  const whole = wholeVector(style);
  const geometry = String((asset.outputs as { geometry_type?: unknown } | null)?.geometry_type ?? "").toLowerCase();
  const split = names.length > 1;
  const has = (word: string) => split || geometry === "" || geometry === "geometry" || geometry.includes(word);
  const set = (change: Partial<WholeVectorStyle>) => onChange({ ...whole, ...change });
  return (
    <>
      <section className="paints">
        {has("polygon") && (
          <Paint
            name="Fill"
            colour={whole.fill_color}
            onColour={(fill_color) => set({ fill_color })}
            share={whole.fill_opacity}
            onShare={(fill_opacity) => set({ fill_opacity })}
          />
        )}
        {(has("polygon") || has("line")) && (
          <Paint
            name="Line"
            colour={whole.line_color}
            onColour={(line_color) => set({ line_color })}
            size={whole.line_width}
            onSize={(line_width) => set({ line_width })}
          />
        )}
        {has("point") && (
          <Paint
            name="Point"
            colour={whole.circle_color}
            onColour={(circle_color) => set({ circle_color })}
            size={whole.circle_radius}
            onSize={(circle_radius) => set({ circle_radius })}
          />
        )}
      </section>
      <Classified asset={asset} names={names} style={whole} onChange={set} />
    </>
  );
}

interface PaintProps {
  name: string;
  colour: string;
  onColour: (colour: string) => void;
  share?: number;
  onShare?: (share: number) => void;
  size?: number;
  onSize?: (size: number) => void;
}

function Paint(properties: PaintProps) {
  const { name, share, onShare, size, onSize } = properties;
  return (
    <div className="paint">
      <h2>{name}</h2>
      <input
        type="color"
        aria-label={`Colour of ${name.toLowerCase()}`}
        value={properties.colour.slice(0, 7)}
        onChange={(event) => properties.onColour(event.target.value)}
      />
      {share !== undefined && onShare && (
        <>
          <input
            type="range"
            aria-label={`Opacity of ${name.toLowerCase()}`}
            min={0}
            max={1}
            step={0.05}
            value={share}
            onChange={(event) => onShare(Number(event.target.value))}
          />
          <span className="small num">{percent(share)}</span>
        </>
      )}
      {size !== undefined && onSize && (
        <>
          <input
            type="range"
            aria-label={`Size of ${name.toLowerCase()}`}
            min={0}
            max={12}
            step={0.5}
            value={size}
            onChange={(event) => onSize(Number(event.target.value))}
          />
          <span className="small num">{size} px</span>
        </>
      )}
    </div>
  );
}

interface ClassifiedProps {
  asset: AssetDetails;
  names: readonly string[];
  style: WholeVectorStyle;
  onChange: (change: Partial<WholeVectorStyle>) => void;
}

/** Colours by a column: the classes come from a sample of its values. */
function Classified({ asset, names, style, onChange }: ClassifiedProps) {
  const columns = columnsOf(asset.outputs).filter((column) => column.name !== "gid");
  const classify = useMutation({
    mutationFn: async (column: string) => {
      const query = new URLSearchParams({ properties: column, "geom-column": "none", limit: String(SAMPLE) });
      const page = await readService<FeatureCollection>(`/vector/collections/${names[0]}/items?${query}`);
      return { column, classes: classesOf(page.features.map((feature) => feature.properties?.[column])) };
    },
    onSuccess: ({ column, classes }) =>
      onChange(classes.length > 0 ? { attribute: column, classes } : { attribute: null, classes: [] }),
  });
  const recolour = (place: number, color: string) =>
    onChange({ classes: style.classes.map((entry, at) => (at === place ? { ...entry, color } : entry)) });
  return (
    <section>
      <div className="line">
        <h2 className="grow">Colour by</h2>
        {style.attribute && (
          <Button kind="quiet" onClick={() => onChange({ attribute: null, classes: [] })}>
            One colour
          </Button>
        )}
      </div>
      <select
        className="input"
        aria-label="Column that gives the colour"
        value={style.attribute ?? ""}
        onChange={(event) =>
          event.target.value ? classify.mutate(event.target.value) : onChange({ attribute: null, classes: [] })
        }
      >
        <option value="">one colour for all</option>
        {columns.map((column) => (
          <option key={column.name} value={column.name}>
            {column.name}
          </option>
        ))}
      </select>
      {classify.error ? <ErrorLine error={classify.error} /> : null}
      <div className="classes">
        {style.classes.map((entry, place) => (
          <ClassLine key={place} entry={entry} onColour={(color) => recolour(place, color)} />
        ))}
      </div>
      {classify.data && style.attribute && (
        <span className="small dim">From the first {SAMPLE.toLocaleString("en-GB")} features.</span>
      )}
    </section>
  );
}

function ClassLine({ entry, onColour }: { entry: StyleClass; onColour: (color: string) => void }) {
  return (
    <label className="line">
      <input
        type="color"
        aria-label={`Colour of ${classText(entry)}`}
        value={entry.color.slice(0, 7)}
        onChange={(event) => onColour(event.target.value)}
      />
      <span className="cut small">{classText(entry)}</span>
    </label>
  );
}
