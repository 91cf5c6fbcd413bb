import { describe, expect, it } from "vitest";
import { parted, tracebackOf } from "./traceback";

const text = `something went wrong before
the handler raised ZeroDivisionError, reference 1f
Traceback (most recent call last):
  File "handlers.py", line 3, in divide
    return a / b
           ~~^~~
ZeroDivisionError: division by zero`;
const lines = text.split("\n").map((message) => ({ attempt: 1, message }));

describe("a traceback", () => {
  it("is put together from the lines of its attempt", () => {
    const others = [...lines, { attempt: 2, message: "nothing" }];
    expect(tracebackOf(others, 1)).toBe(text.split("\n").slice(2).join("\n"));
    expect(tracebackOf(others, 2)).toBeNull();
  });

  it("has that of its cause", () => {
    const cause = ["the handler raised B", "Traceback (most recent call last):", "  File x", "A: one", ""];
    const chain = [...cause, "During handling of the above exception", "Traceback (most recent call last):", "B: two"];
    const found = tracebackOf(
      chain.map((message) => ({ attempt: 1, message })),
      1,
    );
    expect(found?.split("\n")).toEqual(chain.slice(1));
  });

  it("ends with the error", () => {
    const { frames, error } = parted(tracebackOf(lines, 1) ?? "");
    expect(error).toBe("ZeroDivisionError: division by zero");
    expect(frames.endsWith("~~^~~")).toBe(true);
  });

  it("keeps an error of several lines together", () =>
    expect(parted("Traceback\n  File x\nA: one\ntwo\n").error).toBe("A: one\ntwo"));
});
