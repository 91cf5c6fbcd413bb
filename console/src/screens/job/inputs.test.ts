import { describe, expect, it } from "vitest";
import { asText, changes, parsed } from "./inputs";

describe("inputs of a workflow", () => {
  it.each([
    ["5", "integer", { value: 5 }],
    ["5.5", "integer", { wrong: "a whole number is needed" }],
    ["many", "number", { wrong: "a number is needed" }],
    ["true", "boolean", { value: true }],
    ["[1, 2]", "array", { value: [1, 2] }],
    ["{", "object", { wrong: 'an object is needed, such as {"a": 1}' }],
    ["", "integer", { value: null }],
    ["", "string", { value: "" }],
  ])("reads %j as %s", (text, type, result) => expect(parsed(text, type)).toEqual(result));

  it.each([
    ["words", "string"],
    [5, "integer"],
    [[1, 2], "array"],
    [{ a: 1 }, "object"],
    [false, "boolean"],
  ])("writes %j so that it is read as the same", (value, type) =>
    expect(parsed(asText(value, type), type)).toEqual({ value }),
  );

  it("sends only what has changed", () => {
    const definitions = { name: { type: "string" }, size: { type: "integer" }, list: { type: "array" } };
    const before = { name: "Ada", size: 3, list: [1] };
    expect(changes({ name: "Ada", size: "4", list: "[1" }, before, definitions)).toEqual({
      changed: { size: 4 },
      wrong: { list: 'a list is needed, such as [1, "two"]' },
    });
  });
});
