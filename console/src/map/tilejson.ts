/** Where tiles of an asset are: extent and zoom levels. */

import { useQueries } from "@tanstack/react-query";
import { readService } from "@/api/services";
import type { Bounds } from "@/components/map/MapFrame";
import { boundsOf, unionOf } from "./outputs";

interface TileJson {
  bounds?: number[];
  minzoom?: number;
  maxzoom?: number;
}

export interface TilePlace {
  bounds: Bounds | undefined;
  maxzoom: number | undefined;
}

const MATRIX = "WebMercatorQuad";

export function tileJsonPath(kind: "raster" | "vector", name: string): string {
  const id = encodeURIComponent(name);
  return kind === "raster"
    ? `/raster/assets/${id}/${MATRIX}/tilejson.json`
    : `/vector/collections/${id}/tiles/${MATRIX}/tilejson.json`;
}

/** The place of the tiles of all names together. `revision` reads it again when the asset has another one; with null
 * nothing is asked, because nothing is served. */
export function useTilePlace(kind: "raster" | "vector", names: readonly string[], revision: number | null) {
  return useQueries({
    queries: names.map((name) => ({
      queryKey: ["tilejson", kind, name, revision],
      queryFn: ({ signal }: { signal: AbortSignal }) => readService<TileJson>(tileJsonPath(kind, name), signal),
      enabled: revision !== null,
      staleTime: 300_000,
    })),
    combine: (answers): { place: TilePlace | null; error: unknown; refetch: () => void } => {
      const documents = answers.flatMap((answer) => (answer.data ? [answer.data] : []));
      const zooms = documents.flatMap((document) => (document.maxzoom === undefined ? [] : [document.maxzoom]));
      const boxes = documents.map((document) => boundsOf(document.bounds)).filter((box) => box !== undefined);
      return {
        place:
          answers.length > 0 && documents.length === answers.length
            ? { bounds: unionOf(boxes), maxzoom: zooms.length > 0 ? Math.max(...zooms) : undefined }
            : null,
        error: answers.find((answer) => answer.error)?.error ?? null,
        refetch: () => {
          for (const answer of answers) void answer.refetch();
        },
      };
    },
  });
}
