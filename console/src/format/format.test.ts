import { describe, expect, it } from "vitest";
import { bytes, count, percent, plural, shortId } from "./number";
import { age, day, duration, moment, utc } from "./time";

const now = new Date(2026, 10, 18, 9, 15, 0);
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);

describe("times", () => {
  it.each([
    [0.26, "0.3 s"],
    [12.4, "12 s"],
    [64, "1 min 04 s"],
    [3 * 3600 + 12 * 60, "3 h 12 min"],
    [52 * 3600, "2 d 4 h"],
    [-3, "0.0 s"],
    [Number.NaN, "–"],
  ])("writes a span of %s seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));

  it("writes an age up to a day, then the date", () => {
    expect(age(ago(8), now)).toBe("8 s");
    expect(age(ago(3 * 3600 + 720), now)).toBe("3 h 12 min");
    expect(age(ago(86_400 * 3), now)).toBe("15 Nov");
    expect(age(ago(-5), now)).toBe("0 s");
  });

  it("writes a moment with its date unless it is of today", () => {
    expect(moment(new Date(2026, 10, 18, 8, 1, 2), now)).toBe("08:01:02");
    expect(moment(new Date(2026, 10, 14, 22, 41), now)).toBe("14 Nov 22:41");
    expect(moment(new Date(2025, 10, 14), now)).toBe("14 Nov 2025");
    expect(day(new Date(2025, 0, 2), now)).toBe("2 Jan 2025");
    expect(utc("2026-11-18T02:15:00.5Z")).toBe("2026-11-18 02:15:00 UTC");
  });
});

describe("figures", () => {
  it("groups thousands and keeps few digits", () => {
    expect([count(61930), count(null), count(0)]).toEqual(["61,930", "–", "0"]);
    expect([percent(0.015), percent(0.91), percent(0), percent(0.0001), percent(1)]).toEqual([
      "1.5 %",
      "91 %",
      "0 %",
      "< 0.1 %",
      "100 %",
    ]);
    expect([bytes(0), bytes(999), bytes(1500), bytes(3.6e12), bytes(999_600)]).toEqual([
      "0 B",
      "999 B",
      "1.5 kB",
      "3.6 TB",
      "1.0 MB",
    ]);
    expect([plural(1, "job"), plural(2, "job"), plural(0, "query", "queries")]).toEqual([
      "1 job",
      "2 jobs",
      "0 queries",
    ]);
    expect(shortId("01a1e41f-5b02-7c00-8000")).toBe("01a1e41f-5b02");
  });
});
