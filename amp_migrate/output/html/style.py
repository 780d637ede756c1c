"""The style sheet of the page."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5d6880; --faint: #99a3b5;
  --line: #e1e6ee; --paper: #ffffff; --ground: #f3f5f9; --sink: #f8f9fc; --link: #1d4ed8;
  --left: #b91c1c; --fixed: #a16207; --note: #0e7490; --migrated: #15803d; --routine: #64748b;
  --gone: #fdeeec; --gone-mark: #f8ccc6; --come: #e7f6ea; --come-mark: #b4e4c1; --moved: #f1f4fa;
  --k: #7c3aed; --s: #0f766e; --n: #b45309; --c: #7f8aa0; --f: #1d4ed8; --b: #0369a1; --d: #a16207;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8f0; --soft: #9aa5ba; --faint: #66718a;
  --line: #2a3242; --paper: #171c26; --ground: #0f131a; --sink: #131821; --link: #8ab4ff;
  --left: #f87171; --fixed: #facc15; --note: #67d3e8; --migrated: #4ade80; --routine: #94a3b8;
  --gone: #33191b; --gone-mark: #6b2a2c; --come: #122a1b; --come-mark: #1f5a35; --moved: #1c2330;
  --k: #c4a5fd; --s: #5ed3c3; --n: #fdba74; --c: #7c879d; --f: #93b8ff; --b: #7dc8f5; --d: #eec55e } }
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 64px }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
header, main, footer, nav { max-width: 1560px; margin: 0 auto; padding: 0 28px }
header { padding-top: 34px } footer { padding: 24px 28px 60px; color: var(--soft); font-size: 13px }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px }
.skip { position: absolute; left: -999px } .skip:focus { left: 12px; top: 8px; background: var(--paper);
  padding: 6px 12px; z-index: 9 }
.tool { margin: 0; color: var(--soft); font-size: 13px; letter-spacing: .05em }
h1 { margin: 2px 0 4px; font-size: 34px; line-height: 1.2; letter-spacing: -.01em; overflow-wrap: anywhere }
.lead { margin: 0 0 20px; font-size: 17px; color: var(--soft); max-width: 110ch }
.bar { display: flex; gap: 3px; height: 12px; border-radius: 6px; overflow: hidden; background: var(--line) }
.bar .migrated { background: var(--migrated) } .bar .fixed { background: var(--fixed) }
.bar .left { background: var(--left) }
.tally { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 44px; margin: 10px 0 0; padding: 0 }
.tally li { font-size: 15px; font-weight: 600; color: var(--soft) } .tally b { font-size: 26px }
.tally small { display: block; font-weight: 400; font-size: 13px; color: var(--soft) }
.tally .migrated { color: var(--migrated) } .tally .fixed { color: var(--fixed) }
.tally .left { color: var(--left) }
nav { position: sticky; top: 0; z-index: 5; background: var(--ground); padding-top: 14px; padding-bottom: 10px;
  display: flex; gap: 22px; font-size: 14px; border-bottom: 1px solid var(--line); margin-bottom: 20px }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 22px 18px; margin-bottom: 18px }
#files { background: none; border: 0; padding: 8px 0 0; margin-bottom: 2px }
h2 { font-size: 18px; margin: 0 0 10px } h2 small { font-weight: 400; color: var(--soft); font-size: 13px;
  margin-left: 8px }
code { font: .9em var(--mono); background: var(--sink); border: 1px solid var(--line); border-radius: 4px;
  padding: 0 4px; overflow-wrap: anywhere }
.code { font: 600 12px var(--mono); color: inherit } .quiet { color: var(--soft); font-size: 13px }
.chip { display: inline-block; font-size: 12.5px; font-weight: 600; border: 1px solid; border-radius: 20px;
  padding: 0 9px; white-space: nowrap }
.left.chip { color: var(--left) } .fixed.chip { color: var(--fixed) } .note.chip { color: var(--note) }
.migrated.chip { color: var(--migrated) }
.told { list-style: none; margin: 0; padding: 0 }
.told li { border-left: 4px solid var(--routine); padding: 1px 0 1px 14px; margin: 12px 0; max-width: 130ch }
.told .left { border-color: var(--left) } .told .fixed { border-color: var(--fixed) }
.told .note { border-color: var(--note) } .told p { margin: 0 }
.told .left .code { color: var(--left) } .told .fixed .code { color: var(--fixed) }
.told .note .code { color: var(--note) }
.told .do { font-weight: 600 } .told .note .do { font-weight: 400 }
.kept { color: var(--soft); font-size: 13.5px } .kept a { margin-right: 6px; white-space: nowrap }
.wide { overflow-x: auto } .programs { border-collapse: collapse; width: 100%; font-size: 14px }
.programs th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px }
.programs td, .programs th { padding: 4px 22px 4px 0; vertical-align: top }
.programs tbody { border-top: 1px solid var(--line) } .programs p { margin: 2px 0; font-size: 13px;
  color: var(--soft); max-width: 44ch } .programs td:first-child { white-space: nowrap }
.use { display: inline-block; font: 12px var(--mono); color: var(--ink); background: var(--sink);
  border: 1px solid var(--line); border-radius: 5px; padding: 1px 7px; margin: 1px 4px 3px 0 }
.use b { color: var(--soft); font-weight: 500 }
.file { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; margin: 0 0 16px;
  content-visibility: auto; contain-intrinsic-size: auto 700px; overflow: clip }
.file > summary { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; padding: 10px 18px;
  cursor: pointer; background: var(--sink) }
.file > summary::before { content: "▸"; color: var(--faint) } .file[open] > summary::before { content: "▾" }
h3 { margin: 0; font: 600 14px var(--mono); overflow-wrap: anywhere }
.lines { font: 12.5px var(--mono); color: var(--soft); margin-right: auto }
.come { color: var(--migrated) } .gone { color: var(--left) }
.heads, .hunk { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr) 330px }
.heads.one, .hunk.one { grid-template-columns: minmax(0, 1fr) 330px } .hunk table { grid-column: 1 / -2 }
.heads { color: var(--soft); font-size: 12px; border-top: 1px solid var(--line) }
.heads span { padding: 3px 0 3px 18px }
.hunk { border-top: 1px solid var(--line) }
.hunk table { border-collapse: collapse; table-layout: fixed; width: 100%; font: 12.5px/1.6 var(--mono);
  tab-size: 4; align-self: start }
.hunk th { width: 46px; text-align: right; padding: 0 8px 0 0; font-weight: 400; color: var(--faint);
  vertical-align: top; user-select: none }
.hunk td { --i: 0; padding: 0 10px 0 calc((var(--i) + 3) * 1ch); text-indent: -2ch; white-space: pre-wrap; overflow-wrap: anywhere; vertical-align: top }
.hunk s { float: left; margin-left: calc(var(--i) * -1ch); text-indent: 0; text-decoration: none }
.hunk td + th { border-left: 1px solid var(--line) }
.hunk i { font-style: normal } .hunk .k { color: var(--k) } .hunk .s { color: var(--s) }
.hunk .n { color: var(--n) } .hunk .c { color: var(--c); font-style: italic } .hunk .f { color: var(--f) }
.hunk .b { color: var(--b) } .hunk .d { color: var(--d) }
mark { color: inherit; border-radius: 3px }
.changed td:nth-child(2) { background: var(--gone) } .changed td:nth-child(2) mark { background: var(--gone-mark) }
.changed td:nth-child(4) { background: var(--come) } .changed td:nth-child(4) mark { background: var(--come-mark) }
.changed td.void, td.void { background: none } .moved td { background: var(--moved) }
.hunk th a { color: inherit; display: block } .hunk th[id] { font-weight: 700; box-shadow: inset 3px 0 }
th.left { color: var(--left) } th.fixed { color: var(--fixed) } th.note { color: var(--note) }
th.migrated { color: var(--migrated) } th.routine { color: var(--routine) }
th:target, .why li:target { background: #fde68a66 }
.why { list-style: none; margin: 0; padding: 4px 16px 8px 14px; font-size: 13px; line-height: 1.45;
  border-left: 1px solid var(--line); background: var(--sink) }
.why li { position: relative; padding: 3px 4px 3px 46px; border-radius: 4px }
.why .at { position: absolute; left: 4px; width: 34px; text-align: right; font: 12px/1.55 var(--mono);
  color: var(--soft) }
.why p { margin: 0 0 2px } .why code { border: 0; padding: 0; background: none; font-size: 12px }
.why .left .code { color: var(--left) } .why .fixed .code { color: var(--fixed) }
.why .note .code { color: var(--note) } .why .migrated .code { color: var(--migrated) }
.why .routine .code { color: var(--routine) } .advice { display: block; color: var(--soft) }
.why .left .advice { color: inherit; font-weight: 600 }
.fold summary { font-size: 12px; color: var(--faint); padding: 2px 18px 2px 54px; cursor: pointer;
  border-top: 1px solid var(--line); background: var(--sink) }
.fold pre { margin: 0; padding: 4px 18px 6px 50px; font: 12.5px/1.6 var(--mono); color: var(--soft);
  overflow-x: auto; tab-size: 4 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 8px 20px; margin: 0; max-width: 120ch }
dt { font: 600 13px/1.7 var(--mono) } dd { margin: 0; font-size: 14px }
.next { margin: 0; padding-left: 20px } .next li { margin: 4px 0 } .next span { color: var(--soft) }
@media (max-width: 1150px) { .heads, .hunk { grid-template-columns: 1fr 1fr }
  .heads.one, .hunk.one { grid-template-columns: 1fr } .hunk table { grid-column: 1 / -1 }
  .heads span:last-child { display: none } .why { grid-column: 1 / -1; border-left: 0;
  border-top: 1px dashed var(--line) } .why:empty { display: none } }
@media print { :root { --ground: #fff } body { zoom: .7 } nav, .skip, .fold { display: none }
  header, main { max-width: none; padding: 0 } header { margin-bottom: 20px } a { color: inherit }
  .file { content-visibility: visible; overflow: visible } .file::details-content { content-visibility: visible;
  display: block } .heads, .hunk { grid-template-columns: 1fr 1fr } .heads.one, .hunk.one { grid-template-columns: 1fr }
  .hunk table { grid-column: 1 / -1 } .heads span:last-child { display: none } .why { grid-column: 1 / -1;
  border-left: 0; border-top: 1px dashed var(--line) } .why:empty { display: none }
  .told li, .programs tbody, .why li, tr { break-inside: avoid } h2, h3, summary, .heads { break-after: avoid }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""
