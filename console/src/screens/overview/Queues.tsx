import { Link } from "wouter";
import { Card } from "@/components/Card";
import { Loaded } from "@/components/Loading";
import { count, plural } from "@/format/number";
import { duration } from "@/format/time";
import { useQueues } from "../operations/queries";

const SLOW_SECONDS = 60;

export function Queues() {
  const queues = useQueues();
  const dead = (queues.data?.queues ?? []).reduce((sum, queue) => sum + queue.dead, 0);
  return (
    <Card
      className="c7"
      title="Queues"
      aside={dead > 0 && <Link href="/operations?tab=dead-letters">Dead letters {count(dead)}</Link>}
      flush
    >
      <Loaded query={queues} lines={5}>
        {({ queues: rows }) => (
          <table>
            <thead>
              <tr>
                <th>Queue</th>
                <th className="num">Waiting</th>
                <th className="num">Oldest</th>
                <th className="num">Leased</th>
                <th>Served by</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((queue) => (
                <tr key={queue.queue_name}>
                  <td>
                    <Link
                      className="mono"
                      href={`/operations?tab=queues&queue=${encodeURIComponent(queue.queue_name)}`}
                    >
                      {queue.queue_name}
                    </Link>
                  </td>
                  <td className="num">{count(queue.waiting)}</td>
                  <td className={(queue.oldest_seconds ?? 0) > SLOW_SECONDS ? "num strong warn-ink" : "num"}>
                    {queue.oldest_seconds ? duration(queue.oldest_seconds) : "–"}
                  </td>
                  <td className="num">{count(queue.leased)}</td>
                  <td className={queue.consumers === 0 ? "strong warn-ink" : undefined}>
                    {queue.consumers === 0 ? "nobody" : plural(queue.consumers, "process", "processes")}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </Card>
  );
}
