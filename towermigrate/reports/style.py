"""The style sheet of the page."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --text: #1c2127; --dim: #5b6570; --back: #fff; --card: #f6f7f9;
  --line: #d8dde3; --link: #0b5cad; --red: #b3261e; --amber: #8a5a00; --blue: #1f5fa8; --green: #19692c;
  --gone: #fdeceb; --gone-mark: #f8c4c0; --come: #e8f6ea; --come-mark: #aee3b8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe4ea; --dim: #98a3ae; --back: #14181c; --card: #1c2227; --line: #343c44; --link: #7db7f5;
    --red: #ff8a80; --amber: #e8b450; --blue: #8ab8f0; --green: #7fd592;
    --gone: #351c1c; --gone-mark: #73302c; --come: #17301d; --come-mark: #22602f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 15px; }
header, main, footer { max-width: 1500px; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 1.5rem; }
footer { color: var(--dim); padding-block: 2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1.05rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
small { color: var(--dim); font-weight: normal; font-size: .85rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre, .diff { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .9em; overflow-wrap: anywhere; }
pre { background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .6rem .8rem;
  overflow-x: auto; font-size: .85rem; }
p { margin: .4rem 0; max-width: 75rem; }
i { color: var(--red); font-style: normal; border: 1px solid currentColor; border-radius: 3px; font-size: .8em; }
nav { display: flex; gap: 1.25rem; }
summary { cursor: pointer; }
.numbers { list-style: none; display: flex; flex-wrap: wrap; gap: .75rem; padding: 0; margin: 0 0 1rem; }
.numbers li { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .5rem 1rem;
  color: var(--dim); }
.numbers b { display: block; color: var(--text); font-size: 1.5rem; line-height: 1.2; }
p.error { color: var(--red); overflow-wrap: anywhere; }
article { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--mark, var(--line));
  border-radius: 6px; padding: .9rem 1.1rem; margin: 0 0 1rem; }
.converted { --mark: var(--green); } .refused, .error { --mark: var(--red); }
.warning { --mark: var(--amber); } .info { --mark: var(--blue); } .reason { --mark: var(--dim); }
.badge { color: var(--mark); border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem; font-size: .8rem;
  font-weight: normal; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: .5rem 0; }
dt { color: var(--dim); } dd { margin: 0; }
.wide { overflow-x: auto; }
.facts { border-collapse: collapse; margin: .75rem 0; }
.facts code { overflow-wrap: normal; }
.facts caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
.facts th { color: var(--dim); font-weight: normal; }
.facts th, .facts td { text-align: left; vertical-align: top; padding: .25rem 1.25rem .25rem 0;
  border-bottom: 1px solid var(--line); }
.findings, .places { padding-left: 0; list-style: none; margin: .5rem 0; }
.findings > li { border-left: 3px solid var(--mark); padding: .1rem 0 .1rem .75rem; margin: .35rem 0;
  overflow-wrap: anywhere; }
.findings b { color: var(--mark); } .findings p b { color: inherit; }
.places li { padding: .12rem 0; overflow-wrap: anywhere; }
.file { border: 1px solid var(--line); border-radius: 6px; margin: 0 0 .5rem; }
.file > summary { padding: .45rem .9rem; background: var(--card); border-radius: 6px; }
.minus { color: var(--red); } .plus { color: var(--green); }
.diff { border-collapse: collapse; table-layout: fixed; width: 100%; font-size: 12.5px; line-height: 1.45; }
.diff col.n { width: 3.6rem; }
.diff td { padding: 0 .4rem 0 1.1rem; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere;
  position: relative; tab-size: 4; }
.diff td:nth-child(odd) { color: var(--dim); text-align: right; padding: 0 .5rem 0 0; user-select: none; }
.diff td:nth-child(3) { border-left: 1px solid var(--line); }
.diff .o { background: var(--gone); } .diff .w { background: var(--come); } .diff .x { background: var(--card); }
.diff .o::before, .diff .w::before { position: absolute; left: .3rem; color: var(--dim); user-select: none; }
.diff .o::before { content: "−"; } .diff .w::before { content: "+"; }
.diff b { font-weight: inherit; border-radius: 2px; }
.diff .o b { background: var(--gone-mark); } .diff .w b { background: var(--come-mark); }
.fold { color: var(--dim); font-size: 12.5px; margin: 0; max-width: none; }
p.fold, .fold > summary { padding: .2rem .9rem; background: var(--card); border-block: 1px solid var(--line); }
:target { outline: 2px solid var(--link); outline-offset: -2px; }
.file > div { scroll-margin-top: 3rem; }
@media print { article, .file { break-inside: avoid-page; } }
"""
