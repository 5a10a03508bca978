"""Formats the result of a study as text."""

from __future__ import annotations

import math
from typing import Any

from .._command import counted
from .noise import Noise, moments
from .result import TYPES, Json


def duration_text(seconds: float) -> str:
    """Returns a time such as "1:02:03", "2:03" or "3.2 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(math.floor(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def study_text(result: Json) -> str:
    """Formats tables of metrics, differences from the first variant, and omissions."""
    failed = f", {result['failed']} failed" if result["failed"] else ""
    lines = [
        f"{result['name']}: {result['done']} of {counted(result['runs'], 'run')} done{failed}; "
        f"{counted(result['images'], 'image')}, {counted(result['maths_threads'], 'maths thread')}"
    ]
    for variant in result["variants"]:
        lines += ["", variant["name"], *variant_lines(variant)]
    last = ""
    for it in result["differences"]:
        if it["variant"] != last:
            lines += ["", f"{it['variant']} against {it['against']}"]
        last = it["variant"]
        lines.append(f"  {title_of(it['figure'])}: {it['sentence']}")
        if len(it["by_seed"]) > 1:
            low, high, p = (it["bootstrap"][key] for key in ("low", "high", "p"))
            lines.append(
                f"    bootstrap over seeds and images: {100 * low:+.2f} .. {100 * high:+.2f}, "
                f"p = {p:.3f}"
            )
    if len(result["variants"]) == 1:
        lines += outlook(result["variants"][0])
    if result["left_out"]:
        lines += ["", "Left out", *(f"  {one}" for one in result["left_out"])]
    return "\n".join(lines)


def variant_lines(variant: Json) -> list[str]:
    count = len(variant["seeds"])
    if count == 0:
        return ["  no finished run"]
    each = "" if count == 1 else " each"
    return [
        f"  {counted(count, 'seed')}, {duration_text(moments(variant['seconds']).mean)}{each}",
        f"  {'':<13}{'mean':>6}{'sd':>7}   {'min':>6} .. {'max':<6}   95 % of the mean",
        *(figure_line(name, figure) for name, figure in variant["figures"].items()),
    ]


def figure_line(name: str, figure: Json) -> str:
    mean, sd, least, most, low, high = (
        percent(figure[key]) for key in ("mean", "sd", "min", "max", "mean_low", "mean_high")
    )
    interval = "-" if low == "-" else f"{low:>6} .. {high}"
    return f"  {title_of(name):<13}{mean:>6}{sd:>7}   {least:>6} .. {most:<6}   {interval}"


def percent(share: Any) -> str:
    return "-" if share is None or math.isnan(share) else f"{100 * share:.2f}"


def title_of(figure: str) -> str:
    """Returns the title of a metric: "mask AP50" for "segm/AP50"."""
    iou, _, name = figure.partition("/")
    return f"{TYPES[iou]} {name}"


def outlook(only: Json) -> list[str]:
    """Returns the difference that another variant must have to be detected with the same number of
    seeds."""
    ap = only["figures"].get("bbox/AP")
    if not ap or len(ap["values"]) < 2:
        return []
    noise = Noise(math.sqrt(2) * ap["sd"])
    least = 100 * noise.detectable(len(ap["values"]))
    return [
        "",
        "With the same seeds and images, another variant can be distinguished if its box AP "
        f"differs by {least:.2f} or more (power 80 %, alpha 5 %), assuming equal variation of "
        "its runs.",
    ]
