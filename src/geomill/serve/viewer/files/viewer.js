// Shows one layer. What it is stands in the page; tiles come from this server, with the ticket of the page's own link.
"use strict";

const layer = JSON.parse(document.getElementById("layer").textContent);
const told = document.getElementById("told");

const map = new maplibregl.Map({
  container: "map",
  style: { version: 8, sources: {}, layers: [{ id: "ground", type: "background", paint: { "background-color": "#dfe6ea" } }] },
  attributionControl: false,
  canvasContextAttributes: { preserveDrawingBuffer: true },
});
map.addControl(new maplibregl.NavigationControl());
map.addControl(new maplibregl.ScaleControl());

function fit(bounds) {
  let [west, south, east, north] = bounds;
  if (west > east) east += 360;
  const inside = (latitude) => Math.max(-85, Math.min(85, latitude));
  map.fitBounds([[west, inside(south)], [east, inside(north)]], { padding: 24, animate: false });
}

function addRaster(tilejson) {
  map.addSource("asset", { type: "raster", tiles: tilejson.tiles, tileSize: 256, bounds: tilejson.bounds,
    minzoom: Math.max(0, tilejson.minzoom - 1), maxzoom: tilejson.maxzoom });
  map.addLayer({ id: "raster", type: "raster", source: "asset", paint: { "raster-fade-duration": 0 } });
  map.on("click", async (event) => {
    const { lng, lat } = event.lngLat.wrap();
    const answer = await fetch(`${layer.point}${lng},${lat}${layer.query}`);
    const values = answer.ok ? (await answer.json()).values : ["no data"];
    told.textContent = `${lng.toFixed(5)}, ${lat.toFixed(5)}: ${values.map((value) => (typeof value === "number" ? Number(value.toPrecision(6)) : value)).join(", ")}`;
  });
}

function addVector(tilejson, number) {
  const name = tilejson.vector_layers[0].id;
  const source = `asset${number}`;
  map.addSource(source, { type: "vector", tiles: tilejson.tiles, minzoom: tilejson.minzoom, maxzoom: tilejson.maxzoom });
  const common = { source, "source-layer": name };
  map.addLayer({ id: `areas${number}`, type: "fill", ...common, filter: ["==", ["geometry-type"], "Polygon"],
    paint: { "fill-color": "#2a78b8", "fill-opacity": 0.5, "fill-outline-color": "#17456b" } });
  map.addLayer({ id: `lines${number}`, type: "line", ...common, filter: ["==", ["geometry-type"], "LineString"],
    paint: { "line-color": "#17456b", "line-width": 1.5 } });
  map.addLayer({ id: `points${number}`, type: "circle", ...common, filter: ["==", ["geometry-type"], "Point"],
    paint: { "circle-color": "#2a78b8", "circle-radius": 4, "circle-stroke-color": "#fff", "circle-stroke-width": 1 } });
  map.on("click", [`areas${number}`, `lines${number}`, `points${number}`], (event) => {
    const properties = Object.entries(event.features[0].properties);
    told.textContent = properties.map(([key, value]) => `${key}: ${value}`).join("\n");
  });
}

map.on("load", async () => {
  const answers = await Promise.all([layer.tilejson].flat().map((address) => fetch(address)));
  const refused = answers.find((answer) => !answer.ok);
  if (refused || !answers.length) {
    told.textContent = `The layer could not be loaded: ${refused ? refused.status : "it has no table"}`;
    return;
  }
  const documents = await Promise.all(answers.map((answer) => answer.json()));
  fit(layer.bbox || documents[0].bounds);
  documents.forEach(layer.kind === "raster" ? addRaster : addVector);
  map.once("idle", () => { document.body.dataset.drawn = "yes"; });
});
