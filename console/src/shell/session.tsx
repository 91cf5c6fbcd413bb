/** Who is signed in, and what they may do. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo } from "react";
import { api, ok, type Rule, whenSignedOut } from "@/api/client";
import { type CallerDocument, readSession, SESSION_KEY, type SessionDocument } from "@/api/queries";
import { ErrorNote } from "@/components/ErrorNote";
import { SignIn } from "@/screens/sign-in/SignIn";

const RENEW_MILLISECONDS = 30 * 60_000;

interface SessionValue {
  caller: CallerDocument;
  document: SessionDocument;
  may: (rule: Rule) => boolean;
  signOut: () => Promise<void>;
}

const SessionContext = createContext<SessionValue | null>(null);

export function useSession(): SessionValue {
  const session = useContext(SessionContext);
  if (!session) throw new Error("SessionProvider is missing");
  return session;
}

/** Says whether the caller's roles admit a request: `may("POST /api/platform/approve")`. What they do not admit is not
 * shown; the gateway refuses it all the same. */
export function useMay(): (rule: Rule) => boolean {
  return useSession().may;
}

/** Shows its children to somebody who is signed in, and the sign-in page to others. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: SESSION_KEY, queryFn: readSession, staleTime: 60_000, refetchInterval: 300_000 });
  useEffect(() => {
    whenSignedOut(() => void client.invalidateQueries({ queryKey: SESSION_KEY }));
  }, [client]);
  useRenewal(Boolean(query.data?.caller?.expires_at));
  const signOut = useCallback(async () => {
    await ok(api.DELETE("/api/v1/session"));
    client.clear();
    location.assign("/console");
  }, [client]);
  const value = useMemo(() => sessionValue(query.data, signOut), [query.data, signOut]);
  if (query.error && !query.data) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return null;
  if (!value) return <SignIn oidc={query.data.oidc} version={query.data.version} />;
  return <SessionContext value={value}>{children}</SessionContext>;
}

function sessionValue(document: SessionDocument | undefined, signOut: () => Promise<void>): SessionValue | null {
  if (!document?.caller) return null;
  const admitted = new Set(document.caller.may);
  return { caller: document.caller, document, signOut, may: (rule) => admitted.has(rule) };
}

/** Gives the session another token now and then, so that a stolen one is soon worthless. */
function useRenewal(hasSession: boolean): void {
  useEffect(() => {
    if (!hasSession) return;
    const timer = setInterval(() => {
      if (!document.hidden) void api.POST("/api/v1/session/renewal").catch(() => undefined);
    }, RENEW_MILLISECONDS);
    return () => clearInterval(timer);
  }, [hasSession]);
}

/** The name of a caller for people: keys have the subject `key:NAME`. */
export function personOf(subject: string): string {
  return subject.replace(/^key:/, "");
}
