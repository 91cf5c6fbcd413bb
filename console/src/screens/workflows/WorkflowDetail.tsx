import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import type { WorkflowDetails } from "@/api/schema";
import { Facts } from "@/components/Facts";
import { Loaded } from "@/components/Loading";
import { Scrolls } from "@/components/Scrolls";
import { Tabs } from "@/components/Tabs";
import { useAddress } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { RunForm } from "./RunForm";
import { Versions } from "./Versions";

type TabName = "run" | "nodes" | "versions" | "source";

export function WorkflowDetail({ workflowId }: { workflowId: string }) {
  const may = useMay();
  const path = { params: { path: { workflow_id: workflowId } } };
  const workflow = useQuery({
    queryKey: ["workflow", workflowId],
    queryFn: () => ok(api.GET("/api/v1/workflows/{workflow_id}", path)),
  });
  const runs = may("POST /api/v1/jobs") && workflow.data?.started_by !== "geomill";
  const [tab, setTab] = useAddress<TabName>("tab", "run");
  return (
    <Screen
      title={workflowId}
      fills
      heading={
        <>
          <span className="crumb">
            <Link href="/workflows">Workflows</Link> /
          </span>
          <h1>{workflowId}</h1>
        </>
      }
      beside={<span className="small soft cut">{workflow.data?.description}</span>}
      actions={<Link href={`/jobs?workflow_id=${encodeURIComponent(workflowId)}`}>Its jobs</Link>}
    >
      <div className="workflows">
        <Loaded query={workflow} lines={8}>
          {(data) => (
            <Tabs<TabName>
              label={workflowId}
              current={runs || tab !== "run" ? tab : "nodes"}
              onChange={setTab}
              tabs={[
                ...(runs ? [{ name: "run" as const, label: "Run", content: () => <RunForm workflow={data} /> }] : []),
                { name: "nodes", label: "Nodes", content: () => <Nodes workflow={data} /> },
                ...(may("GET /api/v1/workflows/{workflow_id}/versions")
                  ? [
                      {
                        name: "versions" as const,
                        label: "Versions",
                        content: () => <Versions workflowId={workflowId} current={data.definition_hash} />,
                      },
                      { name: "source" as const, label: "Source", content: () => <Source workflowId={workflowId} /> },
                    ]
                  : []),
              ]}
            />
          )}
        </Loaded>
      </div>
    </Screen>
  );
}

interface NodeDefinition {
  type: string;
  handler?: string;
  queue?: string;
  task?: { handler?: string; queue?: string };
  next?: string[];
  branches?: { name: string; condition?: string; next: string[] }[];
  on_failure?: string;
}

function Nodes({ workflow }: { workflow: WorkflowDetails }) {
  const nodes = Object.entries((workflow.definition as { nodes: Record<string, NodeDefinition> }).nodes);
  return (
    <Scrolls className="sheet-table" label="Nodes">
      <table>
        <thead>
          <tr>
            <th>Node</th>
            <th>Type</th>
            <th>Handler</th>
            <th className="desk">Queue</th>
            <th>Next</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(([name, node]) => (
            <tr key={name}>
              <td className="strong">{name}</td>
              <td>{node.type.replaceAll("_", " ")}</td>
              <td>
                <code>{node.handler ?? node.task?.handler ?? ""}</code>
              </td>
              <td className="desk">
                <code>{node.queue ?? node.task?.queue ?? ""}</code>
              </td>
              <td className="wraps">
                {node.branches
                  ?.map((branch) => `${branch.condition ?? "otherwise"} → ${branch.next.join(", ")}`)
                  .join("; ") ?? node.next?.join(", ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="in">
        <Facts
          facts={[
            ["Definition", <code key="hash">{workflow.definition_hash.slice(0, 13)}</code>],
            ["Version", workflow.version],
            ["Started by", workflow.started_by],
          ]}
        />
      </div>
    </Scrolls>
  );
}

function Source({ workflowId }: { workflowId: string }) {
  const source = useQuery({
    queryKey: ["workflow", workflowId, "source"],
    queryFn: () =>
      ok(
        api.GET("/api/v1/workflows/{workflow_id}/source", {
          params: { path: { workflow_id: workflowId } },
          parseAs: "text",
        }),
      ),
  });
  return <Loaded query={source}>{(data) => <pre>{data}</pre>}</Loaded>;
}
