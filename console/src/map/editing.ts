/** Changes of a raster's style, as the controls of a panel make them. Each returns a whole style that the gateway
 * accepts. */

import type { LegendEntry, RasterStyle } from "@/api/schema";
import type { Band } from "./outputs";
import { presetStretch } from "./stretch";
import type { Stretch } from "./style";

export type Mode = "one" | "three" | "expression";

const SINGLE = "viridis";
const INDEX = "rdylgn";

export interface Computed {
  /** Bands and stretch of what geomill draws by the data. */
  bidx: number[];
  rescale: Stretch[];
  legend: readonly LegendEntry[];
}

function stretchOfBand(bands: readonly Band[], number: number): Stretch {
  const band = bands[number - 1];
  return (band && presetStretch(band, "percent")) ?? [0, 255];
}

/** What is drawn, written out: a style that draws the same as the data's own colours. Null if they cannot be written
 * out, as those of a palette. */
export function writtenOut(style: RasterStyle | null, computed: Computed, bands: readonly Band[]): RasterStyle | null {
  if (style) return style;
  const stops = computed.legend.map((entry) => ({ value: Number(entry.text), color: entry.color }));
  if (stops.length > 1 && stops.every((stop, place) => place === 0 || stop.value > (stops[place - 1]?.value ?? 0)))
    return { kind: "raster", bidx: [1], ramp: stops };
  if (computed.bidx.length >= 3)
    return {
      kind: "raster",
      bidx: computed.bidx.slice(0, 3),
      ...(computed.rescale.length > 0 ? { rescale: computed.rescale } : {}),
    };
  return bands.length > 0 && computed.rescale.length > 0
    ? { kind: "raster", bidx: [computed.bidx[0] ?? 1], rescale: computed.rescale.slice(0, 1) }
    : null;
}

/** The same picture, more or less transparent. What geomill computes becomes a style, as that alone has an opacity. */
export function withOpacity(
  style: RasterStyle | null,
  opacity: number,
  computed: Computed,
  bands: readonly Band[],
): RasterStyle {
  return { ...(writtenOut(style, computed, bands) ?? { kind: "raster" }), opacity };
}

export function modeOf(style: RasterStyle | null, computed: Computed): Mode {
  if (style?.expression) return "expression";
  const drawn = style?.bidx ?? (style ? [1] : computed.bidx);
  return drawn.length >= 3 ? "three" : "one";
}

export function inMode(mode: Mode, bands: readonly Band[]): RasterStyle {
  if (mode === "expression") {
    const expression = bands.length > 1 ? "(b2-b1)/(b2+b1)" : "b1*1.0";
    const rescale: Stretch = bands.length > 1 ? [-1, 1] : stretchOfBand(bands, 1);
    return { kind: "raster", expression, rescale: [rescale], colormap_name: INDEX };
  }
  if (mode === "three") {
    const bidx = [1, 2, 3].map((number) => Math.min(number, Math.max(1, bands.length)));
    return { kind: "raster", bidx, rescale: bidx.map((number) => stretchOfBand(bands, number)) };
  }
  return { kind: "raster", bidx: [1], rescale: [stretchOfBand(bands, 1)], colormap_name: SINGLE };
}

/** Another band with the same colours, stretched by its own values. */
export function withBand(style: RasterStyle | null, number: number, bands: readonly Band[]): RasterStyle {
  const colours = style?.ramp
    ? { ramp: moved(style.ramp, stretchOfBand(bands, number)) }
    : { rescale: [stretchOfBand(bands, number)], colormap_name: style?.colormap_name ?? SINGLE };
  return { kind: "raster", bidx: [number], ...colours };
}

/** One of the three channels. */
export function withChannel(style: RasterStyle, place: number, number: number, bands: readonly Band[]): RasterStyle {
  const bidx = (style.bidx ?? [1, 2, 3]).map((band, at) => (at === place ? number : band));
  const rescale = bidx.map((band, at) => (at === place ? stretchOfBand(bands, band) : stretchAt(style, at, bands)));
  return { kind: "raster", bidx, rescale };
}

/** Whether the values fit into eight bits: such a band is drawn as it is, unless the style stretches it. */
function isByte(band: Band | undefined): boolean {
  return (band?.minimum ?? -1) >= 0 && (band?.maximum ?? 256) <= 255 && band?.histogram?.max === 256;
}

/** The stretch of a channel as it is drawn. */
export function stretchAt(style: RasterStyle | null, place: number, bands: readonly Band[]): Stretch {
  if (style?.ramp) return [style.ramp[0]?.value ?? 0, style.ramp.at(-1)?.value ?? 1];
  const rescale = style?.rescale?.[style.rescale.length === 1 ? 0 : place];
  if (rescale) return [rescale[0], rescale[1]];
  const number = style?.bidx?.[place] ?? 1;
  return style && isByte(bands[number - 1]) ? [0, 255] : stretchOfBand(bands, number);
}

export function withStretch(style: RasterStyle, place: number, stretch: Stretch, bands: readonly Band[]): RasterStyle {
  if (!(stretch[1] > stretch[0])) return style;
  if (style.ramp) return { ...style, ramp: moved(style.ramp, stretch) };
  const channels = style.expression ? 1 : (style.bidx?.length ?? 1);
  const rescale = Array.from({ length: channels }, (_, at) => (at === place ? stretch : stretchAt(style, at, bands)));
  return { ...style, rescale };
}

type Ramp = NonNullable<RasterStyle["ramp"]>;

/** The same colours over another range of values. Labels of the old values are left out. */
function moved(ramp: Ramp, [low, high]: Stretch): Ramp {
  const [first, last] = [ramp[0]?.value ?? 0, ramp.at(-1)?.value ?? 1];
  return ramp.map((stop) => ({
    value: low + ((stop.value - first) / (last - first)) * (high - low),
    color: stop.color,
  }));
}

export function withColormap(style: RasterStyle | null, name: string, bands: readonly Band[]): RasterStyle {
  const { expression, bidx, nodata, resampling } = style ?? {};
  return {
    kind: "raster",
    ...(expression ? { expression } : { bidx: [bidx?.[0] ?? 1] }),
    rescale: [stretchAt(style, 0, bands)],
    colormap_name: name,
    nodata,
    resampling,
  };
}
