import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Scrolls } from "@/components/Scrolls";
import { Time } from "@/components/Time";
import { count } from "@/format/number";
import { useAddress } from "@/shell/address";

/** The definitions that jobs were pinned to, and how one differs from the present one. */
export function Versions({ workflowId, current }: { workflowId: string; current: string }) {
  const [chosen, setChosen] = useAddress<string>("from", "");
  const versions = useQuery({
    queryKey: ["workflow", workflowId, "versions"],
    queryFn: () =>
      ok(api.GET("/api/v1/workflows/{workflow_id}/versions", { params: { path: { workflow_id: workflowId } } })),
  });
  return (
    <Loaded query={versions}>
      {({ versions: rows }) =>
        rows.length === 0 ? (
          <Empty title="No job has used it yet">Each definition that a job ran is kept, and can be compared.</Empty>
        ) : (
          <div className="stack3">
            <Scrolls className="sheet-table" label="Versions">
              <table>
                <thead>
                  <tr>
                    <th>Definition</th>
                    <th className="num">Version</th>
                    <th className="num">First used</th>
                    <th className="num">Jobs, of the newest 1000</th>
                    <th>
                      <span className="hidden">Difference</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => (
                    <tr key={row.definition_hash} aria-selected={row.definition_hash === chosen || undefined}>
                      <td>
                        <code>{row.definition_hash.slice(0, 13)}</code>
                      </td>
                      <td className="num">{row.version}</td>
                      <td className="num">
                        <Time at={row.first_used_at} />
                      </td>
                      <td className="num">{count(row.recent_jobs)}</td>
                      <td>
                        {row.definition_hash === current ? (
                          <span className="dim">the present one</span>
                        ) : (
                          <button type="button" className="link" onClick={() => setChosen(row.definition_hash)}>
                            Compare with the present one
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scrolls>
            {chosen && <Difference workflowId={workflowId} from={chosen} />}
          </div>
        )
      }
    </Loaded>
  );
}

function Difference({ workflowId, from }: { workflowId: string; from: string }) {
  const difference = useQuery({
    queryKey: ["workflow", workflowId, "difference", from],
    queryFn: () =>
      ok(
        api.GET("/api/v1/workflows/{workflow_id}/difference", {
          params: { path: { workflow_id: workflowId }, query: { from } },
        }),
      ),
  });
  return (
    <Loaded query={difference}>
      {(data) => (
        <pre>
          {(data.diff ?? "too long to show").split("\n").map((line, place) => (
            <span key={place} className={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : undefined}>
              {line}
              {"\n"}
            </span>
          ))}
        </pre>
      )}
    </Loaded>
  );
}
