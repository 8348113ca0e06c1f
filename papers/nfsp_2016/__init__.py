"""Neural fictitious self-play [Heinrich & Silver 2016]: what is published, and what ours reaches."""
