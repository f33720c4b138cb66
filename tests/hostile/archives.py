"""Archives as they should not be: damaged, larger inside than they say, and with members that point elsewhere."""

import gzip
import io
import lzma
import tarfile
import zipfile

from fedcso.datasets import mnist
from fedcso.datasets.cifar10_pickle import to_records
from fedcso.datasets.fetch.archives import read_file, read_members
from fedcso.datasets.omniglot import read
from fedcso.runs import checkpoint, initial_model
from tests.hostile.spoiling import TEXTS, spoil_bytes

LIMIT = 10**6
NAMES = ["a", "./a", "../../outside.png", "/etc/outside", "images_background/Latin/character01/0001_01.png", "a/" * 200]
PICKLE = b"\x80\x02}q\x00(U\x04dataq\x01U\x03abcU\x06labels]q\x02(K\x01K\x02eu."
EVIL = b"cos\nsystem\n(S'touch outside.png'\ntR."


def content(rng):
    """What a member holds: nothing, zeros that pack well, random bytes, or a picture's first bytes."""
    ways = [
        b"",
        b"\0" * rng.choice([10, 10**6, 3 * 10**6]),
        rng.randbytes(500),
        b"\x89PNG\r\n\x1a\n" + rng.randbytes(60),
    ]
    return rng.choice(ways)


def zipped(rng):
    stream = io.BytesIO()
    with zipfile.ZipFile(
        stream, "w", rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_STORED])
    ) as archive:
        for n in range(rng.randint(0, 4)):
            archive.writestr(f"{n or ''}{rng.choice(NAMES)}", content(rng))
    return stream.getvalue()


def tarred(rng):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for _ in range(rng.randint(0, 4)):
            member, data = tarfile.TarInfo(rng.choice(NAMES)), content(rng)
            member.size = len(data)
            member.type = rng.choice(
                [tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
            )
            member.linkname, member.mode = rng.choice(NAMES), rng.choice([0, 0o777, 0o7777])
            member.mtime = rng.choice([0, 2**33, 1])
            if member.type != tarfile.REGTYPE:
                member.size = 0
            archive.addfile(member, io.BytesIO(data[: member.size]))
    return stream.getvalue()


class Downloaded:
    """Archives and compressed files of published data."""

    title = "archives"

    def make(self, rng, place):
        kinds = {
            "images_background.zip": lambda: zipped(rng),
            "file.tar.gz": lambda: tarred(rng),
            "file.gz": lambda: gzip.compress(content(rng), 1),
            "file.xz": lambda: lzma.compress(content(rng), preset=0),
            "batch.pickle": lambda: rng.choice([PICKLE, EVIL, PICKLE + EVIL]),
            "idx": lambda: b"\0\0\x08\x03" + rng.randbytes(12) + content(rng)[:1000],
        }
        name = rng.choice(list(kinds))
        data = kinds[name]()
        self.file = place / name
        self.file.write_bytes(spoil_bytes(rng, data) if rng.random() < 0.6 else data)

    def face(self, place):
        name = self.file.name
        if name == "images_background.zip":
            read([self.file, self.file])
        elif name == "batch.pickle":
            to_records("data_batch_1", self.file.read_bytes(), 3072)
        elif name == "idx":
            mnist.decode(dict.fromkeys(mnist.FILES, self.file.read_bytes()))
        else:
            assert len(read_file(self.file, LIMIT)) <= LIMIT
            read_members(self.file, ["a"], LIMIT)


class OfARun:
    """Checkpoints and models: a damaged checkpoint is passed over, a damaged model refused."""

    title = "checkpoints and models"

    def __init__(self, good):
        self.good = good

    def make(self, rng, place):
        self.path = place / "model.safetensors"
        data = self.good if rng.random() < 0.02 else spoil_bytes(rng, self.good)
        if rng.random() < 0.6:
            (place / "checkpoints").mkdir()
            digest = rng.choice([checkpoint._digest([data]), "0" * 16, *TEXTS[1:5]])
            self.path = place / "checkpoints" / f"0000001-{digest}.safetensors"
        self.path.write_bytes(data)

    def face(self, place):
        if self.path.parent == place:
            initial_model.read_initial(str(self.path))
        else:
            found = checkpoint.newest(self.path.parent)
            assert found is None or isinstance(found.done, int)
