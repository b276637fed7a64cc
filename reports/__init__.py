"""What people look at: tables now. Tables choose columns, templates place them, neither computes."""
