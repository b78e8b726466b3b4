"""A package that a stranger can check: made from evidence, doubted, signed, and taken in again."""
