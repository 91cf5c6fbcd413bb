import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sorted } from "./bundles";
import { zipped } from "./zip";

const file = (name: string, text = name) => new File([text], name, { lastModified: 1_000 });

async function names(...given: string[]) {
  const { bundles, refused } = await sorted(given.map((name) => file(name)));
  return {
    bundles: bundles.map((bundle) => [bundle.main.name, ...bundle.companions.map((entry) => entry.name)]),
    refused,
  };
}

describe("files that were dropped together", () => {
  it("are one submission each if nothing ties them", async () => {
    expect(await names("a.tif", "b.gpkg")).toEqual({ bundles: [["a.tif"], ["b.gpkg"]], refused: [] });
  });

  it("are one if they are parts of a shapefile, whatever the case of their names", async () => {
    const { bundles, refused } = await names("Roads.shp", "Roads.SHX", "roads.dbf", "Roads.prj", "roads.qml", "x.tif");
    expect(bundles).toEqual([["Roads.zip"], ["x.tif"]]);
    expect(refused).toEqual([]);
  });

  it("are refused as a shapefile that lacks a part, and the part is named", async () => {
    const { bundles, refused } = await names("roads.shp", "roads.dbf", "other.gpkg");
    expect(bundles).toEqual([["other.gpkg"]]);
    expect(refused).toEqual(["The shapefile roads is not whole: drop roads.shx together with the rest."]);
  });

  it("are one if they describe a raster", async () => {
    const { bundles } = await names("dem.tif", "dem.tfw", "dem.tif.aux.xml", "DEM.qml", "map.png", "map.pgw");
    expect(bundles).toEqual([
      ["dem.tif", "dem.tfw", "dem.tif.aux.xml", "DEM.qml"],
      ["map.png", "map.pgw"],
    ]);
  });

  it("are refused if what they describe is missing, or not theirs", async () => {
    expect((await names("dem.tfw")).refused).toEqual(["dem.tfw describes another file. Drop both together."]);
    expect((await names("dem.gpkg", "dem.tfw")).bundles).toEqual([["dem.gpkg"]]);
    expect((await names("dem.tif", "other.tif.aux.xml")).refused).toHaveLength(1);
    expect((await sorted([new File([], "empty.tif")])).refused[0]).toMatch(/^empty\.tif is empty/);
  });

  it("are packed so that others can read them, always into the same bytes", async () => {
    const parts = [file("ü.shp", "shapes"), file("ü.dbf", "x".repeat(70_000))];
    const [archive, again] = await Promise.all([zipped(parts, "ü.zip"), zipped(parts, "ü.zip")]);
    expect([archive.name, archive.lastModified, archive.size]).toEqual(["ü.zip", 1_000, again.size]);
    const path = join(mkdtempSync(join(tmpdir(), "zip-")), "a.zip");
    writeFileSync(path, Buffer.from(await archive.arrayBuffer()));
    const script =
      "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); print(z.testzip(), *[(i.filename, i.file_size) for i in z.infolist()])";
    const answer = execFileSync("python3", ["-c", script, path], {
      encoding: "utf8",
      env: { ...process.env, PYTHONIOENCODING: "utf-8" },
    });
    expect(answer.trim()).toBe("None ('ü.shp', 6) ('ü.dbf', 70000)");
  });
});
