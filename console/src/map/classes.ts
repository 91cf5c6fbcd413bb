/** Classes of a vector by one of its columns, from a sample of its values. */

import type { StyleClass } from "@/api/schema";
import { neat } from "./stretch";

/** Apart for colour-blind eyes: the palette of Okabe and Ito, then paler ones. */
const KINDS = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#f0e442",
  "#7f7f7f",
  "#8c6bb1",
  "#a6761d",
];
const AMOUNTS = ["#fde7a3", "#a6d96a", "#41ab8c", "#2c7fb8", "#253494"];

/** Classes of equal counts for numbers, and one for each of the ten most frequent values otherwise. */
export function classesOf(values: readonly unknown[]): StyleClass[] {
  const present = values.filter((value) => value !== null && value !== undefined);
  const numbers = present.filter((value): value is number => typeof value === "number");
  const distinct = new Set(present);
  if (numbers.length === present.length && distinct.size > KINDS.length) return amounts(numbers);
  return kinds(present);
}

function kinds(values: readonly unknown[]): StyleClass[] {
  const counts = new Map<string | number | boolean, number>();
  for (const value of values) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts]
    .sort(([one, count], [other, more]) => more - count || String(one).localeCompare(String(other)))
    .slice(0, KINDS.length)
    .map(([value], place) => ({ value, color: KINDS[place] ?? "#7f7f7f" }));
}

function amounts(numbers: readonly number[]): StyleClass[] {
  const sorted = [...numbers].sort((one, other) => one - other);
  const range = (sorted.at(-1) ?? 1) - (sorted[0] ?? 0);
  const at = (share: number) => neat(sorted[Math.round(share * (sorted.length - 1))] ?? 0, range);
  const edges = [...new Set(AMOUNTS.slice(1).map((_, place) => at((place + 1) / AMOUNTS.length)))];
  return [...edges, null].map((edge, place) => ({
    ...(place === 0 ? {} : { minimum: edges[place - 1] }),
    ...(edge === null ? {} : { maximum: edge }),
    color: AMOUNTS[Math.round((place / edges.length) * (AMOUNTS.length - 1))] ?? "#253494",
  }));
}
