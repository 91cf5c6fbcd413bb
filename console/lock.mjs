/** Completes package-lock.json: takes the registry's host out of it, and notes the packages for other systems that the
 * registry of the machine that wrote it did not have. `npm ci` wants them named, and skips them elsewhere. */

import { readFileSync, writeFileSync } from "node:fs";

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "openbsd", "openharmony", "win32"];
const PROCESSORS = ["arm64", "arm", "ia32", "loong64", "ppc64", "riscv64", "s390x", "x64"];

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
for (const entry of Object.values(lock.packages)) {
  delete entry.resolved;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const place = `node_modules/${name}`;
    const system = SYSTEMS.find((word) => name.includes(word));
    const processor = PROCESSORS.find((word) => name.includes(`-${word}`));
    if (!lock.packages[place] && system && processor) {
      lock.packages[place] = { version, cpu: [processor], dev: true, optional: true, os: [system] };
    }
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([one], [other]) => (one < other ? -1 : 1)));
writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
