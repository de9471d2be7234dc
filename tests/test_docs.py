# SPDX-License-Identifier: Apache-2.0
"""Every example in README.md and docs/ does what its page says; and the runner would notice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from page_examples import ExampleError, blocks, commands, matches, run_page
from shared_data import CHECKOUT

# These may stand without an example: they are made of other files, or prove instead of showing.
WITHOUT_EXAMPLES = {
    f"docs/{name}.md"
    for name in (
        "api", "architecture", "changelog", "errata", "index", "limits", "performance", "theory",
    )
}  # fmt: skip
# These must be there, with examples.
EXPECTED = {"README.md", "docs/cli.md", "docs/tutorial.md", "docs/reproduce.md"}


def pages() -> list[str]:
    found = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "docs").rglob("*.md")
        if "_build" not in path.parts
    }
    return sorted(found | EXPECTED)


@pytest.mark.parametrize("name", pages())
def test_examples(name: str, tmp_path: Path) -> None:
    ran = run_page(CHECKOUT / name, tmp_path)
    assert ran > 0 or name in WITHOUT_EXAMPLES, f"{name} has no example that runs"


def test_examples_with_a_confidence_declare_the_levels() -> None:
    """A level that nobody declared is taken as impossible, so the confidence would not hold."""
    shown = [
        command.text
        for name in pages()
        for block in blocks((CHECKOUT / name).read_text(encoding="utf-8"))
        if block.language == "console"
        for command in commands(block)
    ]
    demo = (CHECKOUT / "examples" / "demo.sh").read_text(encoding="utf-8")
    shown += re.findall(r"^run (?:.*\\\n)*.*$", demo, flags=re.M)
    promising = [text for text in shown if "--confidence" in text]
    assert len(promising) >= 3
    assert [text for text in promising if not re.search("--(levels|states) ", text)] == []


#: The last columns but one of the second table depend on which rows are held out.
TABLES = [
    ("estimates.md", "estimates.py", None, 0.03),
    ("publish-the-plan.md", "publish_plan.py", -2, 0.6),
]


@pytest.mark.parametrize(
    "page, script, loose, near",
    [TABLES[0], pytest.param(*TABLES[1], marks=pytest.mark.slow)],  # more than a minute
)
def test_tables_are_those_of_the_examples(
    page: str, script: str, loose: int | None, near: float
) -> None:
    """Figures have three digits, which may differ a little where a solver does."""
    text = (CHECKOUT / "docs" / "howto" / page).read_text(encoding="utf-8")
    program = CHECKOUT / "examples" / script
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    made = done.stdout.splitlines()
    shown = [line for line in text.splitlines() if line.startswith(made[0])]
    assert shown, "the page has no table with this head"
    first = text.splitlines().index(shown[0])
    assert len(made) > 10
    for expected, line in zip(text.splitlines()[first + 2 :], made[2:], strict=False):
        title, *figures = (cell.strip() for cell in line.strip("| ").split("|"))
        of_page, *others = (cell.strip() for cell in expected.strip("| ").split("|"))
        assert title == of_page
        for k, (figure, other) in enumerate(zip(figures, others, strict=True)):
            within = near if loose is None or k == len(figures) + loose else 0.03
            assert figure == other or float(figure) == pytest.approx(float(other), rel=within)


def write(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


GOOD = """# A page

```text
not run: 1 / 0
```

```python
x = 6
print("any output")
```

```python
>>> x * 7
42
>>> print("a\\nb\\nc")
a
...
c
```

```console
$ cat > table.csv <<'END'
> s,x
>
> a,1
> END
$ cat table.csv
s,x

a,1
$ printf 'one 1.25\\ntwo\\nthree\\n'
one ...
...
three
$ ls no-such-file  # exit status 2
ls: ...no-such-file...
$ python -c 'import sys; print(sys.stdin.read() == "")'
True
$ mkdir deeper && cd deeper
```

```python
from pathlib import Path
assert Path("../table.csv").read_text() == "s,x\\n\\na,1\\n"
```
"""


def test_a_good_page_runs_in_order_in_one_folder(tmp_path: Path) -> None:
    assert run_page(write(tmp_path, GOOD), tmp_path) == 9


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3\nGot:\n    2"),
        ("```python\n>>> 1 / 0\n```\n", "ZeroDivisionError"),
        ("A\n\n```python\nx = 1\n1 / 0\n```\n", "page.md, line 5: ZeroDivisionError"),
        ("```python\nimport warnings\nwarnings.warn('old', DeprecationWarning)\n```\n", "old"),
        ("```console\n$ echo one\ntwo\n```\n", "page.md, line 2: echo one"),
        ("```console\n$ printf 'a\\nb\\n'\na\n```\n", "it prints:\na\nb"),
        ("```console\n$ false\n```\n", "exit status 1 instead of 0"),
        ("```console\n$ true  # exit status 2\n```\n", "exit status 0 instead of 2"),
        ("```console\necho no prompt\n```\n", "begins with '\\$ '"),
        ("```bash\necho never run\n```\n", "'bash' is neither"),
        ("- ```python\n  1 / 0\n  ```\n", "left edge"),
        ("```python\n1\n", "left edge"),
    ],
)
def test_a_bad_example_is_noticed(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=complaint):
        run_page(write(tmp_path, text), tmp_path)


@pytest.mark.parametrize(
    "expected, got, same",
    [
        ("a", "a\n", True),
        ("a", "a  \n", True),
        ("...", "", True),
        ("...\nb", "a\na\nb\n", True),
        ("...\nb", "a\nb\nc\n", False),
        ("a\n...\nb", "a\nb\n", True),
        ("1.05...", "1.05992\n", True),
        ("x ... y", "x 1\n2 y\n", False),
        ("(a)*", "aa\n", False),
    ],
)
def test_matching_of_output(expected: str, got: str, same: bool) -> None:
    assert matches(expected, got) is same


def test_pictures_are_what_the_code_draws(tmp_path: Path) -> None:
    """With the versions of constraints.txt, to the last byte; every picture is shown somewhere."""
    script = CHECKOUT / "examples" / "pictures.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, timeout=300)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # Screenshots are taken, and looked at, by the tests in a browser.
    kept = {path.name: path.read_bytes() for path in (CHECKOUT / "docs/pictures").glob("*.svg")}
    assert drawn == kept, "the pictures have changed; look at them: make pictures"
    text = "".join((CHECKOUT / name).read_text(encoding="utf-8") for name in pages())
    shown = set(re.findall(r"!\[[^\]]{20,}\]\([a-z./]*pictures/([a-z]+\.svg)\)", text))
    assert shown == set(drawn)
