"""The content of files as git sees it: ids, checkout bytes, conversions, a walk."""
