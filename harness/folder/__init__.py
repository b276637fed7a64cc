"""The run folder: its files, and how to read and write them."""
