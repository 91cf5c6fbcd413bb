/** Figures: grouped thousands, and units that keep three digits. */

const grouped = new Intl.NumberFormat("en-GB");

/** `61,930`; a dash for a figure that is not known. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : grouped.format(value);
}

/** `1.5 %`; whole percents from ten. */
export function percent(fraction: number | null | undefined): string {
  if (fraction === null || fraction === undefined || !Number.isFinite(fraction)) return "–";
  const value = fraction * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value < 10 && value % 1 !== 0 ? value.toFixed(1) : Math.round(value)} %`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** `3.6 TB`: powers of ten, as disks are sold and as GDAL and browsers show files. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let amount = value;
  let unit = 0;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && amount < 9.95 ? 1 : 0;
  return `${amount.toFixed(digits)} ${UNITS[unit]}`;
}

/** `1 job`, `3 jobs`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** The first 13 characters of an id; the whole id is copied and shown on hover. */
export function shortId(id: string): string {
  return id.slice(0, 13);
}
