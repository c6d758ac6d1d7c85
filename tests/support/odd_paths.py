"""Names of folders that a file system allows, with signs that mean something elsewhere."""

from __future__ import annotations

SIGNS = {
    "hash": "lake#2",
    "question mark": "lake?x",
    "umlaut and hash": "ü#1",
    "query": "w?x&y=z",
    "shell": "it's;$HOME",
    "braces": "c{d,e}",
    "stars": "s*r**",
    "space": " a b ",
    "percent": "100% %zz",
    "equals": "day=2024-03-01",
    "plus": "p+q",
    "tilde": "~t",
    "quotes": "\"q\" 'r' `s`",
    "angles": "<a>",
    "colon": "a:b",
    "scheme": "s3:x",
    "at": "a@v1",
    "dash": "-x",
    "dots": "..x",
    "hidden": "_x",
    "smile": "😀",
    "bidi": "a\u202eb",
    "separator": "a\u2028b",
}
"""Each a folder in which a lake can lie."""
ALL_SIGNS = "a b#1?x=y&%zz{d,e}*+~;$HOME'\"<>`:@!ü😀\u202e,"
"""A folder of all these at once."""
REFUSED = ("g[1]", "g]", "a|b", "a^b", "a\\b", "a%20b", "a%41", "a\nb", "a\tb", "\x1b[31m", "a\x7f")
"""Folders in which delta-rs finds no table."""
