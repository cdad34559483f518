/** `npm run build:browser`: what verifies, as one ES module that depends on nothing (decision 0017). */
import { defineConfig } from "vite";

export default defineConfig({
  publicDir: false,
  build: {
    lib: { entry: "audit/browser.ts", formats: ["es"], fileName: () => "minutebook-audit.js" },
    outDir: "dist/browser",
    target: "es2022",
    // Whoever audits the auditor reads it.
    minify: false,
  },
});
