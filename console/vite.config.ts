import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Writes each file a second time, compressed: the gateway sends it as it is. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle(options, bundle) {
      for (const name of Object.keys(bundle)) {
        if (/\.(m?js|css|json|svg)$/.test(name)) {
          const file = join(options.dir ?? "", name);
          writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
        }
      }
    },
  };
}

export default defineConfig({
  base: "/console/",
  resolve: { alias: { "@": join(here, "src") } },
  esbuild: { jsx: "automatic", legalComments: "none" },
  plugins: [compressed()],
  build: {
    outDir: join(here, "../src/geomill/console_files"),
    emptyOutDir: true,
    target: "es2022",
    assetsDir: "files",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: "manifest.json",
    chunkSizeWarningLimit: 1500,
    reportCompressedSize: false,
    rollupOptions: {
      onwarn(warning, warn) {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning); // "use client" means nothing here
      },
    },
  },
  worker: { format: "es" },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/health", "/metrics", "/stac", "/raster", "/vector", "/viewer"].map((path) => [
        path,
        process.env.GEOMILL_URL ?? "http://127.0.0.1:8000",
      ]),
    ),
  },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], setupFiles: ["test-setup.ts"] },
} as Parameters<typeof defineConfig>[0]);
