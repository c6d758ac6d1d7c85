"""A pipeline file of any content is a pipeline or one InputError, and never another's business."""

from __future__ import annotations

from pathlib import Path

import pytest
from dear import DEAR
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import InputError
from strandline.spec import PipelineSpec, find_spec, load_spec
from strandline.spec.documents import document_of

FLIGHTS = (Path(__file__).parents[3] / "pipelines" / "flights.yaml").read_text(encoding="utf-8")
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)
)

ODD = {
    "no digits": "x: 0x_",
    "no binary digits": "x: 0b_",
    "an octal that is none": "x: 09_",
    "no integer": "x: !!int abc",
    "no number": "x: !!float abc",
    "no time": "x: !!timestamp abc",
    "no boolean": "x: !!bool abc",
    "no base 64": "x: !!binary '%%%é'",
    "no map": "x: !!map abc",
    "no pairs": "x: !!pairs [1]",
    "no set": "x: !!set [a]",
    "a key that is a list": "? [a]\n: b",
    "a key that is a map": "{{a: 1}: b}",
    "a tag of nobody's": "x: !!python/object:os.system ls",
    "nothing after a merge": "<<: 7",
    "an alias of itself": "x: &a [*a]",
    "an alias of nothing": "x: *a",
    "an alias bomb": BOMB,
    "a bomb of merges": MERGES,
    "nested lists": "x: " + "[" * 5_000 + "]" * 5_000,
    "nested maps": "x: " + "{a: " * 5_000 + "}" * 5_000,
    "nested blocks": "".join(f"{' ' * n}a:\n" for n in range(600)),
    "nested dashes": "- " * 5_000,
    "5,000 digits": "x: " + "9" * 5_000,
    "5,000 hexadecimal digits": "pipeline: a\nsource: 0x" + "f" * 5_000,
    "5,000 digits by sixties": "x: 1" + ":59" * 5_000,
    "5,000 digits after the point": "x: 1e" + "9" * 5_000,
    "a mebibyte": "x: " + "y" * 2**20,
    "half of a character": 'x: "\\ud800"',
    "a bell": "x: \a",
    "an end in the middle": "x: \0",
    "two documents": "x: 1\n---\nx: 2",
    "a year too far": "x: 9999-12-31T23:59:59-14:00",
    "nothing": "",
}


def written(folder: Path, text: str, name: str = "odd.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    return path


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_yaml_breaks_its_own_pipeline_only(tmp_path, text):
    path = written(tmp_path, text)
    written(tmp_path, FLIGHTS, "flights.yaml")
    with pytest.raises(InputError, match=r"^odd\.yaml: "):
        load_spec(path)
    assert find_spec(tmp_path, "flights").pipeline == "flights"
    with pytest.raises(InputError):
        find_spec(tmp_path, "odd")


def test_a_number_that_is_none_in_decimal_is_the_text_that_was_written():
    """As numbers the channels 010 and 1:30 were 8 and 90, and every record of theirs undeclared."""
    written = "[010, 07, 0x1F, 0b11, 1:30, 08, 10, 0, -5, 1_000, 1_1, 2024_02]"
    assert document_of(written.encode(), origin="x") == [
        *("010", "07", "0x1F", "0b11", "1:30", "08"),
        *(10, 0, -5, 1000),
        *("1_1", "2024_02"),
    ]


ODD_VALUES = [
    "1" * 5_000 + "ms", "0x" + "f" * 5_000, "1" * 5_000, "-" + "9" * 30 + "d", ".nan", "-.inf",
    "!!binary aGk=", "!!set {a, b}", "!!omap [a: 1]", "2013-01-01", "0001-01-01T00:00:00+14:00",
    "{}", "[]", "[[]]", "{1: 2}", "{~: ~}", "~", "'\\0'", '"\\e[2J"', "{[1]: 2}", "1:2:3",
    "٣ms", "0s", "'0 6 * * * *'", "0b" + "1" * 200,
]  # fmt: skip


@pytest.mark.parametrize("value", ODD_VALUES, ids=[value[:20] for value in ODD_VALUES])
def test_an_odd_value_anywhere_in_a_pipeline_is_taken_or_refused(tmp_path, value):
    lines = FLIGHTS.splitlines()
    for number in range(ODD_VALUES.index(value) % 4, len(lines), 4):
        key, colon, _ = (line := lines[number]).partition(":")
        if colon and not line.lstrip().startswith("#"):
            text = "\n".join([*lines[:number], f"{key}: {value}", *lines[number + 1 :]])
            taken_or_refused(written(tmp_path, text))


def taken_or_refused(path: Path) -> None:
    try:
        spec = load_spec(path)
    except InputError as error:
        assert error.exit_code == 2
        assert str(error).startswith(f"{path.name}: ")
    else:
        assert isinstance(spec, PipelineSpec)
        assert spec.spec_fingerprint


SIGNS = "[]{}:,-?!&*|>%@`'\"#~<\n \t_.0x1b9ezé\ud800\x00\x1b\u2028"
ODDITIES = st.one_of(st.sampled_from([*ODD.values(), *ODD_VALUES]), st.text(SIGNS), st.text())
PIPELINE_LIKE = st.lists(
    st.one_of(st.sampled_from(FLIGHTS.splitlines()), ODDITIES), max_size=40
).map("\n".join)


@DEAR
@given(text=st.one_of(ODDITIES, PIPELINE_LIKE))
def test_whatever_a_file_holds_only_an_input_error_comes_out(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any", numbered=True)
    path = written(folder, text)
    taken_or_refused(path)
    with pytest.raises(InputError):
        find_spec(folder, "no-such-pipeline")


@DEAR
@given(data=st.data(), spot=st.integers(0, len(FLIGHTS)), reach=st.integers(0, 40))
def test_a_pipeline_with_something_odd_inside_is_taken_or_refused(
    tmp_path_factory, data, spot, reach
):
    odd = data.draw(ODDITIES)
    path = written(tmp_path_factory.mktemp("odd"), FLIGHTS[:spot] + odd + FLIGHTS[spot + reach :])
    taken_or_refused(path)


def test_a_duration_of_thousands_of_digits_is_too_long(tmp_path):
    text = FLIGHTS.replace("bound: 3h", f"bound: {'9' * 5_000}h")
    with pytest.raises(InputError, match="longer than 64 bits of milliseconds"):
        load_spec(written(tmp_path, text))
    zeros = FLIGHTS.replace("bound: 3h", f"bound: {'0' * 30}3h")
    assert load_spec(written(tmp_path, zeros)).watermark.bound == 3 * 3_600_000
