import { expect, it } from "vitest";
import type { Platform } from "@/api/schema";
import { changesOf, newPlatform, textsOf, words } from "./platformForm";

const ddh = {
  platform_id: "ddh",
  display_name: "Data Hub",
  required_refs: ["dataset_id"],
  optional_refs: ["part"],
  workflows: null,
  containers: [],
  is_active: true,
  updated_at: "2026-11-19T00:00:00Z",
} as unknown as Platform;

it("reads lists with commas and spaces", () => {
  expect(words(" a, b  c,,d ")).toEqual(["a", "b", "c", "d"]);
});

it("sends only what was changed, and when it was read", () => {
  const texts = { ...textsOf(ddh), display_name: "Hub ", is_active: false };
  expect(changesOf(texts, ddh)).toEqual({
    display_name: "Hub",
    is_active: false,
    expected_updated_at: "2026-11-19T00:00:00Z",
  });
  expect(changesOf({ ...textsOf(ddh), workflows: "a b" }, ddh).workflows).toEqual(["a", "b"]);
  expect(
    changesOf({ ...textsOf({ ...ddh, workflows: ["a"] }), workflows: "" }, { ...ddh, workflows: ["a"] }).workflows,
  ).toBeNull();
});

it("makes a platform of a form", () => {
  const texts = { ...textsOf(null), platform_id: "hub ", display_name: "Hub", required_refs: "item_id layer" };
  expect(newPlatform(texts)).toMatchObject({
    platform_id: "hub",
    required_refs: ["item_id", "layer"],
    workflows: null,
    is_active: true,
  });
});
