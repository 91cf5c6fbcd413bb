import { describe, expect, it } from "vitest";
import { parts, rampColours, sameStyle, savedForm, tileQuery, vectorLayers } from "./style";

const decoded = (query: string) => decodeURIComponent(query.replaceAll("+", " "));

describe("parameters of tiles", () => {
  it("asks for what geomill computes if there is no style", () => {
    expect(tileQuery(null)).toBe("style=automatic");
    expect(tileQuery({ kind: "raster" })).toBe("style=automatic");
  });

  it("names bands, a stretch for each, and a colour map", () => {
    expect(
      decoded(
        tileQuery({
          kind: "raster",
          bidx: [3, 2, 1],
          rescale: [
            [0, 1],
            [2, 3],
            [4, 5],
          ],
        }),
      ),
    ).toBe("bidx=3&bidx=2&bidx=1&rescale=0,1&rescale=2,3&rescale=4,5");
    expect(decoded(tileQuery({ kind: "raster", bidx: [1], rescale: [[-1, 1]], colormap_name: "magma_r" }))).toBe(
      "bidx=1&rescale=-1,1&colormap_name=magma_r",
    );
  });

  it("turns a ramp into steps over all values", () => {
    const ramp = [
      { value: 0, color: "#000000" },
      { value: 48, color: "#ff0000" },
      { value: 96, color: "#ffffff80" },
    ];
    const query = new URLSearchParams(tileQuery({ kind: "raster", ramp }));
    const steps = JSON.parse(query.get("colormap") ?? "");
    expect([query.get("bidx"), query.get("rescale"), steps.length]).toEqual(["1", null, 48]);
    expect(steps[0]).toEqual([
      [-1e300, 2],
      [5, 0, 0, 255],
    ]);
    expect(steps[24]).toEqual([
      [48, 50],
      [255, 5, 5, 252],
    ]);
    expect(steps[47][0]).toEqual([94, 1e300]);
    expect(rampColours(ramp, 3)).toEqual(["rgb(0 0 0 / 100%)", "rgb(255 0 0 / 100%)", "rgb(255 255 255 / 50%)"]);
    expect(tileQuery({ kind: "raster", ramp }).length).toBeLessThan(5000);
  });

  it("turns classes into intervals", () => {
    const query = decoded(tileQuery({ kind: "raster", classes: [{ minimum: 2, maximum: 4, color: "#0a141e80" }] }));
    expect(query).toBe("bidx=1&colormap=[[[2,4],[10,20,30,128]]]");
  });
});

describe("layers of a vector", () => {
  it("are fainter as a whole by the opacity of the style, and of the picture", () => {
    const [areas, outlines] = vectorLayers({ kind: "vector", opacity: 0.5, fill_opacity: 0.8 }, "a", "a-", 0.5);
    expect(areas?.paint).toMatchObject({ "fill-opacity": 0.2 });
    expect(outlines?.paint).toMatchObject({ "line-opacity": 0.25 });
  });

  it("colours classes by value and by range, and leaves others as they are", () => {
    const [areas, outlines] = vectorLayers(
      {
        kind: "vector",
        attribute: "use",
        classes: [
          { value: "forest", color: "#00aa00" },
          { minimum: 3, color: "#aa0000" },
        ],
      },
      "asset-0",
      "asset-0-",
      0.5,
    );
    expect(areas?.id).toBe("asset-0-areas");
    expect(areas?.paint).toEqual({
      "fill-color": [
        "case",
        ["==", ["get", "use"], "forest"],
        "#00aa00",
        ["all", ["==", ["typeof", ["get", "use"]], "number"], [">=", ["to-number", ["get", "use"], 0], 3]],
        "#aa0000",
        "#2a78b8",
      ],
      "fill-opacity": 0.25,
    });
    expect(outlines?.paint).toMatchObject({ "line-color": "#17456b", "line-width": 1.5, "line-opacity": 0.5 });
  });
});

describe("styles", () => {
  it("are the same if they draw the same", () => {
    expect(sameStyle({ kind: "raster", bidx: [1], title: "a" }, { kind: "raster", bidx: [1], ramp: null })).toBe(true);
    expect(sameStyle({ kind: "raster", bidx: [1] }, { kind: "raster", bidx: [2] })).toBe(false);
    expect(sameStyle({ kind: "vector" }, { kind: "vector", fill_color: "#2a78b8", classes: [] })).toBe(true);
    expect(sameStyle(null, { kind: "raster" })).toBe(false);
    expect(sameStyle({ kind: "raster", bidx: [1] }, { kind: "raster", bidx: [1], opacity: 1 })).toBe(true);
    expect(sameStyle({ kind: "raster", bidx: [1] }, { kind: "raster", bidx: [1], opacity: 0.9 })).toBe(false);
    expect(sameStyle({ kind: "vector" }, { kind: "vector", opacity: 0.9 })).toBe(false);
  });

  it("are saved without empty fields", () => {
    expect(savedForm({ kind: "raster", bidx: null, expression: "", rescale: [[0, 1]] })).toEqual({
      kind: "raster",
      rescale: [[0, 1]],
    });
    expect(parts("#0a141e")).toEqual([10, 20, 30, 255]);
  });
});
