import { expect, it } from "vitest";
import { worstFirst } from "./failures";

it("shows a rare workflow that fails before busy ones that do not", () => {
  const rows: { workflow_id: string; counts: Record<string, number> }[] = [
    { workflow_id: "busy", counts: { completed: 900 } },
    { workflow_id: "rare", counts: { failed: 1 } },
    { workflow_id: "worst", counts: { completed: 3, failed: 2 } },
    { workflow_id: "calm", counts: { completed: 5 } },
  ];
  expect(worstFirst(rows).map((row) => row.workflow_id)).toEqual(["worst", "rare", "busy", "calm"]);
});
