"""YAML from elsewhere: not so deep, with few aliases and digits, that reading it takes for ever."""

from typing import Any

import yaml

MOST_NESTED, MOST_ALIASES, MOST_DIGITS = 20, 10, 100


class _Loader(yaml.SafeLoader):
    depth = aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        self.aliases += self.check_event(yaml.AliasEvent)
        if self.depth > MOST_NESTED or self.aliases > MOST_ALIASES:
            raise yaml.YAMLError(
                f"it has more than {MOST_ALIASES} aliases, or is nested more than {MOST_NESTED} "
                "levels deep"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_scalar(self, node: Any) -> Any:
        is_number = node.tag.endswith((":int", ":float"))
        if is_number and len(node.value) > MOST_DIGITS:
            raise yaml.YAMLError(f"it has a number of more than {MOST_DIGITS} digits")
        node.value.encode()  # fails for half of a character
        return super().construct_scalar(node)


def parsed(text: str | bytes) -> Any:
    """What YAML says; a ValueError of one line if it is none, or would hurt."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(" ".join(str(error).split())) from None
