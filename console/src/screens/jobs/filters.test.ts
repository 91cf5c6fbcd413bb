import { describe, expect, it } from "vitest";
import { filtersOf, typed } from "./filters";

describe("filters of jobs", () => {
  it("reads those of the address that the API knows", () => {
    const address = new URLSearchParams(
      "status=failed&status=odd&workflow_id=w&created_from=x&parked=true&paused=false&tab=1",
    );
    expect(filtersOf(address)).toEqual({ status: ["failed"], workflow_id: "w", parked: true, paused: false });
  });

  it("understands what is typed", () => {
    expect(typed("hello_world", ["hello_world"])).toEqual({ workflow_id: "hello_world" });
    expect(typed("asset: a1", [])).toEqual({ asset_id: "a1" });
    expect(typed("error:disk: full", [])).toEqual({ error: "disk: full" });
    expect(typed("01a1ee05-1a51-75a7-9d9a-9cb4620ef50f", [])).toEqual({ job: "01a1ee05-1a51-75a7-9d9a-9cb4620ef50f" });
    expect(typed("storage_unavailable", [])).toEqual({ error: "storage_unavailable" });
    expect([typed(" ", []), typed("x", [])]).toEqual([null, null]);
  });
});
