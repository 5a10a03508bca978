#!/usr/bin/env python3
"""Makes the reference: the output of `trainer list --json` and --help as Markdown pages.

usage: reference.py TRAINER

Prints schema/reference.json, from which the pages are made without a built program. `make schema`
writes that file.
"""

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

# Plug-ins that are built with the trainer.
PLUGINS = ("rtdetr.so", "yolox.so")
# For each type of component: the title of its page, and how a configuration declares one.
KINDS = {
    "stages": ("Stages", '[[data.stages]]\ntype = "{name}"'),
    "sources": ("Sources", '[[data.sources]]\ntype = "{name}"'),
    "callbacks": ("Callbacks", "[callbacks.{name}]"),
}


def in_table(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def type_of(default: str) -> str:
    """Returns the type of a value from its TOML text."""
    if default in ("true", "false"):
        return "boolean"
    if default.startswith("["):
        return "list"
    if default.startswith("{"):
        return "table"
    if re.fullmatch(r'"\d+ (second|minute|hour)s?"', default):
        return "duration"
    if default.startswith('"'):
        return "string"
    return "integer" if re.fullmatch(r"-?\d+", default) else "number"


def options_table(options: list[dict[str, Any]]) -> str:
    if not options:
        return "No options.\n"
    rows = ["| option | type | default | legal values | description |", "|---|---|---|---|---|"]
    for option in options:
        default = f"`{option['default']}`"
        if option["follows"]:
            default = f"as `{option['follows']}`"
        rows.append(f"| `{option['name']}` | {type_of(option['default'])} | {in_table(default)} | "
                    f"{in_table(option['legal'] or '')} | {in_table(option['doc'])} |")
    return "\n".join(rows) + "\n"


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def component(kind: str, entry: dict[str, Any], level: str) -> str:
    table = KINDS[kind][1].format(name=entry["name"]) if kind in KINDS else ""
    by = f" Part of the plug-in `{entry['plugin']}`." if entry.get("plugin") else ""
    always = " Active in every run." if entry.get("in_every_run") else ""
    text = f"{level} {entry['name']}\n\n{sentence(entry['doc'])}{always}{by}\n\n"
    if table:
        text += f"```toml\n{table}\n```\n\n"
    return text + options_table(entry["options"])


def tables_page(tables: list[dict[str, Any]]) -> str:
    text = ("# Tables of a configuration\n\nThe keys that every configuration may have. The keys "
            "of a component (a detector, a stage, a source, a callback) are described on its own "
            "page; they belong to the table that has its `type`.\n")
    for table in tables:
        name = table["name"]
        title = f"[{name}]" if name else "Before all tables"
        heading = f"## {title}" if not name else f"## `{title}`"
        text += f"\n{heading}\n\n{sentence(table['doc'])}\n\n{options_table(table['options'])}"
    return text


def detector_page(entry: dict[str, Any]) -> str:
    """Returns the page of a detector, with options by table: `rpn.nms_thresh` is in [model.rpn]."""
    plugin = ""
    if entry["plugin"]:
        plugin = f"plugins = [\"{entry['plugin']}\"]\n\n"
    text = (f"# {entry['name']}\n\n{sentence(entry['doc'])}\n\n"
            f"```toml\n{plugin}[model]\ntype = \"{entry['name']}\"\n```\n")
    tables: dict[str, list[dict[str, Any]]] = {}
    for option in entry["options"]:
        table, _, name = option["name"].rpartition(".")
        tables.setdefault(table, []).append({**option, "name": name})
    for table, options in tables.items():
        text += f"\n## `[model{'.' + table if table else ''}]`\n\n{options_table(options)}"
    return text


def registry_of(trainer: str) -> dict[str, Any]:
    """Returns the registered components of the trainer and its own plug-ins."""
    plugins = [word for name in PLUGINS for word in ("--plugin", name)]
    listed = subprocess.run([trainer, "list", "--json", *plugins], check=True, capture_output=True,
                            text=True)
    registry = json.loads(listed.stdout)
    for kind in ("detectors", *KINDS):
        for entry in registry[kind]:
            if entry["plugin"]:  # without its path on this machine
                entry["plugin"] = pathlib.PurePath(entry["plugin"]).name
    return registry


def reference_pages(known: dict[str, Any]) -> dict[str, str]:
    """Returns Markdown pages by name, made from schema/reference.json."""
    registry = known["registry"]
    pages = {"tables": tables_page(registry["tables"])}
    for entry in registry["detectors"]:
        pages[f"detector-{entry['name']}"] = detector_page(entry)
    for kind, (title, _) in KINDS.items():
        pages[kind] = f"# {title}\n\n" + "\n".join(
            component(kind, entry, "##") for entry in registry[kind])
    return {**pages, "commands": commands_page(known["commands"])}


def commands_of(trainer: str, *words: str) -> dict[str, str]:
    """Returns the help of every command by the words that call it."""
    text = subprocess.run([trainer, *words, "--help"], check=True, capture_output=True,
                          text=True).stdout
    found = {" ".join(words): text}
    _, heading, below = text.partition("\nSubcommands:\n")
    if heading:
        for line in below.split("\n\n")[0].splitlines():
            if line.startswith("  ") and not line.startswith("   "):
                found.update(commands_of(trainer, *words, line.split()[0]))
    return found


def commands_page(commands: dict[str, str]) -> str:
    text = "# Commands\n\nThe `--help` text of each command.\n"
    for words, usage in commands.items():
        text += f"\n## `trainer{' ' + words if words else ''}`\n\n```text\n{usage.rstrip()}\n```\n"
    return text


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    known = {"registry": registry_of(sys.argv[1]), "commands": commands_of(sys.argv[1])}
    print(json.dumps(known, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
