/** Operations: queues, dead letters, parked jobs, callbacks, processes, keys, platforms, settings, audit. */

import type { ReactNode } from "react";
import type { Rule } from "@/api/client";
import { Loaded } from "@/components/Loading";
import { type Tab, Tabs } from "@/components/Tabs";
import { useLive } from "@/live";
import { useAddress } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Queues } from "../overview/Queues";
import { Storage } from "../overview/Storage";
import "../overview/overview.css";
import { Audit, Settings } from "./Administration";
import { Callbacks } from "./Callbacks";
import { Circuits } from "./Circuits";
import { DeadLetters } from "./DeadLetters";
import { InstanceTable } from "./InstanceTable";
import { Keys } from "./Keys";
import { Parked } from "./Parked";
import { Platforms } from "./Platforms";
import { useInstances } from "./queries";
import "./operations.css";

interface Section {
  name: string;
  label: string;
  rule: Rule;
  content: () => ReactNode;
}

const SECTIONS: readonly Section[] = [
  { name: "queues", label: "Queues", rule: "GET /api/v1/queues", content: () => <Queues /> },
  { name: "dead-letters", label: "Dead letters", rule: "GET /api/v1/dead-letters", content: () => <DeadLetters /> },
  { name: "parked", label: "Parked jobs", rule: "GET /api/v1/jobs/parked", content: () => <Parked /> },
  { name: "callbacks", label: "Callbacks", rule: "GET /api/v1/callbacks", content: () => <Callbacks /> },
  { name: "processes", label: "Processes", rule: "GET /api/v1/instances", content: () => <Processes /> },
  { name: "circuits", label: "Circuits", rule: "GET /api/v1/circuits", content: () => <Circuits /> },
  { name: "storage", label: "Storage", rule: "GET /health", content: () => <Storage /> },
  { name: "keys", label: "Keys", rule: "GET /api/v1/keys", content: () => <Keys /> },
  { name: "platforms", label: "Platforms", rule: "GET /api/platforms", content: () => <Platforms /> },
  { name: "settings", label: "Settings", rule: "GET /api/v1/settings", content: () => <Settings /> },
  { name: "audit", label: "Audit", rule: "GET /api/v1/audit", content: () => <Audit /> },
];

export default function Operations() {
  const may = useMay();
  const [tab, setTab] = useAddress<string>("tab", "queues");
  useLive("jobs", {});
  const tabs: Tab<string>[] = SECTIONS.filter((section) => may(section.rule)).map(({ name, label, content }) => ({
    name,
    label,
    content,
  }));
  return (
    <Screen title="Operations" fills>
      <div className="operations">
        <Tabs label="Operations" tabs={tabs} current={tab} onChange={setTab} />
      </div>
    </Screen>
  );
}

function Processes() {
  const instances = useInstances();
  return (
    <Loaded query={instances}>
      {(list) => (
        <div className="sheet-table">
          <InstanceTable instances={list.instances} />
        </div>
      )}
    </Loaded>
  );
}
