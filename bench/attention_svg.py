#!/usr/bin/env python3
"""Draws results of attention_cpu.py: one group of bars a cell, one row of groups a dtype.

    python3 bench/attention_svg.py bench/results/attention_cpu.json > docs/attention_cpu.svg
"""
import json
import sys

COLOURS = {"tilewright": "#1f6f8b", "torch": "#d98e5f", "onnxruntime": "#a3b18a", "openvino": "#b8a9c9"}
NAMES = {"tilewright": "Tilewright", "torch": "PyTorch", "onnxruntime": "ONNX Runtime",
         "openvino": "OpenVINO"}
BAR, GAP, HEIGHT, LEFT, TOP = 15, 26, 130, 64, 62


def text(x, y, what, size=11, anchor="middle", colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{what}</text>')


def group(cell, x, base, scale):
    """The bars of one cell, and what is below them."""
    out = []
    for i, side in enumerate(COLOURS):
        value = cell["gflops"].get(side)
        if value is None:
            continue
        h = value * scale
        out.append(f'<rect x="{x + i * BAR:.1f}" y="{base - h:.1f}" width="{BAR - 2}" height="{h:.1f}" '
                   f'fill="{COLOURS[side]}"><title>{NAMES[side]}: {value:.0f} GFLOP/s</title></rect>')
        if side == "tilewright":
            out.append(text(x + BAR / 2 - 1, base - h - 4, f"{value:.0f}", 9))
    middle = x + 2 * BAR
    out.append(text(middle, base + 14, f"D {cell['D']}, N {cell['N']}", 10))
    out.append(text(middle, base + 26, "causal" if cell["causal"] else "&#160;", 10, colour="#777"))
    return out


def row(dtype, cells, top, width):
    most = max(v for c in cells for s, v in c["gflops"].items() if s in COLOURS)
    scale, base = (HEIGHT - 14) / most, top + HEIGHT
    step = 50 if most < 260 else 100
    out = [text(14, top + HEIGHT / 2, dtype, 14, "start")]
    for value in range(0, int(most) + 1, step):
        y = base - value * scale
        out.append(f'<line x1="{LEFT}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(LEFT - 6, y + 3, value, 9, "end", "#777"))
    for i, cell in enumerate(cells):
        out += group(cell, LEFT + 10 + i * (4 * BAR + GAP), base, scale)
    return out


def draw(results):
    dtypes = list(dict.fromkeys(c["dtype"] for c in results["cells"]))
    columns = max(sum(c["dtype"] == t for c in results["cells"]) for t in dtypes)
    width = LEFT + 20 + columns * (4 * BAR + GAP)
    height = TOP + len(dtypes) * (HEIGHT + 44) + 6
    m = results["machine"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text(14, 22, "Forward attention on the CPU, GFLOP/s (higher is better)", 15, "start"),
           text(14, 40, f"{m['cpu']} (family {m['family']}, model {m['model']}), {results['threads']} "
                f"threads, {results['target']}, {m['date']}, commit {m['commit']}", 10, "start", "#777")]
    x = width - 10 - 100 * len(COLOURS)
    for side, colour in COLOURS.items():
        out.append(f'<rect x="{x}" y="46" width="10" height="10" fill="{colour}"/>')
        out.append(text(x + 14, 55, NAMES[side], 11, "start"))
        x += 100
    for i, dtype in enumerate(dtypes):
        cells = [c for c in results["cells"] if c["dtype"] == dtype]
        out += row(dtype, cells, TOP + i * (HEIGHT + 44) + 8, width)
    return "\n".join(out + ["</svg>"]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        sys.stdout.write(draw(json.load(f)))
