"""Reads YAML as detectron2 does: plain and quoted strings that are Python literals become their
values. Tags create no objects."""

from __future__ import annotations

from typing import Any

from millrace.migrate.errors import Place, RecipeError, TooLargeError
from millrace.migrate.literals import literal_of, read_expression
from millrace.migrate.values import DEEPEST, Budget, Value

try:
    import yaml
except ModuleNotFoundError as missing:
    raise RecipeError(
        "PyYAML not found, which reads detectron2's recipes; install it with "
        'pip install "millrace[migrate]" or apt install python3-yaml'
    ) from missing

_WORDS = {  # special words in YAML 1.1, without quotes
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "on", "On"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "off", "Off"), False),
    **dict.fromkeys(("", "~", "null", "Null"), None),
}
_PLAIN = "plain"  # used in place of a tag


class _Loader(yaml.SafeLoader):
    """Composes nodes without constructing objects."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else ""


def parse_yaml(text: str, source: str, budget: Budget) -> Value:
    """Reads one document, a mapping or empty. Raises RecipeError, naming the line, also for tags
    that would create Python objects (except lists written as an expression, as in detectron2's
    RetinaNet)."""
    root = _composed(text, source)
    if root is None or (isinstance(root, yaml.ScalarNode) and root.value == ""):
        return Value({}, Place(source, 1))
    if not isinstance(root, yaml.MappingNode):
        raise RecipeError(f"{source}:1: expected keys with values")
    return _Reader(source, budget).value(root)


def _composed(text: str, source: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise RecipeError.at(
            Place(source, line), f"invalid YAML: {problem.problem}"
        ) from None
    except yaml.YAMLError as problem:  # a control character
        raise RecipeError.at(Place(source, 1), f"invalid YAML: {problem}") from None
    except RecursionError:
        line = loader.line + 1 if loader else 1
        raise TooLargeError.at(Place(source, line), "values are nested too deeply") from None


class _Reader:
    """Computes the values of nodes. A node repeated by aliases is read once but counted each
    time."""

    def __init__(self, source: str, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._known: dict[int, Value] = {}
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Value:
        place = self._place(node)
        if id(node) in self._known:
            return self._budget.take(self._known[id(node)], place)
        if id(node) in self._open or len(self._open) >= DEEPEST:
            raise TooLargeError.at(place, "values are nested too deeply or contain themselves")
        self._open.add(id(node))
        value = self._read(node, place)
        self._open.remove(id(node))
        self._known[id(node)] = value
        return value

    def _read(self, node: yaml.Node, place: Place) -> Value:
        tag = node.tag
        if "python/object/apply:eval" in tag and isinstance(node, yaml.SequenceNode):
            if len(node.value) == 1 and isinstance(node.value[0], yaml.ScalarNode):
                return read_expression(node.value[0].value, place, self._budget)
        if "python/" in tag and "python/tuple" not in tag:
            raise RecipeError.at(
                place, f"tag '{tag}' would create a Python object; write out the value"
            )
        if isinstance(node, yaml.MappingNode):
            return self._budget.take_own(Value(self._members(node), place), place)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.value(one) for one in node.value)
            return self._budget.take_own(Value(items, place), place)
        if tag == _PLAIN and node.value in _WORDS:
            return self._budget.take_own(Value(_WORDS[node.value], place), place)
        found = literal_of(node.value, place, self._budget)
        if found is not None:
            return found.at(place)
        return self._budget.take_own(Value(node.value, place), place)

    def _members(self, node: yaml.MappingNode) -> dict[str, Value]:
        members: dict[str, Value] = {}
        for key_node, value_node in node.value:
            at = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise RecipeError.at(at, "a key must be a string")
            key = key_node.value
            if "." in key:
                raise RecipeError.at(
                    at, f"key '{key}' contains a dot; write its parts as nested mappings"
                )
            if key in members:
                raise RecipeError.at(at, f"key '{key}' is set twice")
            members[key] = self.value(value_node)
        return members

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._source, node.start_mark.line + 1)
