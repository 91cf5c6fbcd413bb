import { expect, it } from "vitest";
import { rhythmOf, timesOf } from "./rhythm";

it("reads a schedule and gives the same times back", () => {
  const nightly = { cron: "0 3 * * *", timezone: "Europe/Bern", interval_seconds: null };
  expect(timesOf(rhythmOf(nightly))).toEqual({ cron: "0 3 * * *", timezone: "Europe/Bern" });
  const often = { cron: null, timezone: "UTC", interval_seconds: 90 };
  expect(timesOf(rhythmOf(often))).toEqual({ interval_seconds: 90 });
});

it("begins with the night of the viewer", () => {
  expect(rhythmOf(null)).toMatchObject({ kind: "cron", cron: "0 3 * * *", minutes: "60" });
  expect(rhythmOf(null).timezone).not.toBe("");
});
