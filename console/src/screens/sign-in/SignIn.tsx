/** The sign-in page: a key, the OIDC issuer, or a one-time link. It is shown at whatever address somebody came to, so
 * that they are there afterwards. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { api, ok } from "@/api/client";
import { asProblem, wording } from "@/api/problem";
import { SESSION_KEY } from "@/api/queries";
import { Button } from "@/components/Button";
import { Field } from "@/components/Field";
import { Mark } from "@/components/Icon";
import { Note } from "@/components/Note";
import "./sign-in.css";

const PROBLEMS: Record<string, string> = {
  expired: "The sign-in took too long, or began in another browser. Begin again.",
  denied: "The issuer did not sign you in.",
  refused:
    "The issuer signed you in, but geomill has no role for you. Ask an administrator; the gateway's log has the reason.",
  unavailable: "The issuer does not answer. Try again in a moment, or use a key.",
};

type Credential = { key: string } | { code: string };

export function SignIn({ oidc, version }: { oidc: boolean; version: string }) {
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const signIn = useMutation({
    mutationFn: (credential: Credential) => ok(api.POST("/api/v1/session", { body: credential })),
    onSuccess: (session) => {
      if (location.pathname.endsWith("/enter")) history.replaceState(null, "", "/console");
      client.setQueryData(SESSION_KEY, session);
    },
  });
  useCode((code) => signIn.mutate({ code }));
  useEffect(() => {
    document.title = "Sign in · geomill";
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn.mutate({ key: key.trim() });
  };
  const problem = PROBLEMS[new URLSearchParams(location.search).get("problem") ?? ""];
  return (
    <main className="sign-in">
      <form className="card" onSubmit={submit}>
        <h1>
          <Mark /> geomill
        </h1>
        {problem && <Note kind="bad">{problem}</Note>}
        {signIn.error ? <Refusal error={signIn.error} /> : null}
        {oidc && (
          <>
            <a className="button primary large" href="/api/v1/session/oidc">
              Sign in with your account
            </a>
            <div className="or dim small">or</div>
          </>
        )}
        <Field
          label="API key"
          help="It begins with gm_. Your administrator gives it to you, or the command: geomill keys create"
        >
          {(field) => (
            <input
              {...field}
              className="input mono"
              type="password"
              autoComplete="current-password"
              spellCheck={false}
              required
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          )}
        </Field>
        <Button
          type="submit"
          size="large"
          kind={oidc ? undefined : "primary"}
          disabled={signIn.isPending || !key.trim()}
        >
          {signIn.isPending ? "Signing in" : "Sign in"}
        </Button>
        <p className="small dim">
          What is public needs no sign-in: <a href="/viewer/">published data</a>. geomill {version}
        </p>
      </form>
    </main>
  );
}

function Refusal({ error }: { error: unknown }) {
  const { happened, remedy } = wording(asProblem(error));
  const linkFailed = location.pathname.endsWith("/enter");
  return (
    <Note
      kind="bad"
      more={linkFailed ? "The command geomill console link gives another one. Or sign in with a key." : remedy}
    >
      {happened}
    </Note>
  );
}

/** Uses the code of a sign-in link once, and takes it out of the address. */
function useCode(use: (code: string) => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a link is used once, when the page opens
  useEffect(() => {
    const code = location.hash.slice(1);
    if (!location.pathname.endsWith("/enter") || !code) return;
    history.replaceState(null, "", location.pathname);
    use(code);
  }, []);
}
