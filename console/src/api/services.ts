/** The services beside the API: tiles, values, features. Their answers have no types in the OpenAPI document, so each
 * reader says what it expects. */

import { OWN_PAGE, onRefused } from "./client";
import { problemOf, unreachable } from "./problem";

/** Reads JSON of `/raster`, `/vector`, `/stac` or `/viewer`. Throws an `ApiProblem`. */
export async function readService<Answer>(path: string, signal?: AbortSignal, method = "GET"): Promise<Answer> {
  const response = await fetch(path, {
    credentials: "same-origin",
    headers: method === "GET" ? undefined : OWN_PAGE,
    signal,
    method,
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  });
  const body: unknown = await response.json().catch(() => null);
  if (response.ok && body !== null) return body as Answer;
  onRefused(response);
  throw problemOf(response, body);
}
