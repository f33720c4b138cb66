"""Answers as a hostile site might give them, each made from (seed, number)."""

import contextlib
import io
import json
import math
import random

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedcso.federation.wire import pack, unpack

EXTREME = [0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]
NAMES = ["site", "number", "size", "trains", "tests", "validates", "table", "costs", "train_loss", "seconds", "forgot"]
NAMES += [
    "refused",
    "metrics",
    "validation",
    "too_few",
    "tree",
    "types",
    "rows",
    "positives",
    "columns",
    "outer_samples",
]
TEXTS = [
    "",
    "0",
    "1",
    "one",
    "test",
    "validation",
    "x",
    "\n\r\0 WARNING ",
    "é" * 50,
    "a" * 100_000,
    "../../x",
    "{}",
    "NaN",
]


class Hostile:
    """A generator of answers."""

    def __init__(self, seed, number, honest):
        self.rng, self.honest = random.Random(f"{seed} {number}"), honest

    def content(self):
        """An answer: an honest one that was spoilt, or one that never was."""
        ways = [self.spoilt, self.spoilt, self.spoilt, self.made_up, self.raw, self.nested, self.other_records]
        return self.rng.choice(ways)()

    def spoilt(self):
        words, tree = unpack(self.rng.choice(self.honest))
        for _ in range(self.rng.randint(1, 4)):
            if self.rng.random() < 0.6:
                words = self.spoil_words(words)
            else:
                tree = self.spoil_tree(tree)
        try:
            return pack(words, tree)
        except (TypeError, ValueError, AssertionError, AttributeError, LookupError):
            return self.made_up()

    def spoil_words(self, words):
        if isinstance(words, dict) and words and self.rng.random() < 0.8:
            name = self.rng.choice([*words, *words, self.rng.choice(NAMES)])
            return words | {name: self.spoil_words(words.get(name))}
        return self.value()

    def spoil_tree(self, tree):
        if isinstance(tree, dict) and tree and self.rng.random() < 0.9:
            name = self.rng.choice(list(tree))
            if self.rng.random() < 0.1:
                return {other: part for other, part in tree.items() if other != name}
            return tree | {name: self.spoil_tree(tree[name])}
        if isinstance(tree, torch.Tensor) and self.rng.random() < 0.7:
            return self.spoil_tensor(tree)
        return self.rng.choice([(), [], {}, {"x": torch.zeros(3)}, [torch.zeros(2)] * 50, torch.zeros(())])

    def spoil_tensor(self, leaf):
        fill = self.rng.choice([math.nan, math.inf, -math.inf, 1e308, -1e30, -1.0, 0.0])
        fill = fill if leaf.is_floating_point() else -1.0
        changes = [
            lambda: torch.full(leaf.shape, fill, dtype=torch.float64).to(leaf.dtype),
            lambda: leaf.to(self.rng.choice([torch.float32, torch.float16, torch.int8, torch.bool, torch.bfloat16])),
            lambda: torch.cat([leaf.reshape(-1)] * 2),
            lambda: leaf.reshape(-1)[:0],
            lambda: leaf[None],
            lambda: torch.zeros(self.rng.choice([0, 1, 10**5]), dtype=leaf.dtype),
        ]
        return self.rng.choice(changes)()

    def value(self, depth=0):
        kinds = ["number", "text", "none", "bool", "float"] + ["list", "dict"] * (depth < 3)
        kind = self.rng.choice(kinds)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.rng.randint(0, 4))]
        if kind == "dict":
            return {self.name(): self.value(depth + 1) for _ in range(self.rng.randint(0, 4))}
        simple = {
            "number": lambda: self.rng.choice([n for n in EXTREME if isinstance(n, int)] + [self.rng.randint(-5, 50)]),
            "float": lambda: self.rng.choice([*filter(lambda n: isinstance(n, float), EXTREME), self.rng.gauss(0, 10)]),
            "text": lambda: self.rng.choice(TEXTS),
            "none": lambda: None,
            "bool": lambda: self.rng.random() < 0.5,
        }
        return simple[kind]()

    def name(self):
        return self.rng.choice([*NAMES, *TEXTS[:6]])

    def made_up(self):
        words = {self.name(): self.value() for _ in range(self.rng.randint(0, 6))}
        return pack(words, self.rng.choice([(), {"shared": {}}, {"shared": {"x": torch.zeros(3)}}, torch.zeros(2)]))

    def raw(self):
        """Tensors whose kinds and shapes do not fit their bytes, or that were cut off."""
        kinds = [[self.rng.choice(["F64", "F32", "I64", "BOOL", "O", "", 7]), self.shape()] for _ in range(3)]
        words = {"tree": {"dict": {"shared": {"dict": {"x": "0"}}}}, "tensors": kinds[: self.rng.randint(0, 3)]}
        text = self.rng.choice([json.dumps(words), json.dumps(words)[:-1], "{", "[]", "null", "\x00"])
        data = self.rng.randbytes(self.rng.choice([0, 1, 24, 1000]))
        return self.record(text, data)

    def shape(self):
        sizes = [0, 1, 3, -1, 10**12, 2**63, 1.5, "3", None, True]
        return self.rng.choice(
            [[3], [], [10**12], [2**31, 2**31], 3, [self.rng.choice(sizes) for _ in range(self.rng.randint(0, 40))]]
        )

    def record(self, text, data):
        """A record as on the wire: the bytes of tensors in it, or in an array beside it that is not always one."""
        if self.rng.random() < 0.6:
            return RecordDict({"words": ConfigRecord({"json": text, "tensors": data})})
        array = Array(np.frombuffer(data, np.uint8)) if self.rng.random() < 0.5 else self.strange_array(data)
        return RecordDict({"words": ConfigRecord({"json": text}), "arrays": ArrayRecord({"tensors": array})})

    def strange_array(self, data):
        """An array of which header, shape, type and bytes do not fit."""
        header = {
            "shape": self.rng.choice([(3,), (10**12,), (2**31, 2**31), (-1,), (0,)]),
            "descr": self.rng.choice(["<f8", "|O", "<i8", "|S99999999", "|u1"]),
            "fortran_order": False,
        }
        file = io.BytesIO()
        with contextlib.suppress(ValueError):
            np.lib.format.write_array_header_1_0(file, header)
        data = file.getvalue() + data
        data = self.rng.choice([data, data[: self.rng.randint(0, len(data))], self.rng.randbytes(64)])
        return Array(self.rng.choice(["float64", "uint8", "object", "nonsense"]), (3,), "numpy.ndarray", data)

    def nested(self):
        """Values nested as deep as JSON allows, and deeper."""
        depth = self.rng.choice([100, 900, 990, 5000, 100_000])
        opened, closed = self.rng.choice([("[", "]"), ('{"a":', "}"), ('{"dict": {"a": ', "}}"), ('{"list": [', "]}")])
        deep = opened * depth + "1" + closed * depth
        name = self.rng.choice([*NAMES, "tree", "tensors"])
        rest = {"tree": '{"tuple": []}', "tensors": "[]"} | {name: deep}
        text = "{" + ", ".join(f'"{key}": {value}' for key, value in rest.items()) + "}"
        return self.record(text, b"")

    def other_records(self):
        words = ConfigRecord({self.rng.choice(["json", "text"]): self.rng.choice([1, 1.5, "{}", b"{}", True])})
        some = {"arrays": ArrayRecord({}), "words": words, "other": words}
        return RecordDict({name: some[name] for name in self.rng.sample(list(some), self.rng.randint(0, 3))})
