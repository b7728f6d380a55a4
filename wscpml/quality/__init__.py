"""How likely each label is to be true, and what people make of it."""
