"""The page's HTML, style and scripts: no code of Python is here."""
