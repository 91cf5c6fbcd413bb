import { describe, expect, it } from "vitest";
import { drawnEdges, drawnNodes, type NodeDefinitions } from "./graph";

const NODES: NodeDefinitions = {
  START: { type: "start", next: ["size"] },
  size: {
    type: "conditional",
    branches: [
      { name: "small", condition: "< 100", next: ["whole", "whole"] },
      { condition: "< 200", next: ["whole"] },
      { next: ["tiles"] },
    ],
  },
  whole: { type: "task", handler: "raster.create_cog", next: ["END", "END"] },
  tiles: { type: "fan_out", task: { handler: "raster.process_tile_batch" }, next: ["END"] },
  END: { type: "end" },
};

describe("the graph of a definition", () => {
  it("has one arrow for each pair of nodes, named by the branches that lead there", () => {
    expect(drawnEdges(NODES).map((edge) => [edge.from, edge.to, edge.label])).toEqual([
      ["START", "size", null],
      ["size", "whole", "small or < 200"],
      ["size", "tiles", "otherwise"],
      ["whole", "END", null],
      ["tiles", "END", null],
    ]);
  });

  it("says what each node is and which handler it runs", () => {
    const spoken = Object.fromEntries(drawnNodes(NODES).map((node) => [node.id, node.spoken]));
    expect(spoken.size).toBe("conditional");
    expect(spoken.whole).toBe("task, runs raster.create_cog");
    expect(spoken.tiles).toBe("fan-out, runs raster.process_tile_batch");
  });

  it("draws a workflow without states", () => {
    expect(drawnNodes(NODES).every((node) => node.state === undefined)).toBe(true);
  });
});
