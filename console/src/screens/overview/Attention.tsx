import { ButtonLink } from "@/components/Button";
import { Card, Count } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { Icon } from "@/components/Icon";
import { Loaded } from "@/components/Loading";
import { Glyph } from "@/components/states";
import { useNow } from "@/live/clock";
import { useHealth, useReviews } from "@/shell/attention";
import { concernsOf } from "./attention";

export function Attention() {
  const health = useHealth();
  const reviews = useReviews();
  const now = useNow();
  const concerns = health.data ? concernsOf(health.data, reviews, now) : [];
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
