"""From run folders to tables and figures; never trains."""
