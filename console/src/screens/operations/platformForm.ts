/** The form of a platform: lists are typed as words. */

import type { NewPlatform, Platform, PlatformChanges } from "@/api/schema";

export interface PlatformTexts {
  platform_id: string;
  display_name: string;
  description: string;
  required_refs: string;
  optional_refs: string;
  workflows: string;
  containers: string;
  is_active: boolean;
}

export function textsOf(platform: Platform | null): PlatformTexts {
  return {
    platform_id: platform?.platform_id ?? "",
    display_name: platform?.display_name ?? "",
    description: platform?.description ?? "",
    required_refs: (platform?.required_refs ?? []).join(", "),
    optional_refs: (platform?.optional_refs ?? []).join(", "),
    workflows: (platform?.workflows ?? []).join(", "),
    containers: (platform?.containers ?? []).join(", "),
    is_active: platform?.is_active ?? true,
  };
}

/** Words with commas or spaces between them. */
export function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

function shared(texts: PlatformTexts) {
  return {
    display_name: texts.display_name.trim(),
    description: texts.description.trim() || null,
    optional_refs: words(texts.optional_refs),
    workflows: texts.workflows.trim() ? words(texts.workflows) : null,
    containers: words(texts.containers),
    is_active: texts.is_active,
  };
}

export function newPlatform(texts: PlatformTexts): NewPlatform {
  return { ...shared(texts), platform_id: texts.platform_id.trim(), required_refs: words(texts.required_refs) };
}

/** What was changed, and nothing else: two people may edit different fields. */
export function changesOf(texts: PlatformTexts, platform: Platform): PlatformChanges {
  const before = textsOf(platform);
  const all = shared(texts);
  const names = Object.keys(all) as (keyof typeof all)[];
  const changed = names.filter((name) => texts[name] !== before[name]).map((name) => [name, all[name]]);
  return { ...Object.fromEntries(changed), expected_updated_at: platform.updated_at ?? null };
}
