/** Reads JSON objects, one a line, and prints what KEDA's schemas and types say against each of them. The schemas know
 * the values, and the types refuse a field that does not exist. The folder of the packages is the first argument. */

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(join(folder, "node_modules", name)).href);
const models = await load("@kubernetes-models/keda/keda.sh/v1alpha1/index.js");
const ts = require("typescript");

const lines = ['import type { IScaledObject, ITriggerAuthentication } from "@kubernetes-models/keda/keda.sh/v1alpha1";'];
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...rest } = JSON.parse(line);
  try {
    new models[kind](rest).validate();
  } catch (error) {
    console.log(`${kind} ${rest.metadata?.name}: ${error.message}`);
  }
  lines.push(`export const object${lines.length}: I${kind} = ${line};`);
}

const file = join(folder, `objects-${process.pid}.ts`);
writeFileSync(file, lines.join("\n"));
const options = { strict: true, noEmit: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, types: [] };
for (const { messageText } of ts.getPreEmitDiagnostics(ts.createProgram([file], options))) {
  console.log(ts.flattenDiagnosticMessageText(messageText, "\n"));
}
ts.sys.deleteFile(file);
