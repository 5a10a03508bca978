"""Reads the subset of Python in which configurations are written: literals, `dict(...)`, arithmetic
on them and names of earlier values. Python's parser reads the text and no code is run: anything
else, such as a call or an import, is an error that names its line."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from millrace.migrate.errors import Place, RecipeError, TooLargeError
from millrace.migrate.values import DEEPEST, Budget, Data, Value, number_of

# Returns the value of a name that occurs in an expression.
Named = Callable[[str], "Value | None"]


@dataclass(frozen=True)
class Assignment:
    """A statement `a.b[0] = value`."""

    target: list[str]  # the name, then keys and list indices
    value: Value


def read_assignments(text: str, source: str, named: Named, budget: Budget) -> Iterator[Assignment]:
    """Yields the statements of a file one by one. Raises RecipeError, naming the line, for
    statements other than assignments."""
    statements: list[ast.stmt] = _parsed(text, Place(source, 1), "exec")
    for statement in statements:
        place = Place(source, statement.lineno)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            if isinstance(statement.value.value, str):
                continue  # a comment
        reader = _Expressions(text, Place(source, 1), named, budget)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise RecipeError.at(
                place,
                f"{reader.word(statement)} is not an assignment. No code is run; only lines "
                "`name = value` with literals are read. Write out the resulting values",
            )
        yield Assignment(reader.target(statement.targets[0]), reader.value(statement.value))


def read_expression(text: str, place: Place, budget: Budget) -> Value:
    """Reads one expression, such as "[x * 2 for x in [1, 2]]". Raises RecipeError naming the
    location."""
    expression: ast.expr = _parsed(text, place, "eval")
    return _Expressions(text, place, lambda name: None, budget).value(expression)


def literal_of(text: str, place: Place, budget: Budget) -> Value | None:
    """Reads one expression; returns None if the text is not a literal."""
    try:
        return read_expression(text.lstrip(" \t"), place, budget)
    except TooLargeError:
        raise
    except RecipeError:
        return None


def _parsed(text: str, place: Place, mode: str) -> Any:
    """Parses a text as statements or as an expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about invalid escapes
            parsed: Any = ast.parse(text, mode=mode)
            return parsed.body
    except SyntaxError as problem:
        at = Place(place.source, place.line + (problem.lineno or 1) - 1)
        if "too many nested" in str(problem.msg):
            raise TooLargeError.at(at, "brackets are nested too deeply") from None
        raise RecipeError.at(at, f"invalid Python: {problem.msg}") from None
    except (RecursionError, MemoryError):
        at = Place(place.source, place.line + _longest_statement(text) - 1)
        raise TooLargeError.at(at, "expressions are nested too deeply") from None
    except ValueError as problem:  # a zero byte
        raise RecipeError.at(place, f"invalid Python: {problem}") from None


def _longest_statement(text: str) -> int:
    """Returns the first line of the statement with the most tokens."""
    longest, line, count = 0, 1, 0
    found = 1
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            line = token.start[0] if count == 0 else line
            count = 0 if token.type in (tokenize.NEWLINE, tokenize.NL) else count + 1
            if count > longest:
                longest, found = count, line
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _not_read(what: str) -> str:
    return (
        f"{what} is not a literal. No code is run; only lists, dict(...), numbers, "
        "strings, their arithmetic and names of earlier values are read. Write out the "
        "value"
    )


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}


