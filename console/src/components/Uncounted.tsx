/** Covers the part of a chart of which not all jobs were counted. The chart is its frame. */
export function Uncounted({ share }: { share: number }) {
  if (share <= 0) return null;
  return (
    <span className="uncounted" style={{ width: `${share * 100}%` }} title="Choose a shorter time to see these jobs">
      {share > 0.2 && "too many jobs to count"}
    </span>
  );
}
