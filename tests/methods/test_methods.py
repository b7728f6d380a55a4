import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from tests.contract import small
from wscpml import WSCPML
from wscpml.errors import UserError
from wscpml.methods import METHODS, PLACES, method
from wscpml.methods.base import Method, OnKernelFeatures

RECONSTRUCTIONS = {"pamb", "pml-fp", "fbd"}


@pytest.mark.parametrize("name", METHODS)
def test_every_name_is_a_method_of_a_similar_title(name):
    found = method(name)
    assert issubclass(found, Method)
    assert found.TITLE.lower() == name + "-style" * (name in RECONSTRUCTIONS)
    assert ("reconstruct" in found.SOURCE) == (name in RECONSTRUCTIONS)
    assert (name == "oracle") == found.NEEDS_TRUTH


def test_every_method_has_a_name():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    named = {method(name) for name in PLACES}
    ours = {kind for kind in below(Method) if kind.__module__.startswith("wscpml.")}
    assert ours - {Method, OnKernelFeatures, WSCPML} == named  # the last is for practitioners


@pytest.mark.parametrize("fitted_on", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", [*METHODS, "practitioners"])
def test_sparse_rows_are_predicted_as_the_same_dense_rows_whatever_was_fitted_on(name, fitted_on):
    X, _, candidates = small(n=200, d=30)
    X = np.where(np.abs(X) > 1.7, np.round(X), 0)  # with many rows that are equally near
    kind = WSCPML if name == "practitioners" else method(name)
    found = kind(random_state=0).fit(fitted_on(X), candidates)
    dense, kept = (found.predict_proba(form(X)) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(kept, dense, atol=1e-6)


def test_a_name_that_is_none_is_told_with_those_there_are():
    with pytest.raises(UserError, match="pml: no such method; known are wsc-pml, pml-ni, nlr"):
        method("pml")


def test_the_names_cost_no_imports():
    code = "import sys, wscpml.methods; print({'torch', 'sklearn', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