class _Expressions:
    """Computes the values of the nodes of one text."""

    def __init__(self, text: str, first: Place, named: Named, budget: Budget) -> None:
        self._text = text
        self._first = first
        self._named = named
        self._budget = budget
        self._loops: dict[str, Value] = {}
        self._depth = 0

    def word(self, node: ast.stmt | ast.expr) -> str:
        """Returns the first word of a node, for errors."""
        line = re.split("\r\n|\r|\n", self._text)[node.lineno - 1]
        found = re.search(r"\w+|\S", line.encode()[node.col_offset :].decode(errors="replace"))
        return f"'{found[0] if found else line}'"

    def target(self, node: ast.expr) -> list[str]:
        base, keys = self._steps(node)
        if not isinstance(base, ast.Name):
            self._fail(node, _not_read(self.word(node)))
        return [base.id, *(k.data if isinstance(k.data, str) else k.text() for k, _ in keys)]

    def _steps(self, node: ast.expr) -> tuple[ast.expr, list[tuple[Value, ast.expr]]]:
        """Returns the base of a chain of `.name` and `[key]`, and the chain's keys."""
        steps: list[tuple[Value, ast.expr]] = []
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if len(steps) > DEEPEST:
                raise TooLargeError.at(self._place(node), "values are nested too deeply")
            key = Value(node.attr) if isinstance(node, ast.Attribute) else self.value(node.slice)
            steps.append((key, node))
            node = node.value
        return node, steps[::-1]

    def value(self, node: ast.expr) -> Value:
        place = self._place(node)
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooLargeError.at(place, "brackets are nested too deeply")
        try:
            return self._value(node, place)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr, place: Place) -> Value:
        match node:
            case ast.Constant():
                return self._constant(node, place)
            case ast.Name():
                return self._budget.take(self._named_value(node), place)
            case ast.Tuple():
                items = tuple(map(self.value, node.elts))
                return self._made(items, items[0].place if items else place)
            case ast.List():
                return self._made(tuple(map(self.value, node.elts)), place)
            case ast.Dict():
                return self._dict(zip(node.keys, node.values), place)
            case ast.Call(func=ast.Name(id="dict"), args=[]):
                keys = [ast.Constant(one.arg) if one.arg else None for one in node.keywords]
                return self._dict(zip(keys, (one.value for one in node.keywords)), place)
            case ast.Set(elts=[ast.Set(elts=[inner])]):  # MMDetection's {{_base_.name}}
                return self.value(inner)
            case ast.ListComp(generators=[ast.comprehension(ast.Name(id=name), over, [], 0)]):
                return self._loop(name, over, node.elt, place)
            case ast.Attribute() | ast.Subscript():
                base, steps = self._steps(node)
                found = self._named_value(base) if isinstance(base, ast.Name) else self.value(base)
                for key, step in steps:
                    found = self._member(found, key, step)
                return self._budget.take(found, place)
            case ast.UnaryOp(op=ast.USub()):
                return self._combined("-", Value(0, place), self.value(node.operand), node)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand)
            case ast.BinOp():
                return self._chain(node)
            case ast.JoinedStr():
                self._fail(node, "f-strings are not supported; write it as plain text")
            case ast.Call(func=ast.Name(id=name)):
                self._fail(node, _not_read(f"the call {name}()"))
            case ast.Call():
                self._fail(node, _not_read("a call"))
            case ast.IfExp():
                self._fail(node, _not_read("'if'"))
        self._fail(node, _not_read(self.word(node)))

    def _constant(self, node: ast.Constant, place: Place) -> Value:
        data = node.value
        if isinstance(data, int) and not isinstance(data, bool) and abs(data) >= 2**63:
            data = float(data) if abs(data) < 2**1000 else math.inf
        if isinstance(data, float) and not math.isfinite(data):
            self._fail(node, "a number is too large")
        if isinstance(data, str) and "{{" in data:
            self._fail(
                node, "'{{...}}' in a string is not supported; write the resulting text"
            )
        if data is not None and not isinstance(data, (bool, int, float, str)):
            self._fail(node, _not_read(self.word(node)))
        return self._made(data, place)

    def _named_value(self, node: ast.Name) -> Value:
        if node.id in self._loops:
            return self._loops[node.id].at(self._place(node))
        found = self._named(node.id)
        if found is None:
            self._fail(node, f"name '{node.id}' not found above this line")
        return found

    def _dict(self, members: Iterable[tuple[ast.expr | None, ast.expr]], place: Place) -> Value:
        """Computes a dict. A key that is None stands for `**`."""
        data: dict[str, Value] = {}
        for key_node, node in members:
            if key_node is None:
                more = self.value(node)
                if not isinstance(more.data, dict):
                    self._fail(node, f"** needs a dict, not {more.type_name}")
                data.update(more.data)
            elif isinstance(key_node, ast.Constant) and isinstance(key_node.value, str):
                data[key_node.value] = self.value(node)
            else:
                data[self.value(key_node).text()] = self.value(node)
        return self._made(data, place)

    def _loop(self, name: str, over: ast.expr, element: ast.expr, place: Place) -> Value:
        values = self.value(over)
        if not isinstance(values.data, tuple):
            self._fail(over, f"'for' needs a list, not {values.type_name}")
        if name in self._loops:
            self._fail(over, _not_read("nested loops use the same name"))
        items = []
        for self._loops[name] in values.data:
            items.append(self.value(element))
        self._loops.pop(name, None)
        return self._made(tuple(items), place)

    def _member(self, of: Value, key: Value, node: ast.expr) -> Value:
        found = None
        if isinstance(key.data, str):
            found = of.members.get(key.data)
        elif isinstance(key.data, int) and not isinstance(key.data, bool):
            if -len(of.items) <= key.data < len(of.items):
                found = of.items[key.data]
        if found is None:
            self._fail(node, f"{key.text()} not found in {of.type_name}")
        return found

    def _chain(self, node: ast.BinOp) -> Value:
        """Computes `a + b - c`, a left-leaning chain of any length, without recursion."""
        chain: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            chain.append(left)
            left = left.left
        value = self.value(left)
        for one in reversed(chain):
            sign = _SIGNS.get(type(one.op))
            if sign is None:
                self._fail(one, _not_read(f"an expression with {type(one.op).__name__}"))
            right = self.value(one.right)
            at = value if sign == "**" else value.at(self._place(one))
            value = self._combined(sign, at, right, one)
        return value

    def _combined(self, sign: str, left: Value, right: Value, node: ast.expr) -> Value:
        """Computes Python's arithmetic; the result has the location of `left`."""
        a, b, place = left.data, right.data, left.place
        if sign == "+" and isinstance(a, str) and isinstance(b, str):
            self._budget.take_parts(1, len(a) + len(b), self._place(node))
            return Value(a + b, place)
        if sign == "+" and isinstance(a, tuple) and isinstance(b, tuple):
            self._budget.take_parts(left.elements + right.elements, 0, self._place(node))
            return Value(a + b, place)
        if sign == "*" and isinstance(a, tuple) and type(b) is int:
            times = max(0, b)
            self._budget.take_parts(
                left.elements * times, left.characters * times, self._place(node)
            )
            return Value(a * times, place)
        return self._made(self._arithmetic(sign, left, right, node), place)

    def _arithmetic(self, sign: str, left: Value, right: Value, node: ast.expr) -> float:
        x, y = number_of(left.data), number_of(right.data)
        if x is None or y is None:
            self._fail(node, f"{left.text()} {sign} {right.text()}: numbers are needed")
        if y == 0 and sign in ("/", "//", "%"):
            self._fail(node, "division by zero")
        try:
            result = {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x / y,
                "//": lambda: float(math.floor(x / y)),
                "%": lambda: x - math.floor(x / y) * y,
                "**": lambda: math.pow(x, y),
            }[sign]()
        except (OverflowError, ValueError):
            result = math.inf
        if not math.isfinite(result):
            self._fail(node, f"{left.text()} {sign} {right.text()} is not a finite number")
        whole = type(left.data) is int and type(right.data) is int and sign != "/"
        if whole and result == math.floor(result) and abs(result) < 9e15:
            return int(result)
        return result

    def _made(self, data: Data, place: Place) -> Value:
        return self._budget.take_own(Value(data, place), place)

    def _place(self, node: ast.expr | ast.stmt) -> Place:
        return Place(self._first.source, self._first.line + node.lineno - 1)

    def _fail(self, node: ast.expr, what: str) -> NoReturn:
        raise RecipeError.at(self._place(node), what)
