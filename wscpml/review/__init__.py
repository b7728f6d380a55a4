"""A local web application in which a person decides what the data cannot tell."""
