/** Where a line begins and ends in a text; lines are counted from 1. */
export function placeOfLine(text: string, line: number): [from: number, to: number] {
  const lines = text.split("\n");
  const before = lines.slice(0, Math.max(0, line - 1));
  const from = before.reduce((sum, part) => sum + part.length + 1, 0);
  return [from, from + (lines[line - 1]?.length ?? 0)];
}
