/** Errors of the API: problem documents (RFC 9457), and what stands in for them when no answer came. */

export interface FieldProblem {
  field: string;
  message: string;
  hint?: string;
}

export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly errors: FieldProblem[] = [],
    readonly instance = "",
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
    this.name = "ApiProblem";
  }

  /** Whether the same request may succeed a moment later. */
  get passes(): boolean {
    return this.status === 0 || this.status === 503 || this.status === 429;
  }

  /** The message for one field of a form, or undefined. */
  of(field: string): string | undefined {
    const problem = this.errors.find((entry) => entry.field === field || entry.field.endsWith(`.${field}`));
    return problem && (problem.hint ? `${problem.message}: ${problem.hint}` : problem.message);
  }
}

export const UNREACHABLE = "gateway_unreachable";

export function unreachable(): ApiProblem {
  return new ApiProblem(0, UNREACHABLE, "The gateway does not answer.");
}

/** Turns the body of a refused request into a problem. A proxy may answer with something else than ours. */
export function problemOf(response: Response, body: unknown): ApiProblem {
  const document = (typeof body === "object" && body !== null ? body : {}) as Partial<Record<string, unknown>>;
  const retryAfter = Number(response.headers.get("Retry-After"));
  return new ApiProblem(
    response.status,
    typeof document.code === "string" ? document.code : `http_${response.status}`,
    typeof document.detail === "string" ? document.detail : `The gateway answered with status ${response.status}.`,
    Array.isArray(document.errors) ? (document.errors as FieldProblem[]) : [],
    typeof document.instance === "string" ? document.instance : "",
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null,
  );
}

/** Any error as a problem: our own errors stay, others are of the network or of the page itself. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message)) return unreachable();
  return new ApiProblem(0, "page_error", error instanceof Error ? error.message : String(error));
}

/** Splits the detail of a problem into what happened and what to do: our messages put the remedy after a semicolon. */
export function wording(problem: ApiProblem): { happened: string; remedy: string } {
  const cut = problem.detail.indexOf("; ");
  const happened = cut < 0 ? problem.detail : problem.detail.slice(0, cut);
  const remedy = cut < 0 ? "" : problem.detail.slice(cut + 2);
  return { happened: sentence(happened), remedy: sentence(remedy) };
}

function sentence(text: string): string {
  const trimmed = text.trim();
  if (!trimmed) return "";
  const start = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}
