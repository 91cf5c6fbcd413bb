import { describe, expect, it } from "vitest";
import type { JobPage, JobSummary } from "@/api/schema";
import { ACTIONS, type BulkAction, fitting, matching, runAll, statesOf, totalOf } from "./bulk";

const action = (name: BulkAction["name"]) => ACTIONS.find((entry) => entry.name === name) as BulkAction;
const job = (job_id: string, status: string, more: Partial<JobSummary> = {}) =>
  ({ job_id, status, workflow_id: "w", ...more }) as JobSummary;

async function* pagesOf(...pages: string[][]) {
  yield* pages;
}

describe("actions for many jobs", () => {
  it("asks for each job once and tells why the first one was refused", async () => {
    const asked: string[] = [];
    const run = async (id: string) => {
      asked.push(id);
      if (id === "b") throw new Error("it has ended");
    };
    const tally = await runAll(pagesOf(["a", "b"], ["b", "c"]), { run, signal: new AbortController().signal });
    expect(asked).toEqual(["a", "b", "c"]);
    expect(tally).toMatchObject({ asked: 3, refused: 1 });
    expect(tally.refusal).toBeTruthy();
  });

  it("stops when it is told to", async () => {
    const stop = new AbortController();
    const ids = Array.from({ length: 100 }, (_, place) => String(place));
    const run = async (id: string) => {
      if (id === "9") stop.abort();
    };
    const tally = await runAll(pagesOf(ids, ["later"]), { run, signal: stop.signal });
    expect(tally.asked).toBeLessThan(20);
  });

  it("reads all pages of the filters, only of states that fit, and only jobs that were there at the beginning", async () => {
    const queries: object[] = [];
    const pages: JobPage[] = [
      { jobs: [job("a", "running"), job("b", "running", { paused: true })], next_cursor: "x" },
      { jobs: [], next_cursor: "y" },
      { jobs: [job("c", "pending")], next_cursor: null },
    ];
    const read = async (query: object) => {
      queries.push(query);
      return pages[queries.length - 1] as JobPage;
    };
    const now = new Date("2026-11-19T04:00:00Z");
    const ids: string[] = [];
    for await (const page of matching({ workflow_id: "w" }, action("Pause"), read, now)) ids.push(...page);
    expect(ids).toEqual(["a", "c"]);
    expect(queries).toHaveLength(3);
    expect(queries[2]).toMatchObject({
      workflow_id: "w",
      status: ["pending", "running"],
      created_to: "2026-11-19T04:00:00.000Z",
      cursor: "y",
    });
  });

  it("counts what passes the filters and what an action may fit", () => {
    const counts = { queued: 1, running: 4, failed: 20_000, completed: 7 };
    expect(statesOf({ status: ["failed", "completed"] }, action("Retry"))).toEqual(["failed"]);
    expect(fitting({}, action("Cancel"), counts)).toBe(5);
    expect(fitting({ status: ["completed"] }, action("Cancel"), counts)).toBe(0);
    expect([{}, { paused: true }].map((filters) => fitting(filters, action("Resume"), counts))).toEqual([0, 4]);
    expect([{}, { paused: true }].map((filters) => fitting(filters, action("Pause"), counts))).toEqual([4, 0]);
    expect(totalOf({ status: ["failed"] }, counts, ["failed"])).toEqual({ jobs: 20_000, more: true });
    expect(totalOf({ status: ["running"] }, counts, ["failed"])).toEqual({ jobs: 4, more: false });
  });
});
