import { Card } from "@/components/Card";
import { Loaded } from "@/components/Loading";
import { bytes, percent } from "@/format/number";
import { useHealth } from "@/shell/attention";

export function Storage() {
  const health = useHealth();
  return (
    <Card className="c5" title="Storage" aside="by place">
      <Loaded query={health} lines={4}>
        {(data) => (
          <div>
            {(data.space ?? []).map((place) => {
              const used = place.total_bytes > 0 ? 1 - place.free_bytes / place.total_bytes : 0;
              return (
                <div key={place.place} className="meter-line">
                  <span>{place.place}</span>
                  <div className="meter">
                    <i className={place.low ? "low" : "used"} style={{ width: `${used * 100}%` }} />
                  </div>
                  <span className={place.low ? "num strong warn-ink" : "num"}>{percent(used)}</span>
                  <span className="num dim">
                    {bytes(place.total_bytes - place.free_bytes)} of {bytes(place.total_bytes)}
                  </span>
                </div>
              );
            })}
            <div className="meter-line">
              <span>database</span>
              <span />
              <span />
              <span className="num dim">{bytes(data.database_bytes)}</span>
            </div>
          </div>
        )}
      </Loaded>
    </Card>
  );
}
