"""Partial multi-label learning by weakly-supervised clustering (WSC-PML).

Rows are instances everywhere: features ``X`` are ``(n, d)``, candidates ``Y`` are 0/1 ``(n, q)``.
"""
