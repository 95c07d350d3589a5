"""Domains of numbers, times and states."""

import calendar
import datetime
import re

from domains import domain


@domain(
    lambda chance: ([[chance.randint(1, 9), chance.randint(1, 9999)] for _ in range(chance.randint(1, 4))], chance.choice([50, 70, 190])),
    whole_cents=[([[2, 500]], 200), ([], 190)],
    half_a_cent_is_rounded_up=[([[1, 250]], 10), ([[1, 50]], 70), ([[3, 150]], 190)],
)
def invoice(lines, permille):
    net = sum(quantity * cents for quantity, cents in lines)
    return net + (net * permille + 500) // 1000


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
    lambda chance: ([chance.randint(-(10**9), 10**9) for _ in range(chance.randint(1, 5))],),
    small_sums=[([1, 2, 3],), ([],), ([-5, 5],)],
    sums_of_many_millions=[([2000000000, 2000000000],), ([2147483647, 1],)],
    debts_of_many_millions=[([-2000000000, -2000000000],), ([-1],)],
)
def ledger(cents):
    return sum(cents)


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
