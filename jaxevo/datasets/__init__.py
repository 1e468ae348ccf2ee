"""Images to search on, to train on and to test on.

Data are data sets by name, folders of images, `.npz` files and tables.

`load_search_data` gives what a search may see; the test split is read by `load_test_data` and
`load_scored_data` alone. The modules: `load` and `scored` (these functions) and `opening`;
`input_form` and `values` (how any image becomes an input: decided by the training images, saved
with the weights, and the only conversion there is); `dataset`, `pixels` and `pictures` (what was
found, and its pixels as they are stored); `splits` (who sees which image), `class_names` and
`labels`; `summary` (the line before a run); and a reader for each kind of data: `folder`, `npz`,
`tables`, and for the published ones `published`, `prepared` (TensorFlow Datasets without
TensorFlow), `sources`, `originals`, `idx`, `libsvm`, `mat`. Every reader takes files from
strangers: it checks sizes before it allocates, never unpickles, and answers anything damaged with a
`DataError`.
"""

from jaxevo.datasets.base import DataError
from jaxevo.datasets.class_names import parse_class_map
from jaxevo.datasets.contents import Content, count_duplicates
from jaxevo.datasets.dataset import ReadOptions
from jaxevo.datasets.images import Images, SearchData
from jaxevo.datasets.input_form import BACKGROUNDS, InputForm
from jaxevo.datasets.load import TrainData, load_search_data, load_train_data, load_training_data
from jaxevo.datasets.opening import NAMES, open_dataset, same_dataset
from jaxevo.datasets.resize import METHODS, resize_images
from jaxevo.datasets.scored import TestData, load_scored_data, load_test_data, was_trained_on
from jaxevo.datasets.summary import DataSummary
from jaxevo.datasets.values import ValueRange

__all__ = [
    "BACKGROUNDS",
    "METHODS",
    "NAMES",
    "Content",
    "DataError",
    "DataSummary",
    "Images",
    "InputForm",
    "ReadOptions",
    "SearchData",
    "TestData",
    "TrainData",
    "ValueRange",
    "count_duplicates",
    "load_scored_data",
    "load_search_data",
    "load_test_data",
    "load_train_data",
    "load_training_data",
    "open_dataset",
    "parse_class_map",
    "resize_images",
    "same_dataset",
    "was_trained_on",
]
