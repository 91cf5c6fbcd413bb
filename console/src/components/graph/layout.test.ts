import { describe, expect, it } from "vitest";
import { type GraphEdge, type GraphNode, neighbour, place } from "./layout";

const box = (id: string, type = "task"): GraphNode => ({ id, type, width: 160, height: 30 });
const nodes = [box("START", "start"), box("a"), box("b"), box("c"), box("join"), box("END", "end")];
const edges: GraphEdge[] = [
  { from: "START", to: "a" },
  { from: "START", to: "b" },
  { from: "a", to: "c" },
  { from: "c", to: "join" },
  { from: "b", to: "join" },
  { from: "join", to: "END" },
];

describe("the layout of a graph", () => {
  const graph = place(nodes, edges);
  const at = (id: string) => graph.nodes.find((node) => node.id === id);

  it("goes from top to bottom", () => {
    expect(graph.nodes.map((node) => node.id).at(0)).toBe("START");
    expect(graph.nodes.map((node) => node.id).at(-1)).toBe("END");
    for (const edge of edges) expect(at(edge.from)?.y).toBeLessThan(at(edge.to)?.y ?? 0);
  });

  it("lets no nodes overlap, and none leave the picture", () => {
    for (const one of graph.nodes) {
      expect(one.x - one.width / 2).toBeGreaterThanOrEqual(0);
      expect(one.x + one.width / 2).toBeLessThanOrEqual(graph.width);
      for (const other of graph.nodes) {
        if (one === other) continue;
        const apart = Math.abs(one.x - other.x) >= 160 || Math.abs(one.y - other.y) >= 30;
        expect(apart, `${one.id} and ${other.id}`).toBe(true);
      }
    }
  });

  it("begins an arrow at the bottom of a node and ends it at the top of the next", () => {
    const edge = graph.edges.find((entry) => entry.from === "c");
    expect(edge?.path.startsWith(`M${at("c")?.x} ${(at("c")?.y ?? 0) + 15}`)).toBe(true);
    expect(edge?.path.endsWith(String((at("join")?.y ?? 0) - 15))).toBe(true);
  });

  it("fits ten ranks into 700 pixels", () => {
    const chain = Array.from({ length: 10 }, (_, rank) => box(`n${rank}`));
    const along = chain.slice(1).map((node, rank) => ({ from: `n${rank}`, to: node.id }));
    expect(place(chain, along).height).toBeLessThanOrEqual(700);
  });

  it("leaves out an arrow to a node that does not exist", () => {
    expect(place([box("a")], [{ from: "a", to: "gone" }]).edges).toEqual([]);
  });

  it("is empty without nodes", () => expect(place([], []).nodes).toEqual([]));
});

describe("arrow keys", () => {
  const placed = place(nodes, edges).nodes;
  it("begin at the first node", () => expect(neighbour(placed, null, "down")).toBe("START"));
  it("stop at the ends", () => {
    expect(neighbour(placed, "START", "up")).toBe("START");
    expect(neighbour(placed, "END", "down")).toBe("END");
  });
  it("go through all nodes downwards", () => {
    const visited = [neighbour(placed, null, "down")];
    while (visited.at(-1) !== "END") visited.push(neighbour(placed, visited.at(-1) ?? null, "down"));
    expect([...visited].sort()).toEqual(nodes.map((node) => node.id).sort());
  });
  it("stay in the rank sidewards", () => {
    const beside = placed.find((node, at) => placed[at + 1]?.rank === node.rank)?.rank;
    const [left, right] = placed.filter((node) => node.rank === beside).map((node) => node.id);
    expect(right).toBeDefined();
    expect(neighbour(placed, left ?? "", "right")).toBe(right);
    expect(neighbour(placed, right ?? "", "right")).toBe(right);
    expect(neighbour(placed, left ?? "", "left")).toBe(left);
  });
});
