import { describe, expect, it } from "vitest";
import type { JobSummary } from "@/api/schema";
import { applyJobs } from "./live";

const job = (id: string, status = "running") => ({ job_id: id, status }) as JobSummary;
const pages = {
  pages: [
    { jobs: [job("a"), job("b")], next_cursor: "x" },
    { jobs: [job("c")], next_cursor: null },
  ],
  pageParams: [],
};

describe("applyJobs", () => {
  it("changes rows in place and counts those that are not there", () => {
    const result = applyJobs(pages, [
      { name: "job", data: job("c", "failed") },
      { name: "job", data: job("new") },
      { name: "ready", data: {} },
    ]);
    expect(result.pages.pages.map((page) => page.jobs.map((entry) => `${entry.job_id} ${entry.status}`))).toEqual([
      ["a running", "b running"],
      ["c failed"],
    ]);
    expect(result.unknown).toEqual(["new"]);
  });

  it("leaves the pages alone when nothing of them changed", () => {
    expect(applyJobs(pages, [{ name: "ready", data: {} }]).pages).toBe(pages);
  });
});
