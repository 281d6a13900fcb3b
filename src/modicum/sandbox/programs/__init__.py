"""The texts of the catalogue. They run in sandboxes, and are never imported here.

Each is one file that can be read in one go, so some functions stand in several; a test
holds them to be the same in each. A text that has been used is not changed: another
text is another version, in a file of its own.
"""
