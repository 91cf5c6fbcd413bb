/** Colour maps of the raster service, as colours that a page can show. */

import { useQuery } from "@tanstack/react-query";
import { readService } from "@/api/services";

/** Shown first: even in lightness, or a custom that people expect. */
export const FAVOURITES = ["viridis", "magma", "cividis", "terrain", "rdylgn", "gray"] as const;

type Colours = Record<string, [number, number, number, number]>;

const SAMPLES = 24;

/** `count` colours from the first to the last of a colour map, which has 256. */
export function sampled(colours: Colours, count = SAMPLES): string[] {
  return Array.from({ length: count }, (_, place) => {
    const step = Math.round((place / (count - 1)) * 255);
    const [red, green, blue, opacity] = colours[String(step)] ?? [0, 0, 0, 0];
    return `rgb(${red} ${green} ${blue} / ${Math.round((opacity / 255) * 100)}%)`;
  });
}

export function gradient(colours: readonly string[]): string {
  return colours.length > 1 ? `linear-gradient(90deg, ${colours.join(", ")})` : (colours[0] ?? "none");
}

/** The colours of a named colour map; none while it loads. */
export function useColormap(name: string | null | undefined): string[] {
  const answer = useQuery({
    queryKey: ["colormap", name],
    queryFn: ({ signal }) => readService<Colours>(`/raster/colorMaps/${encodeURIComponent(name ?? "")}`, signal),
    enabled: Boolean(name),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return answer.data ? sampled(answer.data) : [];
}

/** The names of all colour maps, without the reversed ones. */
export function useColormapNames(): string[] {
  const answer = useQuery({
    queryKey: ["colormaps"],
    queryFn: ({ signal }) => readService<{ colormaps: { id: string }[] }>("/raster/colorMaps", signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (answer.data?.colormaps ?? [])
    .map((entry) => entry.id)
    .filter((id) => !id.endsWith("_r"))
    .sort();
}

export function isReversed(name: string): boolean {
  return name.endsWith("_r");
}

export function reversed(name: string): string {
  return isReversed(name) ? name.slice(0, -2) : `${name}_r`;
}
