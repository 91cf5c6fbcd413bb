import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import { Loaded } from "@/components/Loading";
import { Tabs } from "@/components/Tabs";
import { useAddress } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Nodes } from "./Nodes";
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
                { name: "nodes", label: "Graph", content: () => <Nodes workflow={data} /> },
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
