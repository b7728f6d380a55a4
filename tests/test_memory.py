import pytest

from wscpml import memory


@pytest.mark.parametrize(
    ("text", "size"), [("4 GB", 4e9), ("1.5mb", 1.5e6), (2000, 2000), ("7", 7)]
)
def test_memory_is_bytes_or_text(text, size):
    assert memory.parsed(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1 GB", "0 GB", "4 GiB", "1e9", "9" * 5000])
def test_other_memory_is_refused(text):
    with pytest.raises(ValueError, match="such as 4 GB"):
        memory.parsed(text)


@pytest.mark.parametrize(("size", "text"), [(4e9, "4 GB"), (1.5e6, "1.5 MB"), (7, "7 bytes")])
def test_memory_in_words(size, text):
    assert memory.told(size) == text


def test_what_is_free_is_no_more_than_a_container_may_have(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    everything = memory.free()
    assert 0 < everything < 1 << 50
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    assert memory.free() == 3000
