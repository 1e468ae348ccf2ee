"""Published data sets through TensorFlow Datasets, without TensorFlow.

The builders that TFDS ships cannot prepare MNIST or SVHN without TensorFlow, and USPS has none;
these can. A record holds a block of images, as reading one record an image takes 30 times as long
(4 s for MNIST at every start). The prepared files lie in the cache under the originals'
fingerprint, so other originals are prepared anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import pathlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.files import REMEDY, cache_dir, hash_file
from jaxevo.datasets.images import Images
from jaxevo.datasets.originals import locate
from jaxevo.datasets.sources import PublishedSource

_VERSION = "1.0.0"  # to be raised when a reader's result changes
_BLOCK = 256  # images a record


def load_published(source: PublishedSource, data_dir: str | None, split: str) -> Images:
    """Reads a split ("train" or "test"), preparing the data set first where needed."""
    files = locate(source, data_dir)
    root = cache_dir() / "tfds" / _fingerprint(files)
    try:
        with _locked(root):
            if not (root / source.name / _VERSION).exists():
                _prepare(source, root, files)
    except OSError as error:
        raise _unwritable(root, error) from error
    return _read(source, root, split)


def count_published(source: PublishedSource, data_dir: str | None, split: str) -> int:
    """Number of a split's images, without reading them; `load_published` prepared it."""
    root = cache_dir() / "tfds" / _fingerprint(locate(source, data_dir))
    with _damaged(root):
        records = _make_builder(source, root, {}).as_data_source(split)
        return (len(records) - 1) * _BLOCK + len(records[len(records) - 1]["labels"])


def _unwritable(root: pathlib.Path, error: Exception) -> DataError:
    reason = str(error)[:200] or type(error).__name__
    return DataError(
        f"the data set cannot be prepared in {root} ({reason}): set JAXEVO_CACHE to a folder with "
        "room"
    )


def _fingerprint(files: Mapping[str, Sequence[pathlib.Path]]) -> str:
    digests = [
        f"{split} {hash_file(path)}" for split, paths in sorted(files.items()) for path in paths
    ]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _locked(root: pathlib.Path) -> Iterator[None]:
    """Lets one process at a time prepare under `root`.

    The system drops the lock of a process that was killed.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make_builder(source: PublishedSource, root: pathlib.Path, splits: Mapping[str, Images]) -> Any:
    """A TFDS builder of `source`; `splits` are the images that it writes, unneeded for reading."""
    import tensorflow_datasets as tfds  # here, as its import takes half a second

    class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        """Writes blocks of images in the originals' order."""

        name = source.name
        VERSION = tfds.core.Version(_VERSION)
        # TFDS looks for it with importlib_resources, which it does not install with Python >= 3.9
        url_infos = None

        def _info(self) -> Any:
            def tensor(shape: tuple[int | None, ...], dtype: Any) -> Any:
                return tfds.features.Tensor(
                    shape=shape, dtype=dtype, encoding=tfds.features.Encoding.BYTES
                )

            features = {
                "images": tensor((None, *source.image_shape), np.uint8),
                "labels": tensor((None,), np.int32),
            }
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
            )

        def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
            return {split: self._generate_examples(images) for split, images in splits.items()}

        def _generate_examples(self, images: Images) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
            for start in range(0, len(images), _BLOCK):
                block = slice(start, start + _BLOCK)
                yield start, {"images": images.images[block], "labels": images.labels[block]}

    return Builder(data_dir=root, file_format="array_record")


def _prepare(
    source: PublishedSource, root: pathlib.Path, files: Mapping[str, Sequence[pathlib.Path]]
) -> None:
    """Reads the originals and has TFDS write them.

    TFDS writes into a temporary folder, which it renames at the end.
    """
    # Read before TFDS starts, which would wrap the readers' errors in its own.
    splits = {split: _checked(source, paths) for split, paths in files.items()}
    import tensorflow_datasets as tfds

    # Leftovers are of a process that was killed, since we hold the lock.
    for leftover in (root / source.name).glob("*incomplete*"):
        shutil.rmtree(leftover, ignore_errors=True)
    config = tfds.download.DownloadConfig(
        try_download_gcs=False,
        compute_stats=tfds.download.ComputeStatsMode.SKIP,
        register_checksums=False,
    )
    tfds.disable_progress_bar()
    builder = _make_builder(source, root, splits)
    downloads = root / "unused"  # TFDS wants a folder; its default lies in the person's home
    try:
        # TFDS prints two lines whatever the verbosity.
        with contextlib.redirect_stdout(io.StringIO()):
            builder.download_and_prepare(download_dir=downloads, download_config=config)
    except Exception as error:  # a full disk shows in several ways
        raise _unwritable(root, error) from error
    finally:
        shutil.rmtree(downloads, ignore_errors=True)


def _checked(source: PublishedSource, paths: Sequence[pathlib.Path]) -> Images:
    """Reads a split's files and checks the images' size and the labels' range."""
    split = source.read(paths)
    if split.images.shape[1:] != source.image_shape:
        sizes = " x ".join(map(str, split.images.shape[1:]))
        expected = " x ".join(map(str, source.image_shape))
        raise DataError(f"{paths[0]} has images of {sizes}, {source.name} has {expected}: {REMEDY}")
    if split.labels.min() < 0 or split.labels.max() >= len(source.class_names):
        raise DataError(
            f"{paths[-1]} has labels outside {source.name}'s {len(source.class_names)} classes: "
            f"{REMEDY}"
        )
    return split


def _read(source: PublishedSource, root: pathlib.Path, split: str) -> Images:
    with _damaged(root):
        records = _make_builder(source, root, {}).as_data_source(split)
        blocks = records.__getitems__(range(len(records)))
        images = np.concatenate([block["images"] for block in blocks])
        labels = np.concatenate([block["labels"] for block in blocks])
    return Images(images, labels)


@contextlib.contextmanager
def _damaged(root: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # what TFDS raises on a damaged cache is not documented
        reason = str(error)[:200] or type(error).__name__
        raise DataError(f"the cache {root} is damaged ({reason}): delete that folder") from error
