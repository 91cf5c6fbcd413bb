/** The scale of a web map: it depends on zoom and latitude. */

const EQUATOR = 40_075_016.686;
const TILE = 512;
/** The size of a pixel by OGC, in metres. */
const PIXEL = 0.000_28;
const WIDEST = 110;

export function metresPerPixel(zoom: number, latitude: number): number {
  return (EQUATOR * Math.cos((latitude * Math.PI) / 180)) / (TILE * 2 ** zoom);
}

/** `1 : 560,000`, with two digits that matter. */
export function scaleNumber(zoom: number, latitude: number): string {
  const exact = metresPerPixel(zoom, latitude) / PIXEL;
  return `1 : ${Number(exact.toPrecision(2)).toLocaleString("en-GB")}`;
}

/** A length of 1, 2 or 5 times a power of ten that is at most 110 pixels wide. */
export function scaleBar(zoom: number, latitude: number): { width: number; text: string } {
  const perPixel = metresPerPixel(zoom, latitude);
  const most = perPixel * WIDEST;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = power * (most / power >= 5 ? 5 : most / power >= 2 ? 2 : 1);
  const text = metres >= 1000 ? `${metres / 1000} km` : metres >= 1 ? `${metres} m` : `${Math.round(metres * 100)} cm`;
  return { width: Math.round(metres / perPixel), text };
}
