/** Node 18 has what browsers call `crypto` and `File`, but under other names. */

import { File as NodeFile } from "node:buffer";
import { webcrypto } from "node:crypto";

if (!globalThis.crypto) Object.defineProperty(globalThis, "crypto", { value: webcrypto });
if (!globalThis.File) Object.defineProperty(globalThis, "File", { value: NodeFile });
