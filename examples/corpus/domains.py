"""What the projects of the corpus compute: for each domain the right answer, and cases to ask for.

Tests of a project are drawn from here, so that a planted fault is judged by an implementation other than the one that it is planted in. `edges` are
cases by the name of their test, and some of them show the fault; `draw` makes one more from chance.
"""

import base64
import calendar
import datetime
import re

DOMAINS = {}


class Domain:
    """A reference with its cases."""

    def __init__(self, answer, edges, draw):
        self.answer, self.edges, self.draw = answer, edges, draw

    def cases(self, chance, drawn=6):
        """Groups of cases by name, each case as its arguments and the right answer."""
        groups = {name: list(cases) for name, cases in self.edges.items()}
        groups["whatever_comes"] = [self.draw(chance) for _ in range(drawn)]
        return {name: [(args, self.answer(*args)) for args in cases] for name, cases in groups.items()}


def domain(draw, **edges):
    """Enters the function below it under its name."""

    def enter(answer):
        DOMAINS[answer.__name__] = Domain(answer, edges, draw)
        return answer

    return enter


def words(chance, count, letters="abcdefgh"):
    return ["".join(chance.choice(letters) for _ in range(chance.randint(1, 7))) for _ in range(count)]


@domain(
    lambda chance: ([[chance.randint(1, 9), chance.randint(1, 9999)] for _ in range(chance.randint(1, 4))], chance.choice([50, 70, 190])),
    whole_cents=[([[2, 500]], 200), ([], 190)],
    half_a_cent_is_rounded_up=[([[1, 250]], 10), ([[1, 50]], 70), ([[3, 150]], 190)],
)
def invoice(lines, permille):
    net = sum(quantity * cents for quantity, cents in lines)
    return net + (net * permille + 500) // 1000


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
    lambda chance: ("20%02d-%02d-%02dT%02d:%02d:%02d%s%02d:%02d" % (
        chance.randint(0, 37), chance.randint(1, 12), chance.randint(1, 28), chance.randint(0, 23), chance.randint(0, 59), chance.randint(0, 59),
        chance.choice("+-"), chance.randint(1, 12), chance.choice([0, 30])),),
    the_beginning_is_nothing=[("1970-01-01T00:00:00Z",), ("1970-01-01T00:00:00+00:00",)],
    east_of_greenwich_it_is_later=[("2024-02-29T12:00:00+02:00",), ("2024-06-01T00:10:00+05:30",)],
    west_of_greenwich_it_is_earlier=[("2023-12-31T20:00:00-05:00",)],
)
def stamp(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


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
    from urllib.parse import unquote_plus

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
    lambda chance: (chance.randint(1, 6), chance.choice([50, 100, 250]), chance.choice([1000, 5000])),
    each_wait_is_twice_as_long=[(4, 100, 10000), (0, 100, 1000)],
    no_wait_is_longer_than_allowed=[(6, 100, 1000)],
    it_never_gets_shorter_again=[(36, 100, 30000)],
)
def backoff(attempts, base, cap):
    return [min(cap, base * 2**attempt) for attempt in range(attempts)]


