import { describe, expect, it } from "vitest";
import { inputValue, textOf, valuesOf } from "./inputs";

describe("inputs of a workflow", () => {
  it("turns text into values of the declared type", () => {
    expect(inputValue(" 4 ", { type: "integer" })).toEqual({ value: 4 });
    expect(inputValue("4.5", { type: "integer" }).problem).toContain("whole");
    expect(inputValue("x", { type: "number" }).problem).toContain("not a number");
    expect(inputValue("false", { type: "boolean" })).toEqual({ value: false });
    expect(inputValue('["a"]', { type: "array" })).toEqual({ value: ["a"] });
    expect(inputValue("{", { type: "object" }).problem).toContain("JSON");
    expect(inputValue(" a ", { type: "string" })).toEqual({ value: " a " });
  });

  it("leaves out what is empty, unless it is required", () => {
    const result = valuesOf(
      { a: "", c: "1" },
      {
        a: { type: "string", required: false },
        b: { type: "string" },
        c: { type: "number" },
        d: { type: "string", default: "x" },
      },
    );
    expect(result).toEqual({ values: { c: 1 }, problems: { b: "This input is required." } });
  });

  it("shows defaults as text", () => expect([textOf("a"), textOf([1]), textOf(null)]).toEqual(["a", "[1]", ""]));
});
