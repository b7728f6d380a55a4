from wscpml.randomness import stream


def test_each_purpose_and_seed_has_random_numbers_of_its_own():
    draws = {(s, p): stream(s, p).random() for s in (0, 1) for p in ("noise", "split", "noise ")}
    assert len(set(draws.values())) == 6
    assert stream(0, "noise").random() == draws[0, "noise"]
