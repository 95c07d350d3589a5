"""What the projects of the corpus compute: for each domain the right answer, and cases to ask for.

Tests of a project are drawn from here, so that a planted fault is judged by an implementation other than the one that it is planted in. `edges` are
cases by the name of their test, and some of them show the fault; `draw` makes one more from chance. They stand in
`domains_of_numbers` and `domains_of_texts`.
"""

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
