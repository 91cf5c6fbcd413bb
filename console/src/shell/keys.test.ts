import { describe, expect, it } from "vitest";
import { nameOf, signs } from "./keys";

const press = (key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "shiftKey" | "altKey", boolean>> = {}) =>
  nameOf({ key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...held });

describe("keys", () => {
  it("names a key as bindings write it", () => {
    expect(press("j")).toBe("j");
    expect(press("J")).toBe("j"); // caps lock
    expect(press("X", { shiftKey: true })).toBe("Shift+X");
    expect(press("?", { shiftKey: true })).toBe("?");
    expect(press("Enter", { metaKey: true })).toBe("Ctrl+Enter");
    expect(press("ArrowDown")).toBe("ArrowDown");
  });

  it("shows keys as signs", () => {
    expect(signs("g o")).toEqual(["G", "O"]);
    expect(signs("Shift+X")).toEqual(["Shift", "X"]);
    expect(signs("ArrowDown")).toEqual(["↓"]);
  });
});
