import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import { ButtonLink } from "@/components/Button";
import { Card, Count } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { Icon } from "@/components/Icon";
import { Loaded } from "@/components/Loading";
import { Glyph } from "@/components/states";
import { useNow } from "@/live/clock";
import { useHealth, useReviews } from "@/shell/attention";
import { useMay } from "@/shell/session";
import { concernsOf, type FailedAsset, type FailedExport, MOST_FAILED } from "./attention";

function useReport<Row>(report: "failed" | "exports"): Row[] {
  const may = useMay();
  const page = useQuery({
    queryKey: ["assets", "report", report],
    queryFn: ({ signal }) => {
      const params = { path: { report }, query: { limit: MOST_FAILED } };
      return ok(api.GET("/api/assets/reports/{report}", { params, signal }));
    },
    enabled: may("GET /api/assets/reports/{report}"),
    refetchInterval: 30_000,
  });
  return (page.data?.rows ?? []) as Row[];
}

export function Attention() {
  const health = useHealth();
  const reviews = useReviews();
  const failed = useReport<FailedAsset>("failed");
  const exports = useReport<FailedExport>("exports");
  const now = useNow();
  const concerns = health.data ? concernsOf(health.data, reviews, failed, exports, now) : [];
  return (
    <Card
      className="c5"
      title="Needs attention"
      count={concerns.length > 0 && <Count value={concerns.length} hot />}
      flush
    >
      <Loaded query={health} lines={6}>
        {() =>
          concerns.length === 0 ? (
            <Empty title="Nothing needs you">Reviews, failures and work that waits would be here.</Empty>
          ) : (
            <ul className="concerns">
              {concerns.map((concern) => (
                <li key={concern.id}>
                  {concern.state ? <Glyph state={concern.state} /> : <Icon name="warning" />}
                  <span className="grow">
                    <span className="strong">{concern.title}</span>
                    <span className="small soft cut">{concern.reason}</span>
                  </span>
                  <ButtonLink href={concern.action.href}>{concern.action.text}</ButtonLink>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}
