import { expect, it } from "vitest";
import { classesOf } from "./classes";

it("gives the most frequent words a colour each", () => {
  const classes = classesOf(["field", "forest", "forest", null, "lake"]);
  expect(classes.map((entry) => entry.value)).toEqual(["forest", "field", "lake"]);
  expect(new Set(classes.map((entry) => entry.color)).size).toBe(3);
  expect(classesOf(Array.from({ length: 40 }, (_, place) => `v${place}`))).toHaveLength(10);
});

it("gives many numbers classes of equal counts that touch each other", () => {
  const classes = classesOf(Array.from({ length: 101 }, (_, place) => place));
  expect(classes.map((entry) => [entry.minimum, entry.maximum])).toEqual([
    [undefined, 20],
    [20, 40],
    [40, 60],
    [60, 80],
    [80, undefined],
  ]);
});

it("has no empty classes if most values are the same", () => {
  const values = [...Array.from({ length: 500 }, () => 0), ...Array.from({ length: 20 }, (_, place) => place)];
  const classes = classesOf(values);
  for (const entry of classes) {
    if (entry.minimum !== undefined && entry.maximum !== undefined)
      expect(entry.minimum).toBeLessThan(entry.maximum as number);
  }
  expect(classesOf([])).toEqual([]);
});
