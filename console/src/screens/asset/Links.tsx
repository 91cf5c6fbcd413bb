import type { AssetDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Time } from "@/components/Time";
import { useToast } from "@/shell/toasts";
import { linkRows } from "./linkRows";
import { useLinks } from "./Share";

export function Links({ asset }: { asset: AssetDetails }) {
  const links = useLinks(asset.asset_id);
  return (
    <Loaded query={links} lines={6}>
      {(view) => {
        const rows = linkRows(view.links, view.expires_at !== null);
        if (rows.length === 0)
          return <Empty title="No links yet">They come when the first revision has completed.</Empty>;
        return (
          <>
            <div className="links">
              {rows.map((row) => (
                <CopyLine key={row.title} title={row.title} text={row.text} opens={row.opens} />
              ))}
            </div>
            {view.expires_at && (
              <p className="small dim links-end">
                The asset is not public, so the links are signed. They end <Time at={view.expires_at} />; “Share” gives
                longer ones.
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

export function CopyLine({ title, text, opens }: { title: string; text: string; opens?: boolean }) {
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast({ text: `Copied: ${title}.` });
    } catch {
      toast({ text: "The browser did not allow copying. Select the text and copy it by hand.", bad: true });
    }
  };
  return (
    <>
      <span>{title}</span>
      <code className="cut" title={text}>
        {opens ? <a href={text}>{text}</a> : text}
      </code>
      <Button kind="quiet" icon="copy" aria-label={`Copy ${title}`} onClick={() => void copy()}>
        Copy
      </Button>
    </>
  );
}
