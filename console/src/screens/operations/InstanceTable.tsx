import type { InstanceDetails } from "@/api/schema";
import { Scrolls } from "@/components/Scrolls";
import { State } from "@/components/states";
import { count, shortId } from "@/format/number";
import { age, duration } from "@/format/time";
import { useNow } from "@/live/clock";

/** Orchestrators and workers, with what each has done since its start. */
export function InstanceTable({ instances }: { instances: readonly InstanceDetails[] }) {
  const now = useNow();
  return (
    <Scrolls label="Processes">
      <table>
        <thead>
          <tr>
            <th>State</th>
            <th>Process</th>
            <th>Role</th>
            <th className="desk">Host</th>
            <th className="desk">Queues</th>
            <th className="num">Busy</th>
            <th className="num">Done</th>
            <th className="num">Failed</th>
            <th className="num desk">Heartbeat</th>
            <th className="num desk">Up</th>
            <th className="desk">Version</th>
          </tr>
        </thead>
        <tbody>
          {instances.map((instance) => (
            <tr key={instance.instance_id}>
              <td>
                <State state={instance.alive ? "completed" : "failed"}>{instance.alive ? "alive" : "lost"}</State>
              </td>
              <td>
                <code title={instance.instance_id}>{shortId(instance.instance_id)}</code>
              </td>
              <td>{instance.role}</td>
              <td className="desk">
                {instance.hostname}, {instance.pid}
              </td>
              <td className="desk">{instance.queues.join(", ")}</td>
              <td className="num">
                {instance.role === "worker"
                  ? `${instance.leased_tasks} of ${instance.slots ?? "–"}`
                  : count(instance.owned_jobs)}
              </td>
              <td className="num">
                {count(instance.role === "worker" ? instance.counts.completed : instance.counts.results)}
              </td>
              <td className={(instance.counts.failed ?? 0) > 0 ? "num bad-ink" : "num dim"}>
                {count(instance.counts.failed)}
              </td>
              <td className="num desk">{duration(instance.heartbeat_seconds)}</td>
              <td className="num desk">{age(instance.started_at, now)}</td>
              <td className="desk">{instance.version}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  );
}
