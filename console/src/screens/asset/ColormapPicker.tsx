import { useState } from "react";
import type { RasterStyle } from "@/api/schema";
import { Icon } from "@/components/Icon";
import { FAVOURITES, gradient, isReversed, reversed, useColormap, useColormapNames } from "@/map/colormaps";
import { type Computed, withColormap, writtenOut } from "@/map/editing";
import type { Band } from "@/map/outputs";
import { Dialog } from "@/shell/Dialog";

interface ColormapPickerProps {
  bands: readonly Band[];
  style: RasterStyle | null;
  computed: Computed;
  onChange: (style: RasterStyle | null) => void;
}

export function ColormapPicker({ bands, style, computed, onChange }: ColormapPickerProps) {
  const names = useColormapNames();
  const [all, setAll] = useState(false);
  const chosen = style?.colormap_name ?? null;
  const plain = chosen && isReversed(chosen) ? reversed(chosen) : chosen;
  const choose = (name: string) =>
    onChange(withColormap(style, chosen && isReversed(chosen) ? reversed(name) : name, bands));
  const shown = [...new Set<string>([...(plain ? [plain] : []), ...FAVOURITES])].slice(0, FAVOURITES.length);
  const own = writtenOut(null, computed, bands)?.ramp?.map((stop) => stop.color);
  return (
    <section>
      <div className="line">
        <h2 className="grow">Colour map</h2>
      </div>
      <div className="colormaps" role="radiogroup" aria-label="Colour map">
        {own && (
          <Entry
            name="by the data"
            colours={own}
            checked={!chosen && Boolean(style?.ramp)}
            onChoose={() => onChange(null)}
          />
        )}
        {shown.map((name) => (
          <Named key={name} name={name} checked={name === plain} onChoose={() => choose(name)} />
        ))}
      </div>
      <div className="line small">
        <label className="check grow">
          <input
            type="checkbox"
            checked={Boolean(chosen && isReversed(chosen))}
            disabled={!chosen}
            onChange={() => chosen && onChange(withColormap(style, reversed(chosen), bands))}
          />
          <span>Reverse</span>
        </label>
        <button type="button" className="link accent" onClick={() => setAll(true)}>
          All {names.length || ""}
        </button>
      </div>
      {all && (
        <Dialog title="Colour maps" onClose={() => setAll(false)}>
          <div className="colormaps many" role="radiogroup" aria-label="All colour maps">
            {names.map((name) => (
              // biome-ignore lint/a11y/useSemanticElements: a picture of the colours is part of the choice
              <button
                key={name}
                type="button"
                role="radio"
                aria-checked={name === plain}
                onClick={() => {
                  choose(name);
                  setAll(false);
                }}
              >
                <span className="cut">{name}</span>
                <img
                  src={`/raster/colorMaps/${name}?f=png&width=128&height=12`}
                  alt=""
                  loading="lazy"
                  width={128}
                  height={12}
                />
                <Icon name="done" />
              </button>
            ))}
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Named({ name, checked, onChoose }: { name: string; checked: boolean; onChoose: () => void }) {
  return <Entry name={name} colours={useColormap(name)} checked={checked} onChoose={onChoose} />;
}

interface EntryProps {
  name: string;
  colours: readonly string[];
  checked: boolean;
  onChoose: () => void;
}

function Entry({ name, colours, checked, onChoose }: EntryProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a picture of the colours is part of the choice
    <button type="button" role="radio" aria-checked={checked} onClick={onChoose}>
      <span className="cut">{name}</span>
      <b style={{ background: gradient(colours) }} />
      <Icon name="done" />
    </button>
  );
}
