"""Domains of texts."""

import base64
import re
from urllib.parse import unquote_plus

from domains import domain, words


@domain(
    lambda chance: (" ".join(words(chance, 12)), chance.randint(8, 24)),
    nothing_has_no_line=[("", 10), ("   ", 10)],
    a_line_is_filled_to_its_width=[("one two six", 7), ("aaa bbb ccc", 6)],
    a_long_word_stands_alone=[("a considerable b", 5)],
)
def wrap(text, width):
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


@domain(
    lambda chance: ([chance.choice(["plain", "a,b", "two\nlines", 'say "no"', "", "ü"]) for _ in range(4)],),
    plain_fields_stay=[(["a", "b"],), ([""],)],
    what_would_end_a_field_is_quoted=[(["a,b", "c"],), (["two\nlines"],)],
    quotes_are_doubled=[(['the "old" one', "x"],), (['"'],)],
)
def csv(fields):
    return ",".join('"' + field.replace('"', '""') + '"' if re.search('[,"\n]', field) else field for field in fields)


@domain(
    lambda chance: tuple("%d.%d.%d" % (chance.randint(0, 2), chance.randint(0, 12), chance.randint(0, 12)) for _ in range(2)),
    numbers_are_compared_as_numbers=[("1.2.3", "1.2.3"), ("1.9.0", "1.10.0"), ("2.0.0", "1.99.99")],
    a_release_comes_after_what_led_to_it=[("1.0.0-rc.1", "1.0.0"), ("1.0.0", "1.0.0-alpha"), ("1.0.0-alpha", "1.0.0-alpha.1")],
    counted_candidates_come_in_order=[("1.0.0-rc.9", "1.0.0-rc.10"), ("1.0.0-rc.1", "1.0.0-rc.beta"), ("1.0.0-11", "1.0.0-2")],
)
def semver(left, right):
    def key(version):
        core, _, before = version.partition("-")
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in before.split(".")] if before else []
        return [int(part) for part in core.split(".")], not before, parts

    return (key(left) > key(right)) - (key(left) < key(right))


@domain(
    lambda chance: ("&".join(f"{name}={value}" for name, value in zip(words(chance, 3), ["a+b", "1%2B1", "%C3%BC"])),),
    names_and_values=[("?a=1&b=2",), ("",), ("flag",), ("a=b=c",)],
    what_separates_can_be_said=[("q=a%26b",), ("a%3Db=1",)],
    a_plus_is_a_blank=[("q=new+york",), ("sum=1%2B1",)],
)
def query(text):
    pairs = [pair.partition("=") for pair in text.removeprefix("?").split("&") if pair]
    return [[unquote_plus(name), unquote_plus(value)] for name, _, value in pairs]


@domain(
    lambda chance: ("*/" + "?" * 3 + ".js", "/".join(words(chance, 2)) + ".js"),
    a_star_stays_in_its_folder=[("src/*.js", "src/a.js"), ("src/*.js", "src/deep/a.js"), ("*", "a/b")],
    two_stars_cross_folders=[("src/**", "src/a/b.js"), ("**/b.js", "x/y/b.js")],
    other_signs_are_themselves=[("a.js", "a.js"), ("a.js", "axjs"), ("a+b", "aab"), ("a+b", "a+b"), ("(x)", "(x)")],
)
def glob(pattern, path):
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    signs = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(signs.get(part, re.escape(part)) for part in parts), path) is not None


@domain(
    lambda chance: ("/" + "/".join(chance.choice(["a", "b", "..", ".", "", "cc"]) for _ in range(7)),),
    dots_and_double_slashes_go=[("/a/./b//c/",), ("/",), ("/a/b/../c",)],
    nothing_is_above_the_root=[("/..",), ("/../../etc",), ("/a/../../b",)],
)
def path(text):
    kept = []
    for part in text.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in ("", "."):
            kept.append(part)
    return "/" + "/".join(kept)


@domain(
    lambda chance: ("\n".join(f"{name} = {chance.randint(1, 99)}" for name in ["port", "size", "port2"]), "", chance.choice(["port", "size"])),
    each_section_has_its_own=[("[a]\nport = 1\n[b]\nport = 2", "b", "port"), ("top = 9\n[a]\ntop = 8", "", "top")],
    comments_say_nothing=[("# port = 1\n; port = 2\nport = 3", "", "port")],
    a_value_may_have_the_sign_in_it=[("[db]\nurl = host=x;user=y", "db", "url")],
    what_is_not_there_is_empty=[("[a]\nport = 1", "a", "host"), ("", "a", "b")],
)
def ini(text, section, key):
    here = ""
    for line in text.split("\n"):
        if line[:1] in "#;":
            continue
        if line.startswith("["):
            here = line[1:-1]
        elif "=" in line and here == section and line.partition("=")[0].strip() == key:
            return line.partition("=")[2].strip()
    return ""


@domain(
    lambda chance: ("".join(words(chance, chance.randint(1, 3))),),
    three_by_three=[("Man",), ("",), ("abcdef",)],
    what_is_left_is_filled_up=[("M",), ("Ma",), ("hello",), ("ü",)],
)
def encoded(text):
    return base64.b64encode(text.encode()).decode()


@domain(
    lambda chance: ("".join(chance.choice("aäß€x") for _ in range(6)), chance.randint(0, 12)),
    short_texts_stay=[("abc", 3), ("abc", 9), ("", 0)],
    plain_letters_are_cut=[("abcdef", 4)],
    no_letter_is_cut_in_two=[("grün", 3), ("10 €", 4), ("10 €", 5), ("日本", 4)],
)
def cut(text, most):
    return text.encode()[:most].decode(errors="ignore")
