import { QueryClientProvider } from "@tanstack/react-query";
import { Suspense, useCallback, useState } from "react";
import { Redirect, Route, Router, Switch, useLocation } from "wouter";
import { makeQueryClient } from "@/api/queries";
import { ButtonLink } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loading } from "@/components/Loading";
import { LiveProvider } from "@/live";
import { ROUTES } from "@/screens";
import { Bar } from "./Bar";
import { ErrorBoundary } from "./ErrorBoundary";
import { Finder } from "./Finder";
import { KeyHelp } from "./KeyHelp";
import { KeyProvider, useKeys } from "./keys";
import { PLACES } from "./places";
import { Screen } from "./Screen";
import { SessionProvider, useMay } from "./session";
import { ToastProvider } from "./toasts";

export function App() {
  const [client] = useState(makeQueryClient);
  return (
    <QueryClientProvider client={client}>
      <Router base="/console">
        <ToastProvider>
          <SessionProvider>
            <LiveProvider>
              <KeyProvider>
                <Frame />
              </KeyProvider>
            </LiveProvider>
          </SessionProvider>
        </ToastProvider>
      </Router>
    </QueryClientProvider>
  );
}

/** A place that the caller's roles do not open. */
function NotAllowed({ name }: { name: string }) {
  return (
    <Screen title={name}>
      <Empty
        icon="warning"
        title={`Your role does not open ${name}`}
        action={<ButtonLink href="/">Go home</ButtonLink>}
      >
        An administrator can give you a key with another role.
      </Empty>
    </Screen>
  );
}

function Frame() {
  const [open, setOpen] = useState<"find" | "keys" | null>(null);
  const [path, navigate] = useLocation();
  const may = useMay();
  const close = useCallback(() => setOpen(null), []);
  useKeys([
    ...PLACES.filter((place) => may(place.rule)).map((place) => ({
      keys: `g ${place.key}`,
      label: `go to ${place.name.toLowerCase()}`,
      run: () => navigate(place.href),
    })),
    { keys: "/", label: "find", shown: true, run: () => setOpen("find") },
    { keys: "?", label: "all keys", shown: true, run: () => setOpen("keys") },
  ]);
  return (
    <div className="frame">
      <a className="skip" href="#main">
        To the content
      </a>
      <Bar onFind={() => setOpen("find")} onKeys={() => setOpen("keys")} />
      <ErrorBoundary key={path}>
        <Suspense fallback={<Waiting />}>
          <Switch>
            {PLACES.filter((place) => !may(place.rule)).flatMap((place) =>
              [place.href, ...(place.inner ?? [])].map((path) => (
                <Route key={path} path={path}>
                  <NotAllowed name={place.name} />
                </Route>
              )),
            )}
            {ROUTES.flatMap((route) =>
              route.paths.map((place) => <Route key={place} path={place} component={route.screen} />),
            )}
            <Route path="/">
              <Home />
            </Route>
            <Route path="/enter">
              <Home />
            </Route>
            <Route path="/sign-in">
              <Home />
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </Suspense>
      </ErrorBoundary>
      {open === "find" && <Finder onClose={close} />}
      {open === "keys" && <KeyHelp onClose={close} />}
    </div>
  );
}

/** Leads to the first place that the caller may use. */
function Home() {
  const may = useMay();
  return <Redirect to={PLACES.find((place) => may(place.rule))?.href ?? "/assets"} replace />;
}

function Waiting() {
  return (
    <>
      <div className="head" />
      <main>
        <Loading lines={5} />
      </main>
    </>
  );
}

function NotFound() {
  return (
    <Screen title="Not found">
      <Empty icon="find" title="There is no such place" action={<ButtonLink href="/">Go to the start</ButtonLink>}>
        The address may be of another release, or mistyped.
      </Empty>
    </Screen>
  );
}
