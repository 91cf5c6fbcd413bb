import { expect, it } from "vitest";
import { shareOf } from "./share";

it("counts the items of a fan-out, not only nodes", () => {
  const progress = { fraction: 0.6, nodes_total: 10, nodes_ended: 6, items_total: 9990, items_ended: 194 };
  expect(shareOf(progress)).toBeCloseTo(0.02);
  expect(shareOf({ ...progress, nodes_ended: 10, items_ended: 9990 })).toBe(1);
  expect(shareOf({ ...progress, items_total: 0, items_ended: 0 })).toBe(0.6);
});
