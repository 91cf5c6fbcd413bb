import { expect, it } from "vitest";
import { placeOfLine } from "./lines";

it("finds a line in a text", () => {
  const text = "one\ntwo\n\nfour";
  expect([1, 2, 3, 4].map((line) => text.slice(...placeOfLine(text, line)))).toEqual(["one", "two", "", "four"]);
  expect(text.slice(...placeOfLine(text, 9))).toBe("");
});
