import { describe, expect, it } from "vitest";
import { complaint, inputFields, textOf, typedValue } from "./inputs";

const inputs = {
  file_name: { type: "string" },
  keep_z: { type: "boolean", default: false, description: "Whether to keep heights" },
  mixed: { type: "string", default: "refuse", enum: ["refuse", "split"] },
  quality: { type: "integer", required: false, minimum: 1, maximum: 100 },
  scenes: { type: "array" },
};

describe("inputs of a workflow", () => {
  const fields = inputFields(inputs, new Set(["file_name"]));
  const [flag, choice, quality, scenes] = fields;
  if (!flag || !choice || !quality || !scenes) throw new Error("four fields");

  it("become fields by their type", () => {
    expect(fields.map((field) => [field.name, field.kind, field.required])).toEqual([
      ["keep_z", "flag", false],
      ["mixed", "choice", false],
      ["quality", "number", false],
      ["scenes", "json", true],
    ]);
    expect(flag.help).toBe("Keep heights");
    expect(choice.choices).toEqual(["refuse", "split"]);
  });

  it("read and write their values as text", () => {
    expect(typedValue(quality, "85")).toBe(85);
    expect(typedValue(quality, "0")).toBeUndefined();
    expect(typedValue(quality, "x")).toBeUndefined();
    expect(typedValue(quality, " ")).toBeNull();
    expect(complaint(quality)).toBe("Give a number from 1 to 100");
    expect(typedValue(scenes, '["a"]')).toEqual(["a"]);
    expect(typedValue(scenes, "[a")).toBeUndefined();
    expect(textOf(["a"])).toBe('["a"]');
    expect(textOf(null)).toBe("");
  });
});
