/** Styles of assets as the API has them, turned into what draws them: parameters of tiles, layers of MapLibre, legends.
 * Screens keep a style as their state, change its fields, and save it as it is. */

import type { LayerSpecification } from "maplibre-gl";
import type { RasterStyle, StyleClass, StylesView, VectorStyle } from "@/api/schema";

export type Style = RasterStyle | VectorStyle;
export type Stretch = [low: number, high: number];

/** The colours and widths of a vector without a style: those of the gateway. */
export const PLAIN_VECTOR = {
  kind: "vector",
  opacity: 1,
  fill_color: "#2a78b8",
  fill_opacity: 0.5,
  line_color: "#17456b",
  line_width: 1.5,
  line_opacity: 1,
  circle_color: "#2a78b8",
  circle_radius: 4,
  circle_opacity: 1,
  attribute: null,
  classes: [],
} satisfies VectorStyle;

export type WholeVectorStyle = Required<Omit<VectorStyle, "title">> & { title?: string | null };

export function wholeVector(style: VectorStyle | null | undefined): WholeVectorStyle {
  return { ...PLAIN_VECTOR, ...style, opacity: style?.opacity ?? 1 };
}

/** The style that is in use, or null if geomill draws by the data. */
export function defaultStyle(styles: StylesView | undefined): Style | null {
  return styles?.styles.find((entry) => entry.default)?.style ?? null;
}

/** Whether two styles draw the same. Empty fields count as absent. */
export function sameStyle(one: Style | null, other: Style | null): boolean {
  return JSON.stringify(bare(one)) === JSON.stringify(bare(other));
}

