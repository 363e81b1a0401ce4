"""The version, the same as that of the programs. It has its own file, so that a build can read it without NumPy."""
__version__ = '0.1.0'
