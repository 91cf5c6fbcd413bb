import { expect, it } from "vitest";
import { isFiltered, queryOf } from "./filters";

it("asks for what the address says, and leaves out what the gateway would refuse", () => {
  const values = new URLSearchParams("text=%20lombok&data_type=raster&approval_state=maybe&deleted=true&tab=x");
  expect(queryOf(values)).toEqual({ text: "lombok", data_type: "raster", deleted: true });
  expect(isFiltered(values)).toBe(true);
  expect(isFiltered(new URLSearchParams("at=1,2,3&deleted=false&text="))).toBe(false);
});
