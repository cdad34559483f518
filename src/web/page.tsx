/** The frame of every page: no scripts, nothing from elsewhere, light or dark as the reader has it. */
import { createHash } from "node:crypto";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { STYLE } from "./style.ts";

/** A page and the policy that it is served under (CSP Level 3). */
export interface Page {
  html: string;
  policy: string;
}

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** The one style is named by its hash; whatever else a text might come to hold is not loaded and not run. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${STYLE_HASH}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function page({ title, children }: { title: string; children: Child }): Page {
  const document = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <style>{raw(STYLE)}</style>
      </head>
      <body>{children}</body>
    </html>
  );
  return { html: `<!doctype html>${String(document)}`, policy: POLICY };
}
