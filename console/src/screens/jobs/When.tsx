import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type PointerEvent, useRef, useState } from "react";
import { api, ok } from "@/api/client";
import { Bars } from "@/components/Bars";
import { Segments } from "@/components/Button";
import { counted } from "@/components/histogram";
import { Uncounted } from "@/components/Uncounted";
import { day, shortClock } from "@/format/time";
import { useAddress, useAddresses } from "@/shell/address";
import type { JobFilters } from "./filters";

const PARTS = 96;
const HOURS = { "24": "24 h", "168": "7 d", "720": "30 d" } as const;
type Hours = keyof typeof HOURS;

/** Jobs over time. Drag over it to choose a part; the list then has only that. */
export function When({ filters }: { filters: JobFilters }) {
  const [hours, setHours] = useAddress<Hours>("span", "24");
  const [, change] = useAddresses();
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const histogram = useQuery({
    queryKey: ["jobs", "histogram", hours, { ...filters, created_from: undefined, created_to: undefined }],
    queryFn: () => {
      const from = new Date(Date.now() - Number(hours) * 3_600_000).toISOString();
      const { status = [], ...others } = filters;
      const query = { ...others, status, created_from: from, created_to: undefined, parts: PARTS };
      return ok(api.GET("/api/v1/jobs/histogram", { params: { query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const data = histogram.data;
  if (!data) return <div className="when" />;
  const { bars, uncounted } = counted(data);
  const from = Date.parse(data.created_from);
  const length = Date.parse(data.created_to) - from;
  const share = (event: PointerEvent) => {
    const place = box.current?.getBoundingClientRect();
    return place ? Math.min(1, Math.max(0, (event.clientX - place.left) / place.width)) : 0;
  };
  const chosen = drag ?? shares(filters, from, length);
  return (
    <div className="when">
      <div
        ref={box}
        className="brushed"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([share(event), share(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], share(event)])}
        onPointerUp={() => {
          if (!drag) return;
          const [one, other] = [Math.min(...drag), Math.max(...drag)];
          setDrag(null);
          const moment = (part: number) => new Date(from + part * length).toISOString();
          const whole = other - one < 0.005;
          change({
            created_from: whole ? null : moment(one),
            created_to: whole || other > 0.995 ? null : moment(other),
          });
        }}
      >
        <Bars bars={bars} height={44} label="Jobs over time" />
        <Uncounted share={uncounted} />
        {chosen && (
          <i
            className="brush"
            style={{ left: `${Math.min(...chosen) * 100}%`, width: `${Math.abs(chosen[1] - chosen[0]) * 100}%` }}
          />
        )}
      </div>
      <div className="axis">
        {[0, 0.25, 0.5, 0.75].map((part) => (
          <span key={part}>{Number(hours) > 24 ? day(from + part * length) : shortClock(from + part * length)}</span>
        ))}
        <Segments
          label="Time span"
          value={hours}
          onChange={setHours}
          options={(["24", "168", "720"] as const).map((value) => ({ value, label: HOURS[value] }))}
        />
      </div>
    </div>
  );
}

function shares(filters: JobFilters, from: number, length: number): [number, number] | null {
  if (!filters.created_from && !filters.created_to) return null;
  const part = (moment: string | undefined, fallback: number) =>
    moment ? Math.min(1, Math.max(0, (Date.parse(moment) - from) / length)) : fallback;
  return [part(filters.created_from, 0), part(filters.created_to, 1)];
}
