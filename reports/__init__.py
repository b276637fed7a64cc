"""Tables, figures and pages for people. Tables choose columns, templates place them, neither computes."""
