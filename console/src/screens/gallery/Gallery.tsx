/** Everything that screens are made of, for those who build them. No place leads here; the address is /components. */

import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { Button, Segments } from "@/components/Button";
import { Card, Count } from "@/components/Card";
import { Drawer } from "@/components/Drawer";
import { Empty } from "@/components/Empty";
import { ErrorLine, ErrorNote } from "@/components/ErrorNote";
import { Facts } from "@/components/Facts";
import { Field } from "@/components/Field";
import { Id } from "@/components/Id";
import { MapFrame } from "@/components/map/MapFrame";
import { Note } from "@/components/Note";
import { Badge, State } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Tabs } from "@/components/Tabs";
import { Age, Time } from "@/components/Time";
import { useAddress } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useToast } from "@/shell/toasts";
import "./gallery.css";

const STATES: Record<string, string[]> = {
  Job: ["queued", "pending", "running", "paused", "completed", "failed", "cancelled"],
  "Node, item": ["pending", "ready", "dispatched", "running", "completed", "failed", "skipped", "cancelled"],
  Processing: ["pending", "processing", "completed", "failed"],
  Approval: ["pending_review", "approved", "rejected"],
  Clearance: ["uncleared", "ouo", "public"],
};
const PROBLEM = new ApiProblem(503, "database_unreachable", "the database does not answer; try again in a moment");
const WRONG = new ApiProblem(422, "invalid_inputs", "the inputs are wrong; correct them and submit again", [
  { field: "source_crs", message: "there is no EPSG:99999", hint: "did you mean EPSG:9999?" },
]);
const ROWS = Array.from({ length: 10_000 }, (_, number) => ({
  id: `row-${number}`,
  number,
  state: (STATES.Job ?? [])[number % 7] ?? "queued",
}));
type Row = (typeof ROWS)[number];
const COLUMNS: Column<Row>[] = [
  { name: "state", head: "State", cell: (row) => <State state={row.state} /> },
  { name: "id", head: "Row", cell: (row) => <code>{row.id}</code> },
  { name: "number", head: "Number", num: true, cell: (row) => row.number.toLocaleString("en-GB") },
];

export default function Gallery() {
  const toast = useToast();
  const [tab, setTab] = useAddress<"one" | "two">("tab", "one");
  const [mode, setMode] = useState<"swipe" | "flicker">("swipe");
  const [open, setOpen] = useState(false);
  const [selected, setSelected] = useState<Set<string>>(new Set(["row-2"]));
  return (
    <Screen title="Components" beside={<span className="small soft">Everything the screens are made of.</span>} fills>
      <div className="with-drawer">
        <div className="page twelve gallery">
          <Card className="c8" title="States" aside="circle: work · square: approval · hexagon: clearance">
            <div className="gallery-states">
              {Object.entries(STATES).map(([name, states]) => (
                <div key={name} className="line wrap">
                  <span className="label">{name}</span>
                  {states.map((state) => (
                    <Badge key={state} state={state} />
                  ))}
                </div>
              ))}
            </div>
          </Card>
          <Card className="c4" title="Buttons" count={<Count value={7} hot />}>
            <div className="stack3">
              <div className="line wrap">
                <Button kind="primary">Submit</Button>
                <Button>Compare</Button>
                <Button kind="danger">Reject</Button>
                <Button kind="quiet">Discard</Button>
              </div>
              <div className="line wrap">
                <Button disabled>Pause</Button>
                <Button icon="retry" hint="T">
                  Retry
                </Button>
                <Button
                  onClick={() => toast({ text: "Approved r4 as public. The export has begun.", state: "approved" })}
                >
                  Toast
                </Button>
                <Button onClick={() => setOpen(true)}>Drawer</Button>
              </div>
              <Segments
                label="Comparison"
                value={mode}
                onChange={setMode}
                options={[
                  { value: "swipe", label: "Swipe" },
                  { value: "flicker", label: "Flicker" },
                ]}
              />
            </div>
          </Card>
          <Card className="c6" title="Messages">
            <div className="stack">
              <ErrorLine error={WRONG} />
              <Note kind="warn">118 geometries were invalid and made valid.</Note>
              <Note kind="info">r5 came while you looked at r4. Nothing was decided.</Note>
              <Note kind="good">CRS: EPSG:32748, chosen by you.</Note>
            </div>
          </Card>
          <Card className="c3" title="Empty">
            <Empty title="Nothing waits for review" action={<Button>Show decided</Button>}>
              New revisions appear here by themselves.
            </Empty>
          </Card>
          <Card className="c3" title="Error">
            <ErrorNote error={PROBLEM} validUntil={Date.UTC(2026, 10, 18, 9, 14, 2)} onRetry={() => undefined} />
          </Card>
          <Card className="c4" title="Fields">
            <div className="stack3">
              <Field label="dataset_id" help="As the platform names it. Part of the asset's name.">
                {(field) => <input {...field} className="input mono" defaultValue="floods" />}
              </Field>
              <Field label="source_crs" wrong={WRONG.of("source_crs")}>
                {(field) => <input {...field} className="input mono" defaultValue="EPSG:99999" />}
              </Field>
            </div>
          </Card>
          <Card className="c4" title="Facts">
            <Facts
              facts={[
                ["Submitted", <Time key="time" at="2026-11-14T22:41:07Z" />],
                ["Age", <Age key="age" at="2026-11-14T22:41:07Z" />],
                ["Job", <Id key="id" id="01a1e41f-5b02-7c00-8000-000000000000" copy />],
                ["Left out", null],
              ]}
            />
          </Card>
          <Card className="c4" title="Tabs" flush>
            <Tabs
              label="Example"
              current={tab}
              onChange={setTab}
              tabs={[
                {
                  name: "one",
                  label: "Revisions",
                  content: () => <p className="in small">A tab is part of the address.</p>,
                },
                { name: "two", label: "Links", content: () => <p className="in small">Another tab.</p> },
              ]}
            />
          </Card>
          <Card className="c6" title="Table" aside="10,000 rows" flush>
            <div className="gallery-table">
              <Table
                label="Rows"
                rows={ROWS}
                columns={COLUMNS}
                rowKey={(row) => row.id}
                selection={{ selected, onChange: setSelected, label: (row) => `Select ${row.id}` }}
              />
            </div>
          </Card>
          <Card className="c6" title="Map" flush>
            <MapFrame className="gallery-map" label="Indonesia" bounds={[95, -11, 141, 6]} legend="Legend" />
          </Card>
        </div>
        {open && (
          <Drawer
            title="tiles / item 2417"
            label="Item 2417"
            badge={<Badge state="failed" />}
            onClose={() => setOpen(false)}
          >
            <div className="body">Escape closes it.</div>
          </Drawer>
        )}
      </div>
    </Screen>
  );
}
