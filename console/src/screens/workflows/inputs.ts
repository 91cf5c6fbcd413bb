/** A form from the inputs of a workflow: what is typed becomes the values that the API takes. */

export interface InputDeclaration {
  type: string;
  /** Absent means required, unless there is a default. */
  required?: boolean;
  default?: unknown;
  description?: string | null;
  enum?: unknown[] | null;
}

export function isRequired(declaration: InputDeclaration): boolean {
  return declaration.required !== false && (declaration.default === undefined || declaration.default === null);
}

/** The text of a value in a field. Lists and objects are JSON. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value of a field, or a problem with it. An empty field is left out, so that the default holds. */
export function inputValue(text: string, declaration: InputDeclaration): { value?: unknown; problem?: string } {
  const words = text.trim();
  if (words === "") return isRequired(declaration) ? { problem: "This input is required." } : {};
  switch (declaration.type) {
    case "string":
      return { value: text };
    case "integer":
    case "number": {
      const number = Number(words);
      if (Number.isNaN(number)) return { problem: `${words} is not a number.` };
      if (declaration.type === "integer" && !Number.isInteger(number))
        return { problem: `${words} is not a whole number.` };
      return { value: number };
    }
    case "boolean":
      if (words !== "true" && words !== "false") return { problem: "Write true or false." };
      return { value: words === "true" };
    default:
      try {
        return { value: JSON.parse(words) };
      } catch {
        return { problem: `Write it as JSON: ${declaration.type}.` };
      }
  }
}

/** All values of a form, or the problems by field. */
export function valuesOf(texts: Record<string, string>, inputs: Record<string, InputDeclaration>) {
  const values: Record<string, unknown> = {};
  const problems: Record<string, string> = {};
  for (const [name, declaration] of Object.entries(inputs)) {
    const { value, problem } = inputValue(texts[name] ?? "", declaration);
    if (problem) problems[name] = problem;
    else if (value !== undefined) values[name] = value;
  }
  return { values, problems };
}
