/** The style that the map shows while somebody tries colours. It is in the address, so that a link shows the same. */

import { useCallback, useEffect, useMemo, useState } from "react";
import type { AssetDetails, StylesView } from "@/api/schema";
import type { Computed } from "@/map/editing";
import type { Band } from "@/map/outputs";
import { defaultStyle, type Stretch, type Style, sameStyle, savedForm } from "@/map/style";
import { useAddresses } from "@/shell/address";

export interface Draft {
  /** As it is drawn; null is what geomill computes from the data. */
  style: Style | null;
  changed: boolean;
  /** What geomill computes from the data. */
  computed: Computed;
  change: (style: Style | null) => void;
  discard: () => void;
}

const WAIT_MILLISECONDS = 400;

/** A style of an address, or undefined if it has none that fits. The tiles refuse a wrong one, and say why. */
export function styleOf(text: string | null, kind: string): Style | null | undefined {
  if (!text) return undefined;
  if (text === "automatic") return null;
  try {
    const style: unknown = JSON.parse(text);
    const fits = typeof style === "object" && style !== null && (style as { kind?: unknown }).kind === kind;
    return fits ? (style as Style) : undefined;
  } catch {
    return undefined;
  }
}

function computedOf(asset: AssetDetails, styles: StylesView | undefined, bands: readonly Band[]): Computed {
  const item = (asset.outputs as { stac_item?: { properties?: { renders?: { default?: unknown } } } } | null)
    ?.stac_item;
  const render = (item?.properties?.renders?.default ?? {}) as { bidx?: unknown; rescale?: unknown };
  const bidx = Array.isArray(render.bidx) ? render.bidx.filter((band) => typeof band === "number") : [];
  return {
    bidx: bidx.length > 0 ? bidx : bands.length > 0 ? [1] : [],
    rescale: Array.isArray(render.rescale) ? (render.rescale as Stretch[]) : [],
    legend: styles?.styles.find((entry) => entry.name === "automatic")?.legend ?? [],
  };
}

export function useDraft(asset: AssetDetails, styles: StylesView | undefined, bands: readonly Band[]): Draft {
  const [values, setAddress] = useAddresses();
  const [tried, setTried] = useState<Style | null | undefined>(() => styleOf(values.get("draw"), asset.data_type));
  const saved = defaultStyle(styles);
  const computed = useMemo(() => computedOf(asset, styles, bands), [asset, styles, bands]);
  const changed = tried !== undefined && !sameStyle(tried, saved);
  const text = !changed ? null : tried === null ? "automatic" : JSON.stringify(savedForm(tried));
  useEffect(() => {
    const timer = setTimeout(() => {
      const now = new URLSearchParams(location.search);
      if (now.get("draw") !== text) setAddress({ draw: text });
    }, WAIT_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text, setAddress]);
  return {
    style: tried === undefined ? saved : tried,
    changed,
    computed,
    change: useCallback((style: Style | null) => setTried(style), []),
    discard: useCallback(() => setTried(undefined), []),
  };
}
