import type { AssetDetails } from "@/api/schema";
import { Empty } from "@/components/Empty";
import { Table } from "@/components/Table";
import { bytes } from "@/format/number";
import { filesOf, type OutputFile } from "@/map/outputs";

/** The address of a file: its path below the folder of the revision. */
export function filePath(asset: AssetDetails, file: OutputFile): string {
  const inside = file.path.replace(/^.*?\/_r[0-9]+\//, "");
  return `/stac/files/${asset.asset_id}/${asset.served_revision}/${inside.split("/").map(encodeURIComponent).join("/")}`;
}

/** The file that has all the data, if it is one. */
export function dataFile(asset: AssetDetails): OutputFile | null {
  return filesOf(asset.outputs).find((file) => file.role === "data" && file.path.endsWith(".tif")) ?? null;
}

export function Files({ asset, files }: { asset: AssetDetails; files: readonly OutputFile[] }) {
  return (
    <Table
      label="Files"
      rows={files}
      rowKey={(file) => file.path}
      empty={<Empty title="No files">Features lie in the database; download them with the button above.</Empty>}
      columns={[
        {
          name: "path",
          head: "File",
          cut: true,
          cell: (file) => (
            <a className="mono" href={filePath(asset, file)} download title={file.path}>
              {file.path.replace(/^.*?\/_r[0-9]+\//, "")}
            </a>
          ),
        },
        { name: "role", head: "Role", width: 130, cell: (file) => file.role.replaceAll("_", " ") },
        { name: "size", head: "Size", num: true, width: 100, cell: (file) => bytes(file.size) },
        {
          name: "sha",
          head: "SHA-256",
          width: 150,
          desk: true,
          cell: (file) => <Hash sha256={file.sha256} />,
        },
      ]}
    />
  );
}

/** The beginning and the end of a hash; whole on hover. */
export function Hash({ sha256 }: { sha256: string | null | undefined }) {
  if (!sha256) return <span className="dim">–</span>;
  return (
    <code className="dim" title={sha256}>
      {sha256.slice(0, 4)}…{sha256.slice(-4)}
    </code>
  );
}