@domain(
    lambda chance: (chance.randint(1, 3), [chance.choice([f"put {key} {chance.randint(1, 9)}", f"get {key}"]) for key in
                                           (chance.choice("abcd") for _ in range(14))]),
    what_was_put_is_there=[(2, ["put a 1", "get a", "get b"])],
    the_oldest_goes=[(2, ["put a 1", "put b 2", "put c 3", "get a", "get b", "get c"])],
    what_was_asked_for_stays=[(2, ["put a 1", "put b 2", "get a", "put c 3", "get a", "get b"])],
)
def lru(capacity, script):
    kept, said = {}, []
    for line in script:
        verb, key, *value = line.split()
        found = kept.pop(key, None)
        if verb == "put":
            kept[key] = value[0]
            if len(kept) > capacity:
                del kept[next(iter(kept))]
        else:
            said.append(found or "-")
            if found:
                kept[key] = found
    return said


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
    lambda chance: ([[start, start + chance.randint(1, 9)] for start in (chance.randint(0, 40) for _ in range(6))],),
    apart_they_stay=[([[1, 2], [4, 6]],), ([],)],
    order_does_not_matter=[([[5, 8], [1, 6]],)],
    one_inside_another_is_gone=[([[1, 10], [2, 3]],)],
    neighbours_become_one=[([[1, 3], [3, 5]],)],
)
def spans(given):
    merged = []
    for start, end in sorted(given):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@domain(
    lambda chance: (chance.randint(1, 3999),),
    single_letters=[(1,), (5,), (10,), (1000,)],
    what_is_taken_away=[(4,), (9,), (40,), (1994,)],
    large_ones=[(3888,), (3999,)],
)
def roman(number):
    said = ""
    for value, letters in zip([1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1], "M CM D CD C XC L XL X IX V IV I".split()):
        said += letters * (number // value)
        number %= value
    return said


@domain(
    lambda chance: (" ".join(str(chance.randint(1, 20)) + " " + chance.choice("+-*") for _ in range(4)) + " 3",),
    one_number=[("7",), (" 12 ",)],
    products_come_first=[("1 + 2 * 3",), ("(1 + 2) * 3",)],
    from_left_to_right=[("10 - 4 - 3",), ("2 - 3 + 4",), ("10 - (4 - 3)",)],
    what_is_no_sum_is_none=[("",), ("1 +",), ("(1",), ("1 2",)],
    what_is_too_large_is_none=[("9223372036854775807 + 1",), ("0 - 9223372036854775807 - 2",)],
)
def expression(text):
    if not re.fullmatch(r"[\d\s+*()-]+", text) or re.search(r"\d\s+\d", text):
        return None
    try:
        value = eval(text, {"__builtins__": {}})  # only digits, signs and brackets get here
    except SyntaxError:
        return None
    return value if -(2**63) <= value < 2**63 else None


@domain(
    lambda chance: (chance.randint(1, 3), chance.choice([20, 60, 90]), sorted(chance.randint(0, 6000) for _ in range(9))),
    a_burst_is_allowed=[(2, 60, [0, 0, 0]), (3, 60, [0, 1, 2, 3])],
    time_brings_more=[(1, 60, [0, 1000, 2000, 2500])],
    parts_of_a_token_add_up=[(1, 60, [0, 500, 1000, 1500, 2000]), (1, 30, [0, 1500, 2100])],
)
def limiter(burst, per_minute, arrivals):
    level, last, said = burst * 60000, 0, []
    for now in arrivals:
        level = min(burst * 60000, level + (now - last) * per_minute)
        last = now
        said.append(level >= 60000)
        level -= 60000 if said[-1] else 0
    return said


@domain(
    lambda chance: ("978%09d%d" % (chance.randint(0, 10**9 - 1), chance.randint(0, 9)),),
    printed_ones=[("9780306406157",), ("978-3-16-148410-0",)],
    a_wrong_digit_is_seen=[("9780306406158",), ("9780306406517",)],
    other_texts_are_none=[("",), ("978030640615",), ("97803064061571",), ("978030640615X",)],
)
def isbn(text):
    digits = text.replace("-", "")
    return bool(re.fullmatch(r"\d{13}", digits)) and sum(int(digit) * (1 + at % 2 * 2) for at, digit in enumerate(digits)) % 10 == 0


@domain(
    lambda chance: ("", str(chance.randint(1583, 2400)), str(chance.randint(1, 12))),
    long_and_short_months=[("", "2023", "1"), ("", "2023", "4"), ("", "2023", "12")],
    february=[("", "2023", "2"), ("", "2024", "2")],
    centuries_are_no_leap_years=[("", "1900", "2"), ("", "2100", "2"), ("", "2000", "2")],
)
def days(_, year, month):
    return str(calendar.monthrange(int(year), int(month))[1])


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
    lambda chance: ("", str(chance.randint(0, 2 ** chance.randint(4, 42)))),
    small_ones=[("", "0"), ("", "1023"), ("", "1536")],
    where_a_unit_begins=[("", "1024"), ("", "1048576"), ("", "1073741824")],
)
def sizes(_, number):
    tenths, unit = int(number) * 10, "B"
    for larger in "KMGT":
        if tenths < 10240:
            break
        tenths, unit = tenths // 1024, larger
    return f"{tenths // 10}.{tenths % 10}{unit}"


@domain(
    lambda chance: ("".join(words(chance, chance.randint(1, 3))),),
    three_by_three=[("Man",), ("",), ("abcdef",)],
    what_is_left_is_filled_up=[("M",), ("Ma",), ("hello",), ("ü",)],
)
def encoded(text):
    return base64.b64encode(text.encode()).decode()


@domain(
    lambda chance: ([chance.randint(-(10**9), 10**9) for _ in range(chance.randint(1, 5))],),
    small_sums=[([1, 2, 3],), ([],), ([-5, 5],)],
    sums_of_many_millions=[([2000000000, 2000000000],), ([2147483647, 1],)],
    debts_of_many_millions=[([-2000000000, -2000000000],), ([-1],)],
)
def ledger(cents):
    return sum(cents)


@domain(
    lambda chance: ("".join(chance.choice("aäß€x") for _ in range(6)), chance.randint(0, 12)),
    short_texts_stay=[("abc", 3), ("abc", 9), ("", 0)],
    plain_letters_are_cut=[("abcdef", 4)],
    no_letter_is_cut_in_two=[("grün", 3), ("10 €", 4), ("10 €", 5), ("日本", 4)],
)
def cut(text, most):
    return text.encode()[:most].decode(errors="ignore")


@domain(
    lambda chance: ([chance.randint(-50, 50) for _ in range(9)], chance.randint(0, 8)),
    the_first_and_the_last=[([3, 1, 2], 0), ([3, 1, 2], 2), ([7], 0)],
    the_one_between=[([9, 8, 7, 6, 5, 4, 3, 2, 1], 4), ([5, 1, 4, 1, 5, 9, 2, 6], 3)],
)
def smallest(values, rank):
    return sorted(values)[rank]


@domain(
    lambda chance: ([chance.choice("abc") for _ in range(6)], [chance.choice("abcd") for _ in range(3)]),
    what_the_other_lacks=[(["a", "b"], ["b", "c"]), ([], ["a"]), (["a"], [])],
    what_is_there_twice_counts_twice=[(["a", "a", "b"], ["a"]), (["x", "x", "x"], ["x", "x"])],
)
def only(left, right):
    rest, kept = list(right), []
    for item in left:
        if item in rest:
            rest.remove(item)
        else:
            kept.append(item)
    return kept


@domain(
    lambda chance: ([chance.choice(["pay", "ship", "cancel", "refund"]) for _ in range(chance.randint(1, 3))],),
    the_usual_way=[([],), (["pay"],), (["pay", "ship"],)],
    what_cannot_be_is_refused=[(["ship"],), (["cancel", "pay"],), (["pay", "ship", "cancel"],)],
    money_goes_back_after_shipping_too=[(["pay", "refund"],), (["pay", "ship", "refund"],)],
)
def orders(events):
    ways = {"new pay": "paid", "new cancel": "cancelled", "paid ship": "shipped", "paid refund": "refunded", "shipped refund": "refunded"}
    state = "new"
    for event in events:
        state = ways.get(f"{state} {event}", "refused")
    return state
