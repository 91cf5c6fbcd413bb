/** Inputs of a workflow as fields of a form: values to text, and text back to values. */

export interface InputDefinition {
  type?: string;
  enum?: unknown[];
  description?: string;
  default?: unknown;
}

export function asText(value: unknown, type: string): string {
  if (value === null || value === undefined) return "";
  return type === "string" && typeof value === "string" ? value : JSON.stringify(value, null, isLong(type) ? 1 : 0);
}

export function isLong(type: string): boolean {
  return type === "array" || type === "object";
}

/** The value that a text means, or why it means none. An empty text is null, except of a string. */
export function parsed(text: string, type: string): { value: unknown } | { wrong: string } {
  if (type === "string") return { value: text };
  const trimmed = text.trim();
  if (trimmed === "") return { value: null };
  if (type === "number" || type === "integer") {
    const value = Number(trimmed);
    if (!Number.isFinite(value)) return { wrong: "a number is needed" };
    if (type === "integer" && !Number.isInteger(value)) return { wrong: "a whole number is needed" };
    return { value };
  }
  if (type === "boolean")
    return trimmed === "true" || trimmed === "false"
      ? { value: trimmed === "true" }
      : { wrong: "true or false is needed" };
  try {
    return { value: JSON.parse(trimmed) };
  } catch {
    return {
      wrong: type === "array" ? 'a list is needed, such as [1, "two"]' : 'an object is needed, such as {"a": 1}',
    };
  }
}

/** The inputs whose text differs from what the job had, with what is wrong with any of them. */
export function changes(
  texts: Record<string, string>,
  before: Record<string, unknown>,
  definitions: Record<string, InputDefinition>,
): { changed: Record<string, unknown>; wrong: Record<string, string> } {
  const changed: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const [name, text] of Object.entries(texts)) {
    const type = definitions[name]?.type ?? "string";
    if (text === asText(before[name], type)) continue;
    const result = parsed(text, type);
    if ("wrong" in result) wrong[name] = result.wrong;
    else changed[name] = result.value;
  }
  return { changed, wrong };
}
