"""Where torch works, and with how many threads: the same bytes come out with any number."""

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from wscpml.arrays import Array
from wscpml.errors import UserError

if TYPE_CHECKING:
    import torch
    from threadpoolctl import threadpool_limits

Parallel = Callable[..., Any]  # like `map`


def found_device(name: str) -> "torch.device":
    """The device of that name: `cpu`, `cuda`, or `auto`, which is cuda where there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device: no CUDA device is found; take auto or cpu")
    return torch.device(name)


@contextmanager
def in_parallel(where: "torch.device") -> Iterator[Parallel]:
    """A `map` over independent tasks on all cores, one thread each; results come in order.

    Inside, torch itself keeps to one thread: sums in another order would be other bytes.
    """
    import torch

    before, workers = torch.get_num_threads(), cores() if where.type == "cpu" else 1
    _use_one_thread()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            if workers == 1:
                yield map
            else:
                with ThreadPoolExecutor(
                    workers, initializer=lambda: torch.set_num_threads(1)
                ) as pool:
                    yield pool.map
    finally:
        torch.set_num_threads(before)


def one_blas_thread() -> "threadpool_limits":
    """Within it matrix products keep to one thread: sums in another order are other bytes."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas")


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def cores() -> int:
    """How many cores this process may use; OMP_NUM_THREADS may leave the others to its peers."""
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(found, int(allowed)) if allowed.isdecimal() and int(allowed) else found


def to_tensor(array: Array, where: "torch.device", dtype: "torch.dtype") -> "torch.Tensor":
    """An array on a device; on the CPU it shares the memory of one that has the type already."""
    import torch

    array = np.ascontiguousarray(array)
    if not array.flags.writeable:  # torch does not know of arrays that may only be read
        array = array.copy()
    return torch.from_numpy(array).to(where, dtype)


def csr_tensor(
    ends: "torch.Tensor", columns: "torch.Tensor", values: "torch.Tensor", shape: tuple[int, ...]
) -> "torch.Tensor":
    """A sparse matrix in torch, of parts that are known to fit."""
    import torch

    return torch.sparse_csr_tensor(ends, columns, values, shape, check_invariants=False)
