import { expect, it } from "vitest";
import type { JobHistogram } from "@/api/schema";
import { counted } from "./histogram";

const hour = (number: number) => `2026-11-19T0${number}:00:00Z`;
const histogram = (complete_from: string | null): JobHistogram => ({
  created_from: hour(0),
  created_to: hour(4),
  parts: [0, 1, 2, 3].map((number) => ({ begins_at: hour(number), counts: { failed: 1, completed: number } })),
  workflows: [],
  more: complete_from !== null,
  complete_from,
});

it("shows only parts of which every job was counted", () => {
  const { bars, uncounted, minutes } = counted(histogram("2026-11-19T01:30:00Z"));
  expect(bars.map((bar) => bar.counts)).toEqual([{}, {}, { failed: 1, completed: 2 }, { failed: 1, completed: 3 }]);
  expect([uncounted, minutes]).toEqual([0.5, 120]);
});

it("shows everything when nothing was left out", () => {
  expect(counted(histogram(null))).toMatchObject({ uncounted: 0, minutes: 240 });
});

it("shows nothing when not even the last part is sure", () => {
  expect(counted(histogram("2026-11-19T03:30:00Z"))).toMatchObject({ uncounted: 1, minutes: 0 });
});
