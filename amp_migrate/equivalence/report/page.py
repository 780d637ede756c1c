"""The style sheet of the HTML report."""

STYLE = """
:root { --ink: #1d2433; --soft: #5d6880; --line: #e3e7ee; --paper: #ffffff; --ground: #f4f6f9;
  --before: #9fc0e8; --after: #c2410c; --good: #15803d; --bad: #b91c1c; --open: #a16207; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #98a3b8; --line: #2c3444;
  --paper: #181d27; --ground: #10141b; --before: #3f6ea8; --after: #fb923c; --good: #4ade80;
  --bad: #f87171; --open: #facc15; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif }
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 60px }
header { border-left: 6px solid var(--open); padding: 4px 0 4px 20px; margin-bottom: 26px }
header.good { border-color: var(--good) } header.bad { border-color: var(--bad) }
header h1 { margin: 0; font-size: 40px; letter-spacing: .01em; line-height: 1.15 }
header.good h1 { color: var(--good) } header.bad h1 { color: var(--bad) }
header.open h1 { color: var(--open) } header h1 small { font-size: 20px; font-weight: 500 }
.tool { margin: 0; color: var(--soft); font-size: 13px; letter-spacing: .04em }
.reason { margin: 6px 0; font-size: 17px; max-width: 75ch }
.sides { margin: 6px 0 0; color: var(--soft); font-size: 14px }
.key { display: inline-block; width: 22px; height: 8px; border-radius: 4px; margin: 0 7px 1px 0 }
.key.before { background: var(--before) }
.key.after { background: var(--after); height: 3px; margin: 0 7px 3px 22px }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 20px 20px; margin-bottom: 18px }
h2 { font-size: 17px; margin: 0 0 12px } h2 small { font-weight: 400; color: var(--soft);
  font-size: 13px; margin-left: 8px }
.grid4 { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px 18px }
.grid2, .grid3 { display: grid; grid-template-columns: 1fr 1fr; gap: 18px }
.grid3 { grid-template-columns: 1fr 1fr 1fr }
@media (max-width: 900px) { .grid4, .grid2 { grid-template-columns: 1fr 1fr } }
figure { margin: 0 } figcaption { font-size: 13px; color: var(--soft); margin-bottom: 2px }
figure.same { display: flex; flex-direction: column; align-items: center; justify-content: center;
  border: 1px dashed var(--line); border-radius: 8px; min-height: 90px }
figure.same p { margin: 0; font-size: 26px; color: var(--good); line-height: 1 }
svg { width: 100%; height: auto; display: block; overflow: visible }
.grid { stroke: var(--line); stroke-width: 1 }
.tick { font-size: 10px; fill: var(--soft) }
path { fill: none; stroke-linejoin: round; stroke-linecap: round }
path.before { stroke: var(--before); stroke-width: 5 }
path.after { stroke: var(--after); stroke-width: 1.6 }
path.deviation { stroke: var(--after); stroke-width: 1.2 } .dot { fill: var(--after) }
path.band { fill: var(--before); opacity: .35; stroke: none }
.skip { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 1.5 3 }
.name, .value { font-size: 13px; fill: var(--ink) } .value { fill: var(--soft) }
.bar0 { fill: var(--soft); opacity: .55 } .bar1 { fill: var(--before) } .bar2 { fill: var(--after) } .bar3 { fill: var(--after); opacity: .55 }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: 13px;
  font-variant-numeric: tabular-nums }
th { text-align: left; color: var(--soft); font-weight: 500; white-space: nowrap }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line) }
td { font-family: ui-monospace, "SF Mono", Menlo, monospace; font-size: 12.5px }
tr.differs td { color: var(--bad) } .legend { color: var(--soft); font-size: 13px; margin: 0 0 8px }
code { overflow-wrap: anywhere } table.pair td:first-child { color: var(--soft); width: 90px }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 5px 20px; margin: 0;
  font-size: 14px } dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
"""
