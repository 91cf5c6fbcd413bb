import { expect, it } from "vitest";
import { itemNumber } from "./itemNumber";

it("reads the number of an item however it is written", () => {
  for (const text of ["2417", " 2,417 ", "item 2417", "tiles[2417]"]) expect(itemNumber(text, 10_000)).toBe(2417);
  for (const text of ["", "tiles", "10000", "-"]) expect(itemNumber(text, 10_000)).toBeNull();
});
