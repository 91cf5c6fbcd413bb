/** Differences between two lists of features: which came, which went, which changed. */

import type { Feature, FeatureCollection } from "geojson";

export interface FeatureDifferences {
  added: Feature[];
  removed: Feature[];
  /** As they are now, and as they were. */
  changed: Feature[];
  changedFrom: Feature[];
}

/** Numbers that the database gives to rows: another revision has others. */
const ROW_NUMBERS = new Set(["gid", "fid", "ogc_fid"]);

/** Compares features by a column that identifies them, or by their place if there is none. Only columns that both have
 * count: a new column does not change every feature. */
export function compareFeatures(before: Feature[], after: Feature[], idColumn?: string | null): FeatureDifferences {
  const columns = commonColumns(before, after);
  const key = idColumn && columns.includes(idColumn) ? idColumn : columns.find((name) => isKey(name, before, after));
  const nameOf = (feature: Feature) =>
    key ? JSON.stringify(feature.properties?.[key]) : JSON.stringify(feature.geometry);
  const old = grouped(before, nameOf);
  const result: FeatureDifferences = { added: [], removed: [], changed: [], changedFrom: [] };
  for (const feature of after) {
    const same = old.get(nameOf(feature));
    const twin = same?.find((entry) => equal(entry, feature, columns)) ?? same?.[0];
    if (!same || !twin) result.added.push(feature);
    else {
      same.splice(same.indexOf(twin), 1);
      if (!equal(twin, feature, columns)) {
        result.changed.push(feature);
        result.changedFrom.push(twin);
      }
    }
  }
  result.removed = [...old.values()].flat();
  return result;
}

function commonColumns(before: Feature[], after: Feature[]): string[] {
  const names = new Set(Object.keys(before[0]?.properties ?? {}));
  const common = Object.keys(after[0]?.properties ?? {}).filter((name) => names.has(name));
  return common.filter((name) => !ROW_NUMBERS.has(name));
}

/** Whether a column has another value in each feature, on both sides. */
function isKey(name: string, before: Feature[], after: Feature[]): boolean {
  return [before, after].every((features) => {
    const values = new Set(features.map((feature) => JSON.stringify(feature.properties?.[name])));
    return values.size === features.length && !values.has("null") && features.length > 1;
  });
}

function grouped(features: Feature[], nameOf: (feature: Feature) => string): Map<string, Feature[]> {
  const groups = new Map<string, Feature[]>();
  for (const feature of features) {
    const name = nameOf(feature);
    const group = groups.get(name);
    if (group) group.push(feature);
    else groups.set(name, [feature]);
  }
  return groups;
}

function equal(one: Feature, other: Feature, columns: readonly string[]): boolean {
  return (
    columns.every((name) => JSON.stringify(one.properties?.[name]) === JSON.stringify(other.properties?.[name])) &&
    JSON.stringify(one.geometry) === JSON.stringify(other.geometry)
  );
}

export function collection(features: Feature[], kind: string): FeatureCollection {
  const marked = features.map((feature) => ({ ...feature, properties: { kind } }));
  return { type: "FeatureCollection", features: marked };
}
