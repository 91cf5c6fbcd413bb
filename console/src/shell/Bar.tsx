import { useRef } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "@/components/Button";
import { Count } from "@/components/Card";
import { Icon, Mark } from "@/components/Icon";
import { useAttention } from "./attention";
import { PLACES } from "./places";
import { personOf, useSession } from "./session";
import { type Theme, useTheme } from "./theme";

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: "system", label: "as the system" },
  { value: "light", label: "light" },
  { value: "dark", label: "dark" },
];

/** The top bar: product, places, search, who. */
export function Bar({ onFind, onKeys }: { onFind: () => void; onKeys: () => void }) {
  return (
    <header className="bar">
      <Link className="mark" href="/">
        <Mark />
        geomill
      </Link>
      <nav className="places" aria-label="Places">
        <PlaceLinks />
      </nav>
      <button type="button" className="find" onClick={onFind}>
        <Icon name="find" />
        <span className="grow">Find asset, job, request</span>
        <kbd>/</kbd>
      </button>
      <Who onKeys={onKeys} />
      <PhoneMenu onFind={onFind} />
    </header>
  );
}

function PlaceLinks() {
  const { may } = useSession();
  const [path] = useLocation();
  const attention = useAttention();
  return PLACES.filter((place) => may(place.rule)).map((place) => {
    const waiting = attention[place.name] ?? 0;
    return (
      <Link key={place.name} href={place.href} aria-current={path.startsWith(place.href) ? "page" : undefined}>
        {place.name}
        {waiting > 0 && <Count value={waiting} hot={place.name === "Review"} />}
      </Link>
    );
  });
}

function Who({ onKeys }: { onKeys: () => void }) {
  const { caller } = useSession();
  const menu = useRef<HTMLDivElement>(null);
  return (
    <>
      <button type="button" className="who" popoverTarget="who-menu">
        <Icon name="person" />
        <span className="hidden">Signed in as </span>
        <span className="name">{personOf(caller.subject)}</span>
        <span className="dim role">· {caller.roles.join(", ")}</span>
      </button>
      <div id="who-menu" ref={menu} popover="auto" className="popover who-menu">
        <AccountMenu onKeys={onKeys} />
      </div>
    </>
  );
}

function AccountMenu({ onKeys }: { onKeys?: () => void }) {
  const { caller, document, signOut } = useSession();
  const [theme, choose] = useTheme();
  return (
    <>
      <div className="about">
        <span className="strong">{personOf(caller.subject)}</span>
        <br />
        {caller.roles.join(", ")}
        {caller.platform_id ? ` for ${caller.platform_id}` : ""} · geomill {document.version}
      </div>
      <hr />
      {THEMES.map((entry) => (
        <button
          key={entry.value}
          type="button"
          aria-pressed={theme === entry.value}
          onClick={() => choose(entry.value)}
        >
          <Icon name={entry.value === "dark" ? "moon" : "sun"} />
          <span className="grow">Colours {entry.label}</span>
          {theme === entry.value && <Icon name="done" />}
        </button>
      ))}
      {onKeys && (
        <button type="button" onClick={onKeys} popoverTarget="who-menu" popoverTargetAction="hide">
          <Icon name="key" />
          All keys
        </button>
      )}
      <a href="/docs">
        <Icon name="info" />
        API
      </a>
      <hr />
      <button type="button" onClick={() => void signOut()}>
        <Icon name="out" />
        Sign out
      </button>
    </>
  );
}

function PhoneMenu({ onFind }: { onFind: () => void }) {
  return (
    <>
      <button type="button" className="menu-button" aria-label="Menu" popoverTarget="phone-menu">
        <Icon name="menu" />
      </button>
      <div id="phone-menu" popover="auto" className="popover who-menu">
        <nav aria-label="Places">
          <PlaceLinks />
        </nav>
        <Button kind="quiet" icon="find" onClick={onFind}>
          Find
        </Button>
        <hr />
        <AccountMenu />
      </div>
    </>
  );
}
