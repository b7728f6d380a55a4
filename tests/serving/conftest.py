import pytest


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A new project without a store."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    return tmp_path
