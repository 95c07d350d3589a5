"""Domains of the corpus: for each, a reference implementation and test cases.

The tests of a project come from here, so an independent implementation judges a planted fault. `edges` are cases by the name of their test, and
some of them show the fault; `draw` makes a random case. The domains are in `domains_of_numbers` and `domains_of_texts`.
"""

DOMAINS = {}


class Domain:
    """A reference implementation with its cases."""

    def __init__(self, answer, edges, draw):
        self.answer, self.edges, self.draw = answer, edges, draw

    def cases(self, chance, drawn=6):
        """Groups of cases by name, each case as its arguments and the right answer."""
        groups = {name: list(cases) for name, cases in self.edges.items()}
        groups["whatever_comes"] = [self.draw(chance) for _ in range(drawn)]
        return {name: [(args, self.answer(*args)) for args in cases] for name, cases in groups.items()}


def domain(draw, **edges):
    """Registers the decorated function under its name."""

    def enter(answer):
        DOMAINS[answer.__name__] = Domain(answer, edges, draw)
        return answer

    return enter


def words(chance, count, letters="abcdefgh"):
    return ["".join(chance.choice(letters) for _ in range(chance.randint(1, 7))) for _ in range(count)]
