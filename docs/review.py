"""The picture of the review: `python -m docs.review` takes it into docs/images/review.png.

The page is that of `wscpml review`, opened in Chromium, on made-up dishes whose ingredients are the
features, with a drawing of each, and with some wrong tags.
"""

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from wscpml import WSCPML
from wscpml.arrays import Array
from wscpml.quality import decisions
from wscpml.review import app
from wscpml.review.items import Items
from wscpml.review.session import Session
from wscpml.review.view import Judgement

FILE = Path(__file__).parent / "images/review.png"
DISHES, PARTS, NOISE = 240, 4, 0.2
SIZE = (1200, 970)
INGREDIENTS = {  # its colour on a plate, and the tags that it speaks for or against
    "chicken": ("#d9a066", "-vegetarian"),
    "bacon": ("#b5473c", "-vegetarian"),
    "salmon": ("#f08a6b", "-vegetarian fish"),
    "cod": ("#e8e4d8", "-vegetarian fish"),
    "chilli": ("#d32f2f", "spicy"),
    "ginger": ("#d8b45a", "spicy"),
    "broth": ("#c7a252", "soup"),
    "coconut milk": ("#f3efe3", "soup"),
    "honey": ("#f0a830", "sweet"),
    "banana": ("#f5dd5c", "sweet"),
    "chocolate": ("#5d3a24", "sweet"),
    "carrot": ("#f28c28", ""),
    "spinach": ("#3f7d3a", ""),
    "rice": ("#f6f3ea", ""),
    "lentils": ("#8a6a3b", ""),
    "tomato": ("#e0442e", ""),
}
TAGS = ["fish", "soup", "spicy", "sweet", "vegetarian"]


def dishes(rng: np.random.Generator) -> tuple[pd.DataFrame, Array, Array]:
    """Name and text of each dish, its ingredients ``(n, d)``, and its true tags ``(n, q)``."""
    names = list(INGREDIENTS)
    X = np.zeros((DISHES, len(names)))
    truth = np.zeros((DISHES, len(TAGS)), np.uint8)
    rows = []
    for i in range(DISHES):
        chosen = rng.choice(len(names), PARTS, replace=False)
        X[i, chosen] = 1
        first, *rest = (names[j] for j in chosen)
        speaks = " ".join(INGREDIENTS[names[j]][1] for j in chosen).split()
        truth[i] = [
            tag in speaks or (tag == "vegetarian" and "-vegetarian" not in speaks) for tag in TAGS
        ]
        text = f"{first}, {', '.join(rest[:-1])} and {rest[-1]}".capitalize()
        rows.append({"title": f"{first.capitalize()} with {rest[0]}", "text": f"{text}."})
    return pd.DataFrame(rows), X, truth


def draw(ingredients: Array, file: Path, rng: np.random.Generator) -> None:
    """A plate with the ingredients on it, as dots."""
    figure = Figure(figsize=(2.6, 1.7))
    axis = figure.add_axes((0, 0, 1, 1), aspect="equal", xlim=(-1.53, 1.53), ylim=(-1, 1))
    axis.axis("off")
    for radius, colour in ((0.95, "#ffffff"), (0.75, "#f1f3f6")):
        axis.add_patch(Circle((0, 0), radius, facecolor=colour, edgecolor="#c9ced6"))
    colours = [colour for colour, _ in INGREDIENTS.values()]
    for j in np.flatnonzero(ingredients):
        for angle, far in zip(rng.uniform(0, 7, 7), rng.uniform(0, 0.6, 7), strict=True):
            place = (far * np.cos(angle), far * np.sin(angle))
            axis.add_patch(Circle(place, 0.11, facecolor=colours[j], edgecolor="#00000030"))
    figure.savefig(file, dpi=110, transparent=True)


def session(folder: Path) -> Session:
    """A review of the dishes, with some decisions made."""
    rng = np.random.default_rng(0)
    shown, X, truth = dishes(rng)
    candidates = np.maximum(truth, rng.random(truth.shape) < NOISE).astype(np.uint8)
    for i in range(DISHES):
        draw(X[i], folder / f"{i}.png", rng)
    shown.insert(1, "picture", [f"{i}.png" for i in range(DISHES)])
    ids = [f"dish {i}" for i in range(DISHES)]
    journal = folder / "decisions.csv"
    asked = [(i, j) for i, j in np.argwhere(candidates).tolist() if i % 9 == 0]
    decisions.append(
        journal,
        [{"instance": ids[i], "label": TAGS[j], "decision": bool(truth[i, j])} for i, j in asked],
    )
    tags = pd.DataFrame(candidates, ids, TAGS)
    fitted = WSCPML(random_state=0).fit(X, tags, journal)
    items = Items(
        "dishes.csv",
        ids,
        TAGS,
        candidates,
        X,
        list(INGREDIENTS),
        fitted.map_.scale(X),
        shown,
        folder,
    )
    judgement = Judgement.of(fitted, X)
    return Session(items, lambda _: judgement, judgement, journal)


def main(file: Path = FILE, size: tuple[int, int] = SIZE) -> None:
    """Open the page, and take its picture."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("docs.review: needs chromium")
    with TemporaryDirectory() as folder, app.listen(0) as listening:
        server, address = app.server(session(Path(folder)), listening, "Anna")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            across = f"--window-size={size[0]},{size[1]}"
            subprocess.run(
                [
                    *(chromium, *flags, across),
                    *("--virtual-time-budget=5000", f"--screenshot={file.resolve()}", address),
                ],
                check=True,
                capture_output=True,
            )
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    main()
