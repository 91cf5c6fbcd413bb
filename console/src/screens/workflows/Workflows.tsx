/** Workflows: the list, one with its form, nodes, versions and source, a check of YAML, and schedules. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { api, ok } from "@/api/client";
import { Loaded } from "@/components/Loading";
import { Table } from "@/components/Table";
import { Tabs } from "@/components/Tabs";
import { useLive } from "@/live";
import { useAddress } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Schedules } from "../schedules/Schedules";
import { CheckYaml } from "./CheckYaml";
import { WorkflowDetail } from "./WorkflowDetail";
import "./workflows.css";

export default function Workflows() {
  const { id } = useParams<{ id?: string }>();
  useLive("jobs", {});
  return id ? <WorkflowDetail key={id} workflowId={id} /> : <WorkflowList />;
}

function WorkflowList() {
  const may = useMay();
  const [tab, setTab] = useAddress<"list" | "schedules" | "check">("tab", "list");
  return (
    <Screen title="Workflows" fills>
      <div className="workflows">
        <Tabs
          label="Workflows"
          current={tab}
          onChange={setTab}
          tabs={[
            { name: "list", label: "Workflows", content: () => <List /> },
            ...(may("GET /api/v1/schedules")
              ? [{ name: "schedules" as const, label: "Schedules", content: () => <Schedules /> }]
              : []),
            ...(may("POST /api/v1/workflows/validate")
              ? [{ name: "check" as const, label: "Check YAML", content: () => <CheckYaml /> }]
              : []),
          ]}
        />
      </div>
    </Screen>
  );
}

function List() {
  const [, navigate] = useLocation();
  const [words, setWords] = useState("");
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: () => ok(api.GET("/api/v1/workflows")),
    staleTime: 60_000,
  });
  return (
    <Loaded query={workflows}>
      {(all) => (
        <div className="list">
          <input
            className="input find-workflow"
            aria-label="Find a workflow"
            placeholder="Find a workflow"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
          <Table
            label="Workflows"
            rows={all.filter((row) =>
              `${row.workflow_id} ${row.name} ${row.description ?? ""}`.toLowerCase().includes(words.toLowerCase()),
            )}
            rowKey={(row) => row.workflow_id}
            onOpen={(row) => navigate(`/workflows/${row.workflow_id}`)}
            columns={[
              {
                name: "id",
                head: "Workflow",
                width: 240,
                cell: (row) => (
                  <Link className="mono" href={`/workflows/${row.workflow_id}`}>
                    {row.workflow_id}
                  </Link>
                ),
              },
              { name: "version", head: "Version", num: true, width: 70, desk: true, cell: (row) => row.version },
              { name: "by", head: "Started by", width: 110, desk: true, cell: (row) => row.started_by },
              {
                name: "inputs",
                head: "Inputs",
                num: true,
                width: 70,
                desk: true,
                cell: (row) => Object.keys(row.inputs).length,
              },
              {
                name: "what",
                head: "What it does",
                cut: true,
                cell: (row) => <span title={row.description ?? ""}>{row.description}</span>,
              },
            ]}
          />
        </div>
      )}
    </Loaded>
  );
}
