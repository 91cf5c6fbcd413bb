/** Inputs of workflows as forms show them. They come as the workflow file declares them. */

export interface InputField {
  name: string;
  kind: "text" | "number" | "flag" | "choice" | "json";
  /** What the field is for, as a sentence or as the words of a checkbox. */
  help: string | null;
  required: boolean;
  fallback: unknown;
  choices: string[];
  minimum: number | null;
  maximum: number | null;
}

const KINDS: Partial<Record<string, InputField["kind"]>> = {
  string: "text",
  integer: "number",
  number: "number",
  boolean: "flag",
};

type Declared = Record<string, unknown>;

/** The fields of a workflow's `inputs`, in their order, without those that are set by somebody else. */
export function inputFields(inputs: Record<string, unknown>, without: ReadonlySet<string> = new Set()): InputField[] {
  return Object.entries(inputs)
    .filter(([name]) => !without.has(name))
    .map(([name, value]) => fieldOf(name, (typeof value === "object" && value !== null ? value : {}) as Declared));
}

function fieldOf(name: string, declared: Declared): InputField {
  const choices = Array.isArray(declared.enum) ? declared.enum.map(String) : [];
  const number = (value: unknown) => (typeof value === "number" ? value : null);
  const kind = choices.length > 0 ? "choice" : (KINDS[String(declared.type)] ?? "json");
  return {
    name,
    kind,
    help: helpOf(declared.description, kind),
    required: declared.required !== false && declared.default === undefined,
    fallback: declared.default ?? null,
    choices,
    minimum: number(declared.minimum),
    maximum: number(declared.maximum),
  };
}

/** "Whether to keep heights" becomes "Keep heights" beside a checkbox. */
function helpOf(description: unknown, kind: InputField["kind"]): string | null {
  if (typeof description !== "string" || description === "") return null;
  const words = kind === "flag" ? description.replace(/^whether to /i, "") : description;
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The value of a typed text, or undefined if it does not fit the field. An empty text is null: no value. */
export function typedValue(field: InputField, text: string): unknown {
  if (text.trim() === "") return null;
  if (field.kind === "number") {
    const value = Number(text);
    const low = field.minimum !== null && value < field.minimum;
    const high = field.maximum !== null && value > field.maximum;
    return Number.isFinite(value) && !low && !high ? value : undefined;
  }
  if (field.kind !== "json") return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** What is wrong with a text, in words. */
export function complaint(field: InputField): string {
  if (field.kind === "json") return 'Write JSON, such as ["a", "b"]';
  const { minimum, maximum } = field;
  if (minimum !== null && maximum !== null) return `Give a number from ${minimum} to ${maximum}`;
  return minimum !== null ? `Give a number from ${minimum} on` : "Give a number";
}
