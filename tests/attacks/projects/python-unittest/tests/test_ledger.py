import json
import pathlib
import unittest

from ledger import balance

CASES = pathlib.Path(__file__).with_name("cases.json")


class Ledger(unittest.TestCase):
    def test_an_empty_ledger_is_balanced(self):
        self.assertEqual(balance([]), 0)

    def test_the_cases(self):
        for case in json.loads(CASES.read_text()):
            self.assertEqual(balance(case["entries"]), case["balance"])
