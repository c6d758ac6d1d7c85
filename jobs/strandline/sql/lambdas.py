"""The arguments of lambdas, and values of their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from strandline.sql.parsing import sql_of, tree_of

Bound = Mapping[str, str | None]
"""The arguments of lambdas, each with SQL of its type that stands alone; None: it is not known."""


def bound_by(function: exp.Lambda, around: Bound) -> dict[str, str | None]:
    """The arguments of a lambda; `around`: the arguments of the lambdas around it.

    Example:
        In `transform(a, (x, i) -> x + i)`, `x` is bound to `(a)[0]` and `i` to `0`.
    """
    names = [one.name.lower() for one in function.expressions]
    call = function.parent
    if not isinstance(call, exp.Anonymous):
        return dict.fromkeys(names)
    given = (one for one in call.expressions if not isinstance(one, exp.Lambda))
    arguments = [with_values(one, around) for one in given]
    values = None if None in arguments else _values(call.name.lower(), [*map(str, arguments)])
    if values is None or len(values) < len(names):
        return dict.fromkeys(names)
    return dict(zip(names, values, strict=False))


def _values(function: str, given: Sequence[str]) -> list[str] | None:
    """Values of the types that a function gives to its lambda; None: the function is not known.

    Args:
        function: its name.
        given: its arguments that are not lambdas.
    """
    first, second = (*given, "", "")[:2]
    match function:
        case "exists" | "filter" | "forall" | "transform":
            return [f"({first})[0]", "0"]
        case "array_sort":
            return [f"({first})[0]"] * 2
        case "zip_with":
            return [f"({first})[0]", f"({second})[0]"]
        case "aggregate" | "reduce":
            return [second, f"({first})[0]"]
        case "map_filter" | "transform_keys" | "transform_values":
            return [f"map_keys({first})[0]", f"map_values({first})[0]"]
        case "map_zip_with":
            values = [f"map_values({one})[0]" for one in (first, second)]
            return [f"map_keys({first})[0]", *values]
    return None


def with_values(node: exp.Expr, bound: Bound) -> str | None:
    """The SQL of a part with values for the arguments of lambdas; None: one has none."""
    written = node.copy()
    for name in [*written.find_all(exp.Identifier)]:
        key = name.name.lower()
        if key not in bound or _is_no_argument(name):
            continue
        value = bound[key]
        if value is None:
            return None
        put = tree_of(value)
        if not isinstance(put, exp.Expr):
            return None
        put = exp.Paren(this=put.copy())
        if name is written:
            written = put
        else:
            name.replace(put)
    return sql_of(written)


def _is_no_argument(name: exp.Identifier) -> bool:
    """Whether a name is a column's, a field's, or declares an argument."""
    above = name.parent
    is_field = isinstance(above, exp.Dot) and name.arg_key == "expression"
    return is_field or isinstance(above, exp.Column | exp.Lambda)
