"""The version, that of the programs; apart, so that a build reads it without NumPy."""
__version__ = '0.1.0'