function bare(style: Style | null): unknown {
  if (!style) return null;
  const whole = style.kind === "vector" ? wholeVector(style) : { opacity: 1, ...style };
  const entries = Object.entries(whole).filter(
    ([name, value]) => name !== "title" && value !== null && value !== undefined,
  );
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** A style as it is saved: without empty fields. */
export function savedForm(style: Style): Style {
  return Object.fromEntries(
    Object.entries(style).filter(([, value]) => value !== null && value !== undefined && value !== ""),
  ) as Style;
}

const LAST_STEP = 255;

/** The parameters of tiles and previews that draw a raster so. Null means as geomill computes from the data. */
export function tileQuery(style: RasterStyle | null): string {
  const query = new URLSearchParams();
  if (!style) {
    query.set("style", "automatic");
    return query.toString();
  }
  for (const band of style.expression ? [] : (style.bidx ?? [])) query.append("bidx", String(band));
  if (style.expression) query.set("expression", style.expression);
  for (const pair of style.rescale ?? []) query.append("rescale", pair.join(","));
  colours(query, style);
  if (style.nodata !== null && style.nodata !== undefined) query.set("nodata", String(style.nodata));
  if (style.resampling) query.set("resampling", style.resampling);
  return query.toString() || "style=automatic";
}

function colours(query: URLSearchParams, style: RasterStyle): void {
  if (
    !style.bidx?.length &&
    !style.expression &&
    (style.colormap_name || style.colormap || style.ramp || style.classes)
  )
    query.set("bidx", "1");
  if (style.colormap_name) query.set("colormap_name", style.colormap_name);
  else if (style.colormap) query.set("colormap", JSON.stringify(style.colormap));
  else if (style.ramp) query.set("colormap", JSON.stringify(stepsOf(style.ramp)));
  else if (style.classes) query.set("colormap", JSON.stringify(style.classes.map(intervalOf)));
}

/** The largest number that a colour map may name: JSON has no infinity. */
const FARTHEST = 1e300;
const STEPS = 48;

type Ramp = NonNullable<RasterStyle["ramp"]>;
type Interval = [[low: number, high: number], colour: number[]];

/** The colour of a value, mixed of the two stops beside it. */
function mixed(ramp: Ramp, value: number): number[] {
  const place = Math.max(
    1,
    ramp.findIndex((stop) => stop.value >= value),
  );
  const [below, above] = [ramp[place - 1], ramp[place]];
  if (!below || !above) return parts(ramp.at(-1)?.color ?? "#000000");
  const share = Math.max(0, Math.min(1, (value - below.value) / (above.value - below.value)));
  const high = parts(above.color);
  return parts(below.color).map((part, at) => Math.round(part + ((high[at] ?? 0) - part) * share));
}

/** A ramp as intervals of values. The gateway mixes 256 colours for a style that is saved; while somebody tries colours,
 * they are in the address of every tile, so they are fewer. */
function stepsOf(ramp: Ramp): Interval[] {
  const [low, high] = [ramp[0]?.value ?? 0, ramp.at(-1)?.value ?? 1];
  const edge = (step: number) => Number((low + ((high - low) * step) / STEPS).toPrecision(7));
  return Array.from({ length: STEPS }, (_, step) => [
    [step === 0 ? -FARTHEST : edge(step), step === STEPS - 1 ? FARTHEST : edge(step + 1)],
    mixed(ramp, low + ((high - low) * (step + 0.5)) / STEPS),
  ]);
}

/** Colours at equal distances of value, for bars and histograms. */
export function rampColours(ramp: Ramp, count = 24): string[] {
  const [low, high] = [ramp[0]?.value ?? 0, ramp.at(-1)?.value ?? 1];
  return Array.from({ length: count }, (_, step) => {
    const [red, green, blue, opacity] = mixed(ramp, low + ((high - low) * step) / (count - 1));
    return `rgb(${red} ${green} ${blue} / ${Math.round(((opacity ?? LAST_STEP) / LAST_STEP) * 100)}%)`;
  });
}

function intervalOf(entry: StyleClass): Interval {
  if (entry.value !== null && entry.value !== undefined) {
    const value = Number(entry.value);
    return [[value, value + Math.max(Math.abs(value) * 1e-9, 1e-9)], parts(entry.color)];
  }
  return [[entry.minimum ?? -FARTHEST, entry.maximum ?? FARTHEST], parts(entry.color)];
}

/** Red, green, blue and opacity from 0 to 255. */
export function parts(colour: string): [number, number, number, number] {
  const at = (place: number) => Number.parseInt(colour.slice(place, place + 2), 16);
  return [at(1), at(3), at(5), colour.length > 7 ? at(7) : LAST_STEP];
}

type Expression = unknown[] | string | number;

function classColour(style: WholeVectorStyle, otherwise: string): Expression {
  if (!style.attribute || style.classes.length === 0) return otherwise;
  const value = ["get", style.attribute];
  return ["case", ...style.classes.flatMap((entry) => [condition(entry, value), entry.color]), otherwise];
}

function condition(entry: StyleClass, value: unknown[]): unknown[] {
  if (entry.value !== null && entry.value !== undefined) return ["==", value, entry.value];
  const amount = ["to-number", value, 0];
  return [
    "all",
    ["==", ["typeof", value], "number"],
    ...(entry.minimum === null || entry.minimum === undefined ? [] : [[">=", amount, entry.minimum]]),
    ...(entry.maximum === null || entry.maximum === undefined ? [] : [["<", amount, entry.maximum]]),
  ];
}

/** The layers of a vector, for one of its sources. The outline of areas is a layer of lines, so that it has a width. */
export function vectorLayers(
  style: VectorStyle | null,
  source: string,
  prefix: string,
  opacity = 1,
): LayerSpecification[] {
  const whole = wholeVector(style);
  const share = whole.opacity * opacity;
  const line = {
    "line-width": whole.line_width,
    "line-opacity": whole.line_opacity * share,
  };
  const layers: { name: string; type: "fill" | "line" | "circle"; shape: string; paint: Record<string, Expression> }[] =
    [
      {
        name: "areas",
        type: "fill",
        shape: "Polygon",
        paint: { "fill-color": classColour(whole, whole.fill_color), "fill-opacity": whole.fill_opacity * share },
      },
      { name: "outlines", type: "line", shape: "Polygon", paint: { "line-color": whole.line_color, ...line } },
      {
        name: "lines",
        type: "line",
        shape: "LineString",
        paint: { "line-color": classColour(whole, whole.line_color), ...line },
      },
      {
        name: "points",
        type: "circle",
        shape: "Point",
        paint: {
          "circle-color": classColour(whole, whole.circle_color),
          "circle-radius": whole.circle_radius,
          "circle-opacity": whole.circle_opacity * share,
          "circle-stroke-color": "#ffffff",
          "circle-stroke-width": 1,
          "circle-stroke-opacity": whole.circle_opacity * share,
        },
      },
    ];
  return layers.map(
    ({ name, type, shape, paint }) =>
      ({
        id: `${prefix}${name}`,
        type,
        source,
        "source-layer": "default",
        filter: ["==", ["geometry-type"], shape],
        paint,
      }) as LayerSpecification,
  );
}

/** The words of a class in a legend, as the gateway writes them. */
export function classText(entry: StyleClass): string {
  if (entry.label) return entry.label;
  if (entry.value !== null && entry.value !== undefined) return String(entry.value);
  const [low, high] = [entry.minimum ?? null, entry.maximum ?? null];
  if (low !== null && high !== null) return `${low} to ${high}`;
  return low !== null ? `from ${low}` : `below ${high}`;
}
