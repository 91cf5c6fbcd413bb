/** The number of an item as people write it: `2417`, `2,417`, `item 2417`, `tiles[2417]`. Null if there is no such item. */
export function itemNumber(text: string, total: number): number | null {
  const digits = /(\d[\d,.\s]*)\]?\s*$/.exec(text.trim())?.[1]?.replace(/[,.\s]/g, "");
  if (!digits) return null;
  const index = Number(digits);
  return Number.isSafeInteger(index) && index < total ? index : null;
}
