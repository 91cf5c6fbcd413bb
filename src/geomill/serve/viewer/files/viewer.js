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

function addVector(tilejson) {
  const name = tilejson.vector_layers[0].id;
  map.addSource("asset", { type: "vector", tiles: tilejson.tiles, minzoom: tilejson.minzoom, maxzoom: tilejson.maxzoom });
  const common = { source: "asset", "source-layer": name };
  map.addLayer({ id: "areas", type: "fill", ...common, filter: ["==", ["geometry-type"], "Polygon"],
    paint: { "fill-color": "#2a78b8", "fill-opacity": 0.5, "fill-outline-color": "#17456b" } });
  map.addLayer({ id: "lines", type: "line", ...common, filter: ["==", ["geometry-type"], "LineString"],
    paint: { "line-color": "#17456b", "line-width": 1.5 } });
  map.addLayer({ id: "points", type: "circle", ...common, filter: ["==", ["geometry-type"], "Point"],
    paint: { "circle-color": "#2a78b8", "circle-radius": 4, "circle-stroke-color": "#fff", "circle-stroke-width": 1 } });
  map.on("click", ["areas", "lines", "points"], (event) => {
    const properties = Object.entries(event.features[0].properties);
    told.textContent = properties.map(([key, value]) => `${key}: ${value}`).join("\n");
  });
}

map.on("load", async () => {
  const answer = await fetch(layer.tilejson);
  if (!answer.ok) {
    told.textContent = `The layer could not be loaded: ${answer.status}`;
    return;
  }
  const tilejson = await answer.json();
  fit(layer.bbox || tilejson.bounds);
  (layer.kind === "raster" ? addRaster : addVector)(tilejson);
  map.once("idle", () => { document.body.dataset.drawn = "yes"; });
});
