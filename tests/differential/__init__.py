"""A generator of tower programs: each is run as it is and as rewritten, and what both did is compared."""
