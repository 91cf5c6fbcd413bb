/** Where `E` leads: to the next node or item that failed. */

interface Node {
  node_id: string;
  status: string;
}

interface Summary {
  failed: readonly { index: number }[];
}

export interface Place {
  nodeId: string;
  index: number | null;
}

export function nextFailed(
  nodes: readonly Node[],
  summaries: ReadonlyMap<string, Summary>,
  nodeId: string | null,
  index: number | null,
): Place | null {
  const places = nodes.flatMap((node) => {
    const items = (summaries.get(node.node_id)?.failed ?? []).map((item) => ({
      nodeId: node.node_id,
      index: item.index,
    }));
    return [...(node.status === "failed" ? [{ nodeId: node.node_id, index: null }] : []), ...items];
  });
  const at = places.findIndex((place) => place.nodeId === nodeId && place.index === index);
  return places[(at + 1) % Math.max(places.length, 1)] ?? null;
}
