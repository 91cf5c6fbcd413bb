import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import type { AssetDetails, StylesView } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { savedForm } from "@/map/style";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import { assetKey, stylesKey } from "./data";
import type { Draft } from "./draft";

/** The name of the style that this screen saves. Other names are for the API. */
const NAME = "console";

/** Saves what is drawn as the style that everybody sees, or takes the saved one away. */
export function SaveStyle({
  asset,
  draft,
  styles,
}: {
  asset: AssetDetails;
  draft: Draft;
  styles: StylesView | undefined;
}) {
  const may = useMay();
  const client = useQueryClient();
  const toast = useToast();
  const place = { asset_id: asset.asset_id, name: NAME };
  const own = styles?.styles.find((entry) => entry.default && entry.origin === "person");
  const save = useMutation({
    mutationFn: async () => {
      if (draft.style) {
        const body = { style: savedForm(draft.style), default: true };
        return ok(api.PUT("/api/assets/{asset_id}/styles/{name}", { params: { path: place }, body }));
      }
      if (own) {
        const path = { ...place, name: own.name };
        await ok(api.DELETE("/api/assets/{asset_id}/styles/{name}", { params: { path } }));
      }
      return null;
    },
    onSuccess: async () => {
      await Promise.all([
        client.invalidateQueries({ queryKey: stylesKey(asset.asset_id) }),
        client.invalidateQueries({ queryKey: assetKey(asset.asset_id) }),
      ]);
      draft.discard();
      toast({ text: "Everybody who may see the asset now sees it so.", state: "completed" });
    },
  });
  const allowed = may("PUT /api/assets/{asset_id}/styles/{name}") && !asset.deleted_at;
  if (!allowed) {
    if (!draft.changed) return null;
    return (
      <section>
        <Button onClick={draft.discard}>Discard</Button>
        <span className="small dim">Only you see it so. The link of this page shows it, too.</span>
      </section>
    );
  }
  return (
    <section>
      {save.error ? <ErrorLine error={save.error} /> : null}
      <div className="line">
        <Button kind="primary" disabled={!draft.changed || save.isPending} onClick={() => save.mutate()}>
          {save.isPending ? "Saving" : "Save as style of the asset"}
        </Button>
        <Button disabled={!draft.changed || save.isPending} onClick={draft.discard}>
          Discard
        </Button>
      </div>
      <span className="small dim">Everybody who may see the asset then sees it so, and its tiles use it.</span>
    </section>
  );
}
