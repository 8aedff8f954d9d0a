"""Values made from JSON schemas: valid by the judgement of the jsonschema package, small, and the same each time."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.sandbox.instances import NoInstanceError, instance_of

TREE = {
    "$defs": {"Node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
                       "required": ["next"]}},
    "$ref": "#/$defs/Node",
}  # fmt: skip

WANTED: list[tuple[dict[str, Any], object]] = [
    ({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "a"}),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}),
    ({"type": "object", "properties": {"a": {"type": "boolean"}}, "minProperties": 1}, {"a": True}),
    ({"properties": {"a": {"type": "null"}}, "required": ["a"]}, {"a": None}),
    ({"type": "object", "required": ["x"], "additionalProperties": {"type": "number"}}, {"x": 1}),
    ({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}}, {"a": "a", "b": "b"}),
    ({"enum": ["b", "a"]}, "b"),
    ({"type": "integer", "enum": ["b", 3]}, 3),
    ({"const": {"k": [1]}}, {"k": [1]}),
    ({"type": ["null", "integer"]}, 1),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4}, 8),
    ({"type": "integer", "maximum": -2}, -2),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "string", "minLength": 6}, "textte"),
    ({"type": "string", "maxLength": 2}, "te"),
    ({"type": "string", "format": "date"}, "2026-01-02"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "AAA"),
    ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "2026-01-02"),
    ({"type": "array", "items": {"type": "integer"}}, [1]),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [1, 2, 3]),
    ({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": True}, ["x", "y"]),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"const": 2}]}, ["text", 2]),
    ({"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 7}}, [7]),
    ({"anyOf": [{"type": "integer", "minimum": 2, "maximum": 1}, {"type": "boolean"}]}, True),
    ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "integer", "minimum": 3}}}], "type": "object"}, {"a": 3}),
    ({"type": "integer", "allOf": [{"minimum": 3}, {"minimum": 9}, {"maximum": 12}]}, 9),
    ({"type": "object", "properties": {"p": {"type": "object", "properties": {"q": {"type": "array", "items": {"type": "object",
      "properties": {"r": {"const": 1}}, "required": ["r"]}}}, "required": ["q"]}}, "required": ["p"]}, {"p": {"q": [{"r": 1}]}}),
    ({"$defs": {"a/b": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/a~1b"}}, [1]),
    (TREE, {"next": None}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), WANTED, ids=str)
def test_the_value_is_small_and_fits(schema: dict[str, Any], value: object) -> None:
    assert instance_of(schema) == value
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)


def test_geminis_notation_is_understood() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {"n": {"type": "INTEGER", "nullable": True}, "l": {"type": "ARRAY", "minItems": "2"}},
        "required": ["n", "l"],
    }
    assert instance_of(schema) == {"n": 1, "l": ["l", "l"]}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (False, "false"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "a: "),
        ({"type": "object", "additionalProperties": False, "required": ["b"]}, "b: "),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "no number"),
        ({"type": "string", "pattern": "^ünlikely$"}, "no text"),
        ({"$ref": "#/$defs/missing"}, "leads nowhere"),
        ({"$ref": "https://example.com/schema"}, "leads nowhere|not inside"),
        ({"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}, "without end"),
        ({"enum": []}, "fixed values"),
        ({"allOf": [{"const": 1}, {"const": 2}]}, "fixed values"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True}, "different items"),
    ],
    ids=str,
)
def test_where_nothing_is_found_it_says_where(schema: object, said: str) -> None:
    with pytest.raises(NoInstanceError, match=said):
        instance_of(schema)


def test_a_schema_of_a_thousand_levels_is_refused_and_breaks_nothing() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(1000):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    with pytest.raises(NoInstanceError, match="deeper"):
        instance_of(schema)


def test_schemas_whose_parts_all_name_each_other_stay_small() -> None:
    names = [f"N{number}" for number in range(10)]
    node = {
        "type": "object",
        "properties": {name: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in names},
        "required": names,
    }
    schema = {"$defs": dict.fromkeys(names, node), "$ref": "#/$defs/N0"}
    jsonschema.validate(instance_of(schema), schema, jsonschema.Draft202012Validator)


small = st.integers(min_value=0, max_value=4)
leaves = st.one_of(
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, st.integers(-9, 9), small),
    st.builds(lambda low, step: {"type": "integer", "minimum": low, "multipleOf": step}, st.integers(-9, 9), st.integers(1, 5)),
    st.builds(lambda low, more: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + more + 1},
              st.integers(-9, 9), small),
    st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, small, small),
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.builds(lambda values: {"enum": values}, st.lists(st.one_of(st.integers(), st.text(), st.none()), min_size=1)),
)  # fmt: skip


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    table = st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    return st.one_of(
        st.builds(lambda each, low, more: {"type": "array", "items": each, "minItems": low, "maxItems": low + more},
                  inner, small, small),
        table.flatmap(lambda properties: st.builds(
            lambda required, closed: {"type": "object", "properties": properties, "required": required,
                                      "additionalProperties": not closed},
            st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([]), st.booleans())),
        st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3)),
    )  # fmt: skip


@given(st.recursive(leaves, wrapped, max_leaves=12))
def test_whatever_the_schema_the_value_fits_and_is_the_same_again(schema: dict[str, Any]) -> None:
    value = instance_of(schema)
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
    assert instance_of(schema) == value
