import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "wouter";
import type { JobHistogram } from "@/api/schema";
import { Bars, total } from "@/components/Bars";
import { Card } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { counted } from "@/components/histogram";
import { Loaded } from "@/components/Loading";
import { Uncounted } from "@/components/Uncounted";
import { count, percent } from "@/format/number";
import { day, moment, shortClock } from "@/format/time";
import { worstFirst } from "./failures";

type HistogramQuery = UseQueryResult<JobHistogram>;

const ACTIVE = ["queued", "pending", "running"];

/** Jobs over time, with failures apart below, where one is seen. */
export function Throughput({
  query,
  hours,
  active,
}: {
  query: HistogramQuery;
  hours: number;
  active: Record<string, number>;
}) {
  return (
    <Card className="c7 throughput" title="Throughput" aside="jobs by the time of their creation" flush>
      <Loaded query={query} lines={8}>
        {(histogram) => <Chart histogram={histogram} hours={hours} active={active} />}
      </Loaded>
    </Card>
  );
}

function Chart({
  histogram,
  hours,
  active,
}: {
  histogram: JobHistogram;
  hours: number;
  active: Record<string, number>;
}) {
  const { bars, since, uncounted, minutes } = counted(histogram);
  const all = bars.reduce((sum, bar) => sum + total(bar.counts), 0);
  const failed = bars.reduce((sum, bar) => sum + (bar.counts.failed ?? 0), 0);
  const ended = bars.reduce((sum, bar) => sum + (bar.counts.failed ?? 0) + (bar.counts.completed ?? 0), 0);
  const running = ACTIVE.reduce((sum, state) => sum + (active[state] ?? 0), 0);
  const most = Math.max(1, ...bars.map((bar) => total(bar.counts)));
  return (
    <>
      <dl className="figures">
        <Figure
          value={count(all)}
          name={
            uncounted > 0 ? `jobs since ${moment(since)}` : `jobs in ${hours < 48 ? `${hours} h` : `${hours / 24} d`}`
          }
        />
        <Figure value={minutes > 0 ? (all / minutes).toFixed(1) : "–"} name="jobs a minute" />
        <Figure value={ended > 0 ? percent(failed / ended) : "–"} name="of ended jobs failed" />
        <Figure value={count(running)} name="jobs active" />
      </dl>
      <div className="chart">
        <div>
          <span className="y top">{count(most)}</span>
          <span className="y">0</span>
          <Bars bars={bars} label={`${all} jobs, at most ${most} in one part of the time`} />
          <Uncounted share={uncounted} />
        </div>
        <div>
          <Bars
            bars={bars.map((bar) => ({ at: bar.at, counts: { failed: bar.counts.failed ?? 0 } }))}
            height={30}
            label={`${failed} of them failed`}
          />
        </div>
        <div className="times">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span key={share}>{timeAt(histogram, share)}</span>
          ))}
        </div>
      </div>
    </>
  );
}

function timeAt(histogram: JobHistogram, share: number): string {
  const from = Date.parse(histogram.created_from);
  const to = Date.parse(histogram.created_to);
  const place = from + (to - from) * share;
  return to - from > 48 * 3_600_000 ? day(place) : shortClock(place);
}

function Figure({ value, name }: { value: string; name: string }) {
  return (
    <div>
      <dd>{value}</dd>
      <dt>{name}</dt>
    </div>
  );
}

const MOST_WORKFLOWS = 6;

/** Workflows with the share of their jobs that failed. */
export function Failures({ query, span }: { query: HistogramQuery; span: string }) {
  return (
    <Card
      className="c5"
      title="Failures by workflow"
      aside={query.data?.complete_from ? `since ${moment(counted(query.data).since)}` : span}
      flush
    >
      <Loaded query={query} lines={5}>
        {(histogram) => {
          const rows = worstFirst(histogram.workflows).slice(0, MOST_WORKFLOWS);
          const most = Math.max(1, ...rows.map((row) => total(row.counts)));
          if (rows.length === 0) return <Empty title="No jobs in this time">Choose a longer time above.</Empty>;
          return (
            <table className="plain">
              <thead>
                <tr>
                  <th>Workflow</th>
                  <th aria-label="Share" />
                  <th className="num">jobs</th>
                  <th className="num">failed</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <WorkflowRow key={row.workflow_id} workflow={row.workflow_id} counts={row.counts} most={most} />
                ))}
              </tbody>
            </table>
          );
        }}
      </Loaded>
    </Card>
  );
}

function WorkflowRow({ workflow, counts, most }: { workflow: string; counts: Record<string, number>; most: number }) {
  const jobs = total(counts);
  const failed = counts.failed ?? 0;
  return (
    <tr>
      <td>
        <Link href={`/jobs?workflow_id=${encodeURIComponent(workflow)}`}>{workflow}</Link>
      </td>
      <td className="share">
        <div className="meter">
          <i className="done" style={{ width: `${((jobs - failed) / most) * 100}%` }} />
          <i className="bad" style={{ width: failed > 0 ? `max(2px, ${(failed / most) * 100}%)` : 0 }} />
        </div>
      </td>
      <td className="num">{count(jobs)}</td>
      <td className={failed > 0 ? "num bad-ink" : "num dim"}>
        {failed > 0 ? (
          <Link className="bad-ink" href={`/jobs?workflow_id=${encodeURIComponent(workflow)}&status=failed`}>
            {count(failed)}
          </Link>
        ) : (
          0
        )}
      </td>
    </tr>
  );
}
