/** The style of all pages: readable on a phone, on a wide screen, in the dark, and on paper. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --ink: #1d2126; --faint: #5b6570; --line: #d5dae0; --band: #f4f6f8;
  --good: #1c6b3a; --warn-ground: #fff3d6; --warn-ink: #6b4700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --ink: #e6e9ec; --faint: #9aa5b0; --line: #363d44; --band: #1d2226;
    --good: #6fcf97; --warn-ground: #3a2f12; --warn-ink: #ffd98a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 3rem;
  background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 0.25rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
p { margin: 0.25rem 0 0.75rem; max-width: 46rem; }
.faint, caption { color: var(--faint); }
.alarm { background: var(--warn-ground); color: var(--warn-ink); padding: 0.75rem 1rem; font-weight: 600; }
.held { color: var(--good); font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 0.25rem 0; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.35rem 0.75rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { font-weight: 600; color: var(--faint); white-space: nowrap; }
tbody th { font-weight: 400; }
tfoot th, tfoot td { font-weight: 600; border-bottom: 0; border-top: 2px solid var(--ink); }
.number { text-align: right; white-space: nowrap; padding-right: 0; padding-left: 0.75rem; }
dl { display: grid; grid-template-columns: minmax(9rem, max-content) 1fr; gap: 0.35rem 1rem; margin: 0; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: 0.875em ui-monospace, monospace; overflow-wrap: anywhere; }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.5rem; }
  table { font-size: 0.8125rem; }
  thead th, .number { white-space: normal; }
  tbody th { overflow-wrap: anywhere; }
  .number { padding-left: 0.5rem; }
}
@media print {
  :root { --ground: #ffffff; --ink: #000000; --faint: #444444; --line: #999999; --warn-ground: #ffffff; --warn-ink: #000000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .alarm { border: 2px solid #000000; }
  .scroll { overflow: visible; }
  tr, dl { break-inside: avoid; }
  h2 { break-after: avoid; }
}
`;
