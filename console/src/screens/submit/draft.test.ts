import { describe, expect, it } from "vitest";
import { newDraft, obstacle, optionsOf, submissionOf, suggestedRefs, timesOf } from "./draft";

const source = { container_name: "ddh", file_name: "x/a.gpkg" };

describe("a draft", () => {
  it("becomes a submission without empty fields", () => {
    const draft = { ...newDraft("ddh"), refs: { dataset_id: " a " }, title: "Roads", keywords: "road, , osm" };
    const body = submissionOf({ ...draft, options: { layer: "", geoparquet: true } }, { data_type: "vector" }, source);
    expect(body).toMatchObject({
      platform_refs: { dataset_id: "a" },
      metadata: { title: "Roads", keywords: ["road", "osm"] },
      processing_options: { geoparquet: true },
    });
    expect(body).not.toHaveProperty("workflow_id");
    expect(body).not.toHaveProperty("clearance_level");
    expect(body.idempotency_key).toMatch(/^[0-9a-f]{32}$/);
  });

  it("of a collection names all files and the workflow that takes them", () => {
    const draft = { ...newDraft("ddh"), members: ["b"] };
    const body = submissionOf(draft, { data_type: "raster" }, source, [{ file_name: "y/b.tif" }]);
    expect([body.file_name, body.workflow_id]).toEqual([["x/a.gpkg", "y/b.tif"], "process_raster_collection"]);
    expect(submissionOf(newDraft("ddh"), { data_type: "raster" }, source).file_name).toBe("x/a.gpkg");
  });

  it("reads one date or two", () => {
    expect(timesOf("")).toEqual({});
    expect(timesOf("2026-06-30")).toEqual({ datetime: "2026-06-30" });
    expect(timesOf("2026-01-01 / 2026-06-30")).toEqual({ start_datetime: "2026-01-01", end_datetime: "2026-06-30" });
    expect(timesOf("2026-06-30/2026-01-01")).toBeNull();
    expect(timesOf("June")).toBeNull();
    expect(optionsOf({ ...newDraft("ddh"), taken: "2026-06-30" })).toEqual({ datetime: "2026-06-30" });
  });

  it("says what is in the way, the problems of the file first", () => {
    const draft = { ...newDraft("ddh"), refs: { dataset_id: "a" } };
    const error = { code: "no_crs", severity: "error" as const, message: "" };
    expect(obstacle(draft, ["dataset_id"], undefined, false)).toMatch(/looked into/);
    expect(obstacle(draft, ["dataset_id"], [error], false)).toBe("Solve 1 problem first: no crs.");
    expect(obstacle(draft, ["dataset_id", "version_id"], [], false)).toBe("Fill in version_id.");
    expect(obstacle(draft, ["dataset_id"], [], true)).toMatch(/next revision/);
    expect(obstacle({ ...draft, overwrite: true }, ["dataset_id"], [], true)).toBeNull();
  });

  it("takes name and year from the file", () => {
    const names = ["dataset_id", "resource_id", "version_id"];
    expect(suggestedRefs("x/Kecamatan_2026.zip", names)).toEqual({ resource_id: "kecamatan", version_id: "2026" });
    expect(suggestedRefs("roads.gpkg", names)).toEqual({ resource_id: "roads", version_id: "v1" });
    expect(suggestedRefs("roads.gpkg", ["item_id"])).toEqual({});
  });
});
