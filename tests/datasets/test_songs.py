import numpy as np

from wscpml.datasets import songs


def test_the_sample_that_ships_is_the_one_that_is_made():
    table, truth = songs.songs()
    assert songs.FILE.read_bytes() == table.to_csv(index=False, lineterminator="\n").encode()
    assert len(table) == len(truth) == songs.ROWS


def test_the_sample_is_as_messy_as_real_tables_are():
    table, truth = songs.songs()
    numbers = table[list(songs.NUMBERS)]
    assert 0.03 < numbers.isna().to_numpy().mean() < 0.07
    spellings = {tag for tags in table.tags for tag in tags.split(", ")}
    assert {"Rock", "rock", "polka"} <= spellings
    given = np.array([[name in tags for name in songs.WORDS] for tags in table.tags])
    assert 0.2 < 1 - truth[given].mean() < 0.5
