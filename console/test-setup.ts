/** Node 18 has what browsers call `crypto`, but under another name. */

import { webcrypto } from "node:crypto";

if (!globalThis.crypto) Object.defineProperty(globalThis, "crypto", { value: webcrypto });
