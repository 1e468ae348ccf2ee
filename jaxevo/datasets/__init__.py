"""Images to search on, to train on and to test on: the data sets by name, folders of images and `.npz` files.

`load_search_data` gives what a search may see; `load_test_data` is the only function that reads the test split. The
modules: `load` (these functions), `splits` (who sees which image), `resize`, `prepared` (TensorFlow Datasets without
TensorFlow), `sources` and `originals` (the published files), and a reader for each format (`idx`, `libsvm`, `mat`,
`npz`, `folder`). Every reader takes files from strangers: it checks sizes before it allocates, never unpickles, and
answers anything damaged with a `DataError`.
"""

from jaxevo.datasets.base import DataError, Images, SearchData
from jaxevo.datasets.load import (
    NAMES,
    load_search_data,
    load_test_data,
    load_train_data,
    same_dataset,
)
from jaxevo.datasets.resize import METHODS, resize_images

__all__ = [
    "METHODS",
    "NAMES",
    "DataError",
    "Images",
    "SearchData",
    "load_search_data",
    "load_test_data",
    "load_train_data",
    "resize_images",
    "same_dataset",
]
