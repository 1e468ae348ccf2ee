"""The published data sets: their files, and how these are had and read.

Checksums of files are the publishers'; SHA-256 where one is known, else MD5. A person's files are
often packed anew, so the content is identified too, where its checksum is known: MD5 of the
unpacked IDX files.
"""

from __future__ import annotations

import dataclasses
import pathlib
import string
from collections.abc import Callable, Sequence

import numpy as np

from jaxevo.datasets import idx, libsvm, mat
from jaxevo.datasets.images import Images


@dataclasses.dataclass(frozen=True)
class OriginalFile:
    """A file as published.

    It has a name, a checksum (`algorithm:digits`, or empty) and the addresses to try in order.
    """

    name: str
    checksum: str
    urls: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class PublishedSource:
    """A published data set.

    `read` reads the files of one split, in the order in which they stand here.

    Attributes:
        contents: By split the MD5 of images and labels as unpacked IDX files, where known.
        folder: Where the files may lie too, beside `<data_dir>/<name>/`.
        page: Where a person gets the files if they cannot be downloaded one by one.
    """

    name: str
    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    files: dict[str, tuple[OriginalFile, ...]]
    read: Callable[[Sequence[pathlib.Path]], Images]
    contents: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    folder: str = ""
    page: str = ""


_DIGITS = tuple(str(digit) for digit in range(10))
_FASHION = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_UPPER = tuple(string.ascii_uppercase)
_LOWER = tuple(string.ascii_lowercase)
# Small letters of EMNIST that are not merged with their capitals.
_UNLIKE_UPPER = tuple("abdefghnqrt")
_KANA = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


def _idx_source(
    name: str,
    class_names: tuple[str, ...],
    folders: tuple[str, ...],
    *,
    checksums: Sequence[str],
    contents: Sequence[str] = (),
) -> PublishedSource:
    names = [
        f"{part}-{kind}-ubyte.gz"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    files = [
        OriginalFile(file, f"sha256:{digits}", tuple(folder + file for folder in folders))
        for file, digits in zip(names, checksums, strict=True)
    ]
    by_split = {"train": tuple(files[:2]), "test": tuple(files[2:])}
    known = (
        {"train": (contents[0], contents[1]), "test": (contents[2], contents[3])}
        if contents
        else {}
    )
    return PublishedSource(name, (28, 28, 1), class_names, by_split, idx.read_split, known)


def _emnist(variant: str, class_names: tuple[str, ...], first_label: int = 0) -> PublishedSource:
    """EMNIST's images lie on their side, and the letters' labels begin with 1."""

    def read(paths: Sequence[pathlib.Path]) -> Images:
        split = idx.read_split(paths)
        return Images(
            np.ascontiguousarray(split.images.transpose(0, 2, 1, 3)),
            split.labels - np.int32(first_label),
        )

    def files(part: str) -> tuple[OriginalFile, ...]:
        kinds = ("images-idx3", "labels-idx1")
        return tuple(
            OriginalFile(f"emnist-{variant}-{part}-{kind}-ubyte.gz", "", ()) for kind in kinds
        )

    by_split = {"train": files("train"), "test": files("test")}
    page = "gzip.zip from https://www.nist.gov/itl/products-and-services/emnist-dataset"
    return PublishedSource(
        f"emnist_{variant}", (28, 28, 1), class_names, by_split, read, {}, "emnist", page
    )


def _one_file_a_split(
    folder: str, train: tuple[str, str], test: tuple[str, str]
) -> dict[str, tuple[OriginalFile, ...]]:
    splits = {"train": train, "test": test}
    return {
        split: (OriginalFile(name, checksum, (folder + name,)),)
        for split, (name, checksum) in splits.items()
    }


_ALL = (
    _idx_source(
        "mnist",
        _DIGITS,
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ),
        checksums=(
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        contents=(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
    ),
    _idx_source(
        "fashion_mnist",
        _FASHION,
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        checksums=(
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
        contents=(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
    ),
    _idx_source(
        "kmnist",
        _KANA,
        ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
        checksums=(
            "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
        ),
    ),
    PublishedSource(
        "usps",
        (16, 16, 1),
        _DIGITS,
        _one_file_a_split(
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/",
            ("usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
            ("usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
        libsvm.read_split,
    ),
    PublishedSource(
        "svhn_cropped",
        (32, 32, 3),
        _DIGITS,
        _one_file_a_split(
            "http://ufldl.stanford.edu/housenumbers/",
            (
                "train_32x32.mat",
                "sha256:435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            ),
            (
                "test_32x32.mat",
                "sha256:cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            ),
        ),
        mat.read_split,
    ),
    _emnist("digits", _DIGITS),
    _emnist("mnist", _DIGITS),
    _emnist("letters", _LOWER, first_label=1),
    _emnist("balanced", _DIGITS + _UPPER + _UNLIKE_UPPER),
    _emnist("bymerge", _DIGITS + _UPPER + _UNLIKE_UPPER),
    _emnist("byclass", _DIGITS + _UPPER + _LOWER),
)
SOURCES = {source.name: source for source in _ALL}
