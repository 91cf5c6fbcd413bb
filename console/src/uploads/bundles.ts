/** Which of the files that were dropped together belong together. */

import { zipped } from "./zip";

/** Files that become one submission: a main file, and those that are read beside it. */
export interface Bundle {
  main: File;
  companions: File[];
}

export interface Sorted {
  bundles: Bundle[];
  /** Why the other files are not taken, each as a sentence. */
  refused: string[];
}

const SHAPE_PARTS = /\.(shp|shx|dbf|prj|cpg|qix|sbn|sbx|shp\.xml)$/i;
const NEEDED = ["shp", "shx", "dbf"];
const STYLES = /\.(qml|sld)$/i;
const WORLD = /\.(tfw|tifw|pgw|pngw|jgw|jpgw|jpegw|j2w|wld)$/i;
const ATTRIBUTES = /\.aux\.xml$/i;
const RASTERS = /\.(tiff?|jp2|png|jpe?g)$/i;

export function isRaster(name: string): boolean {
  return RASTERS.test(name);
}

function isCompanion(name: string): boolean {
  return STYLES.test(name) || WORLD.test(name) || ATTRIBUTES.test(name);
}

function stemOf(name: string): string {
  return name
    .replace(/\.(shp\.xml|aux\.xml)$/i, "")
    .replace(/\.[^.]+$/, "")
    .toLowerCase();
}

/** The file that a companion describes. `dem.tif.aux.xml` names it; others have its stem. */
function isBeside(companion: File, main: File): boolean {
  if (ATTRIBUTES.test(companion.name)) {
    const described = companion.name.replace(ATTRIBUTES, "").toLowerCase();
    return described === main.name.toLowerCase();
  }
  if (WORLD.test(companion.name) && !isRaster(main.name)) return false;
  return stemOf(companion.name) === stemOf(main.name);
}

/** Sorts files into bundles. The parts of a shapefile are packed into a ZIP file. */
export async function sorted(files: readonly File[]): Promise<Sorted> {
  const refused = files
    .filter((file) => file.size === 0)
    .map((file) => `${file.name} is empty, or a folder. Drop the files themselves.`);
  const full = files.filter((file) => file.size > 0);
  const shapes = await shapefiles(full);
  const loose = full.filter((file) => !shapes.taken.has(file));
  const mains = loose.filter((file) => !isCompanion(file.name));
  const bundles: Bundle[] = mains.map((main) => ({ main, companions: [] }));
  for (const companion of loose.filter((file) => isCompanion(file.name))) {
    const owner = bundles.find((bundle) => isBeside(companion, bundle.main));
    if (owner) owner.companions.push(companion);
    else refused.push(`${companion.name} describes another file. Drop both together.`);
  }
  return {
    bundles: [...shapes.archives.map((main) => ({ main, companions: [] })), ...bundles],
    refused: [...refused, ...shapes.refused],
  };
}

/** Shapefiles as ZIP files, with the styles beside them. */
async function shapefiles(files: readonly File[]) {
  const taken = new Set<File>();
  const archives: File[] = [];
  const refused: string[] = [];
  const stems = new Set(files.filter((file) => SHAPE_PARTS.test(file.name)).map((file) => stemOf(file.name)));
  for (const stem of stems) {
    const parts = files.filter(
      (file) => stemOf(file.name) === stem && (SHAPE_PARTS.test(file.name) || STYLES.test(file.name)),
    );
    const missing = NEEDED.filter((ending) => !parts.some((part) => part.name.toLowerCase().endsWith(`.${ending}`)));
    const first = parts[0]?.name.replace(SHAPE_PARTS, "") ?? stem;
    for (const part of parts) if (missing.length === 0 || SHAPE_PARTS.test(part.name)) taken.add(part);
    if (missing.length > 0) {
      const names = missing.map((ending) => `${first}.${ending}`).join(" and ");
      refused.push(`The shapefile ${first} is not whole: drop ${names} together with the rest.`);
    } else {
      try {
        archives.push(await zipped([...parts].sort(byName), `${first}.zip`));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        refused.push(error.message);
      }
    }
  }
  return { taken, archives, refused };
}

function byName(one: File, other: File): number {
  return one.name < other.name ? -1 : 1;
}
