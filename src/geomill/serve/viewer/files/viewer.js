// Shows one layer, which the page describes. Tiles come from this server, with the ticket of the page's own link.
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
  if (layer.scenes) return;
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
  const layers = layer.layers.map((drawn) => ({ ...drawn, id: `${drawn.id}${number}`, source, "source-layer": name }));
  layers.forEach((drawn) => map.addLayer(drawn));
  map.on("click", layers.map((drawn) => drawn.id), (event) => {
    const properties = Object.entries(event.features[0].properties);
    told.textContent = properties.map(([key, value]) => `${key}: ${value}`).join("\n");
  });
}

// Lists the scenes of a series: all of them, or those at the place that was clicked.
function listScenes(features, more) {
  const entries = features.map(({ properties }) => {
    const entry = document.createElement("li");
    const link = document.createElement("a");
    link.href = properties.viewer;
    link.textContent = properties.name;
    entry.append(link);
    return entry;
  });
  if (more > 0) {
    const entry = document.createElement("li");
    entry.textContent = `and ${more} more: click on the map`;
    entries.push(entry);
  }
  document.getElementById("scenes").replaceChildren(...entries);
}

const MOST_LISTED = 50;

async function addScenes(address) {
  const features = [];
  for (let next = address; next;) {
    const page = await (await fetch(next)).json();
    features.push(...page.features);
    next = page.links?.find((link) => link.rel === "next")?.href;
  }
  const show = (scenes) => listScenes(scenes.slice(0, MOST_LISTED), scenes.length - MOST_LISTED);
  map.addSource("scenes", { type: "geojson", data: { type: "FeatureCollection", features } });
  map.addLayer({ id: "places", type: "fill", source: "scenes", paint: { "fill-opacity": 0 } });
  map.addLayer({ id: "outlines", type: "line", source: "scenes", paint: { "line-color": "#17456b", "line-width": 1 } });
  show(features);
  map.on("click", (event) => {
    const names = new Set(map.queryRenderedFeatures(event.point, { layers: ["places"] }).map((scene) => scene.properties.name));
    show(names.size ? features.filter((scene) => names.has(scene.properties.name)) : features);
  });
}

map.on("load", async () => {
  const answers = await Promise.all([layer.tilejson].flat().map((address) => fetch(address)));
  const refused = answers.find((answer) => !answer.ok);
  if (refused || (!answers.length && !layer.scenes)) {
    told.textContent = `The layer could not be loaded: ${refused ? refused.status : "it has no table"}`;
    return;
  }
  const documents = await Promise.all(answers.map((answer) => answer.json()));
  fit(layer.bbox || documents[0]?.bounds || [-180, -80, 180, 80]);
  documents.forEach(layer.kind === "raster" ? addRaster : addVector);
  if (layer.scenes) await addScenes(layer.scenes);
  map.once("idle", () => { document.body.dataset.drawn = "yes"; });
});
