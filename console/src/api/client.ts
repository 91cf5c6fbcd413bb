/** The gateway's API, typed by its OpenAPI document. Screens call nothing else. */

import createClient from "openapi-fetch";
import { ApiProblem, problemOf, unreachable } from "./problem";
import type { paths } from "./schema";

/** Proves to the gateway that its own page sends the request: a page of another origin cannot set it. */
export const OWN_PAGE = { "X-Geomill-Console": "1" };

export const api = createClient<paths>({ headers: OWN_PAGE, credentials: "same-origin" });

let onSignedOut: () => void = () => undefined;

/** Says what to do when the gateway no longer knows the session. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

/** Leads to the sign-in page if the gateway no longer knows the session. */
export function onRefused(response: Response): void {
  if (response.status === 401) onSignedOut();
}

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** Returns the data of a request, or throws an `ApiProblem`: `await ok(api.GET("/api/v1/jobs"))`. */
export async function ok<Data>(request: Promise<Answer<Data>>): Promise<NonNullable<Data>> {
  const answer = await request.catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw error instanceof ApiProblem ? error : unreachable();
  });
  if (!answer.response.ok) {
    onRefused(answer.response);
    throw problemOf(answer.response, answer.error);
  }
  return answer.data as NonNullable<Data>;
}

type Method = "get" | "post" | "put" | "patch" | "delete";

/** A line of the access table: `POST /api/platform/approve`. */
export type Rule = {
  [Path in keyof paths]: {
    [Verb in Method]: paths[Path] extends { [Key in Verb]: infer Operation }
      ? Operation extends undefined
        ? never
        : `${Uppercase<Verb>} ${Path & string}`
      : never;
  }[Method];
}[keyof paths];
