"""The comparison methods, one file each, behind one interface (base.py)."""
