import { describe, expect, it } from "vitest";
import { ApiProblem, asProblem, problemOf, wording } from "./problem";

describe("problems", () => {
  it("reads a problem document", () => {
    const document = {
      code: "conflict",
      detail: "r5 came; look at it",
      errors: [{ field: "body.name", message: "too long", hint: "64" }],
    };
    const problem = problemOf(new Response("", { status: 409, headers: { "Retry-After": "5" } }), document);
    expect(problem).toMatchObject({ status: 409, code: "conflict", retryAfter: 5, passes: false });
    expect(problem.of("name")).toBe("too long: 64");
    expect(problem.of("other")).toBeUndefined();
    expect(wording(problem)).toEqual({ happened: "R5 came.", remedy: "Look at it." });
  });

  it("makes one of whatever a proxy answers", () => {
    expect(problemOf(new Response("", { status: 502 }), "<html>")).toMatchObject({ status: 502, code: "http_502" });
    expect(asProblem(new TypeError("Failed to fetch")).passes).toBe(true);
    expect(asProblem(new ApiProblem(503, "x", "y")).code).toBe("x");
  });
});
