"""A run in MLflow: what is logged of it (`bench.py`), where (`place.py`), how (`writing.py`), and who waits."""
