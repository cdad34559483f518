/**
 * The service's own code with one condition cut out, loaded beside the whole of it: what imports it by `load` runs
 * on it, and nobody else does.
 */
import { join } from "node:path";
import { createServer, type Plugin } from "vite";

const ROOT = join(import.meta.dirname, "../..");

export interface Cut {
  file: string;
  /** Stands in it once. */
  text: string;
  instead: string;
}

/** A module by its path from the root. */
export type Load = <T>(path: string) => Promise<T>;

/** The code as it is. */
export const whole: Load = (path) => import(join(ROOT, path));

/** `load` throws where the text does not stand in the file once. */
export async function cutOut(cut: Cut): Promise<{ load: Load; close(): Promise<void> }> {
  const server = await createServer({
    root: ROOT,
    configFile: false,
    logLevel: "silent",
    appType: "custom",
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
    resolve: {
      alias: [{ find: /^.*\/start-worker\.ts$/, replacement: join(ROOT, "test/start-worker.ts") }],
    },
    plugins: [cutting(cut)],
  });
  return {
    load: async <T>(path: string) => (await server.ssrLoadModule(`/${path}`)) as T,
    close: () => server.close(),
  };
}

function cutting({ file, instead, text }: Cut): Plugin {
  return {
    name: "cut",
    enforce: "pre",
    transform(code, id) {
      if (id !== join(ROOT, file)) return undefined;
      const parts = code.split(text);
      if (parts.length !== 2)
        throw new Error(`${file}: "${text}" stands there ${parts.length - 1} times`);
      return parts.join(instead);
    },
  };
}
