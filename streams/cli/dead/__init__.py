"""`contextgauge dead`: shows dead letters, and publishes them again (`flow/dead_letters`)."""
