"""Arrays of NumPy in place of tensors on the CPU."""

import numpy as np
import pytest
import torch

from deepbore.compute.arrays import as_tensor


@pytest.mark.parametrize("array", [np.arange(3.0), np.float64(2.5), torch.arange(3.0, device="cpu")], ids=repr)
def test_an_array_becomes_a_tensor_where_it_is(array):
    with torch.device("meta"):  # a default device of the caller
        found = as_tensor(array)
    assert found.device.type == "cpu"
    assert found.tolist() == array.tolist()


def test_a_tensor_stays_on_its_device():
    with torch.device("cpu"):
        assert as_tensor(torch.zeros(2, device="meta")).device.type == "meta"
