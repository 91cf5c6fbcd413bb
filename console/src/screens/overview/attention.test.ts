import { expect, it } from "vitest";
import type { Health } from "@/api/schema";
import { concernsOf } from "./attention";

const quiet = { instances: [], queues: [], jobs: {}, dead_letters: [], parked: [], space: [] } as unknown as Health;

it("has nothing to say when nothing needs anybody", () => {
  expect(concernsOf(quiet, [], [], [], 0)).toEqual([]);
});

it("names failed submissions and paused jobs, each with the place to deal with it", () => {
  const health = { ...quiet, jobs: { running: 4, paused: 2 } } as Health;
  const failed = [{ workflow_id: "raster_processing", last_error: "the file is broken" }, {}];
  const concerns = concernsOf(health, [], failed, [], 0);
  expect(concerns.map(({ title, action }) => [title, action.href])).toEqual([
    ["2 submissions failed", "/assets?processing_status=failed"],
    ["2 jobs are paused", "/jobs?paused=true"],
  ]);
  expect(concerns[0]?.reason).toBe("raster_processing: the file is broken");
});

it("names queues that nobody serves", () => {
  const queues = [{ queue_name: "container-tasks", waiting: 3, oldest_seconds: 1, consumers: 0 }];
  const [concern] = concernsOf({ ...quiet, queues } as unknown as Health, [], [], [], 0);
  expect(concern?.title).toBe("Nobody serves container-tasks");
});

it("names exports and withdrawals that failed, each with its asset", () => {
  const exports = [
    { asset_id: "a1", asset_name: "floods-jakarta", purpose: "export", error: "the disk is full" },
    { asset_id: "a2", purpose: "withdraw" },
    { asset_id: "a3", purpose: "export" },
  ];
  const concerns = concernsOf(quiet, [], [], exports, 0);
  expect(concerns.map(({ title, reason, action }) => [title, reason, action.href])).toEqual([
    ["1 withdrawal failed", "a2 is still outside: no reason is known", "/assets/a2"],
    ["2 exports failed", "floods-jakarta is not outside: the disk is full", "/assets/a1"],
  ]);
});
