"""A requirement and statistics → a verdict; two cells → what differs; cells → an answer in words."""
