import { describe, expect, it } from "vitest";
import type { InspectionProblem } from "@/api/schema";
import { cleaned, isTime, readyRemedies, withoutRemedy } from "./remedies";

function problem(remedies: InspectionProblem["remedies"]): InspectionProblem {
  return { code: "x", severity: "error", message: "", field: null, remedies };
}

describe("remedies", () => {
  it("are buttons where the values are known", () => {
    const crs = problem([{ option: "source_crs", value: "EPSG:4326", choices: [] }]);
    expect(readyRemedies(crs)).toEqual([{ label: "Use EPSG:4326", options: { source_crs: "EPSG:4326" } }]);
    const columns = problem([
      { option: "x_column", value: "lon", choices: [] },
      { option: "y_column", value: "lat", choices: [] },
    ]);
    expect(readyRemedies(columns).map((remedy) => remedy.label)).toEqual(["Use x_column lon, y_column lat"]);
    const layers = problem([{ option: "layer", value: "roads", choices: ["roads", "rivers"] }]);
    expect(readyRemedies(layers).map((remedy) => remedy.label)).toEqual(["Use layer roads", "Use layer rivers"]);
    expect(readyRemedies(problem([{ option: "swap_xy", value: true, choices: [] }]))[0]?.label).toBe("Use swap_xy");
  });

  it("ask where only the submitter knows, and want another file where nothing helps", () => {
    const unknown = problem([{ option: "source_crs", value: null, choices: [] }]);
    expect(readyRemedies(unknown)).toEqual([]);
    expect(withoutRemedy(unknown)).toBe(false);
    expect(withoutRemedy(problem([]))).toBe(true);
    expect(isTime(problem([{ option: "datetime", value: null, choices: [] }]))).toBe(true);
    expect(isTime(problem([]))).toBe(false);
  });

  it("call the file what its owner calls it", () => {
    expect(cleaned("'660b/a.zip' does not declare its CRS: give source_crs", "660b/a.zip")).toEqual({
      happened: "The file does not declare its CRS.",
      more: "Give source_crs.",
    });
    expect(cleaned("'bronze/ddh/660b/a.tif' has no coordinate system", "660b/a.tif").happened).toBe(
      "The file has no coordinate system.",
    );
    expect(cleaned("the column 'b/c' was renamed", "a.zip").happened).toBe("The column 'b/c' was renamed.");
  });
});
