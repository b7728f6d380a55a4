import pytest

from wscpml.datasets import media


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("covers/a.PNG", "image"),
        ("https://example.invalid/a.jpg?size=2", "image"),
        ("a.mp3", "audio"),
        ("https://example.invalid/page", None),
        ("see a.png for more", None),
        ("one\ntwo.png", None),
        ("http://[broken.png", None),
        ("", None),
    ],
)
def test_a_cell_is_a_picture_or_a_sound_by_its_ending(text, kind):
    assert media.medium(text) == kind


def test_an_address_is_nothing_else():
    assert media.is_address("HTTPS://example.invalid/x")
    assert not media.is_address("https://example.invalid/ and more")
    assert not media.is_address("javascript:alert(1)")
